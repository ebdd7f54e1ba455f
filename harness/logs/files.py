"""Lines of a file that may be large, cut or not text at all."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from harness.logs.errors import LogError

MAX_LINE_BYTES = 64 << 20
"""Far above what LoadGen writes in one line (an index list of millions of samples), far below what hurts."""


def lines(path: Path, max_line_bytes: int = MAX_LINE_BYTES) -> Iterator[tuple[int, bytes]]:
    """The lines of a file with their numbers from 1, without their end (LF or CRLF), in constant memory.

    LogError where the file cannot be read, is no plain file, or has a line longer than ``max_line_bytes``.
    """
    if not path.is_file():  # a pipe or a device would block; a folder has no lines
        raise LogError("no such file" if not path.exists() else "not a plain file", path)
    try:
        with path.open("rb") as handle:
            number = 0
            while raw := handle.readline(max_line_bytes + 1):
                number += 1
                if len(raw) > max_line_bytes:
                    raise LogError(f"a line of more than {max_line_bytes} bytes", path, number)
                yield number, raw.rstrip(b"\r\n")
    except OSError as error:
        raise LogError(f"cannot be read: {error.strerror}", path) from None
