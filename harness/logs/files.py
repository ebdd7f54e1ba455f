"""Files that may be large, cut or not text at all: read once, in constant memory, hashed on the way where asked."""

from __future__ import annotations

import contextlib
import hashlib
import io
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from harness.logs.errors import LogError

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

MAX_LINE_BYTES = 4 << 20
"""Ten times what LoadGen writes in one line for the largest data set or the longest answer; a bound on memory."""

_CHUNK_BYTES = 1 << 18


class FilePass:
    """One pass over a file. Whatever reads it, :meth:`sha256` gives the hash of all of its bytes in the same pass.

    Use it as a context; ``hashed`` spares the hash where nobody asks for it. LogError where the file cannot be opened
    or read, or is no plain file.
    """

    def __init__(self, path: Path, *, hashed: bool = True) -> None:
        self.path = path
        try:
            if not path.is_file():  # a pipe or a device would block; a folder has no lines
                raise LogError("no such file" if not path.exists() else "not a plain file", path)
            file = io.FileIO(path)
        except (OSError, ValueError) as error:
            raise self._unreadable(error) from None
        self._hashing = _Hashing(file) if hashed else None
        self._buffer = io.BufferedReader(self._hashing or file, _CHUNK_BYTES)

    def __enter__(self) -> FilePass:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._buffer.close()

    def lines(self, max_line_bytes: int = MAX_LINE_BYTES) -> Iterator[tuple[int, bytes]]:
        """The lines with their numbers from 1, without their end (LF or CRLF).

        LogError where one is longer than ``max_line_bytes``.
        """
        number = 0
        while raw := self._line(max_line_bytes + 2):  # with CRLF
            number += 1
            line = raw.removesuffix(b"\n").removesuffix(b"\r")
            if len(line) > max_line_bytes:
                raise LogError(f"a line of more than {max_line_bytes} bytes", self.path, number)
            yield number, line

    def whole(self, max_bytes: int) -> bytes:
        """All of the file. LogError where it is larger than ``max_bytes``."""
        try:
            content = self._buffer.read(max_bytes + 1)
        except OSError as error:
            raise self._unreadable(error) from None
        if len(content) > max_bytes:
            raise LogError(f"a file of more than {max_bytes} bytes", self.path)
        return content

    def start(self, most: int) -> bytes:
        """The first ``most`` bytes, at most 256 KiB of them, before anything is read; the pass stays where it is."""
        try:
            return self._buffer.peek(most)[:most]
        except OSError as error:
            raise self._unreadable(error) from None

    def sha256(self) -> str:
        """The hash of the whole file, in hexadecimal. Reads on to its end where the reader stopped before."""
        if self._hashing is None:
            raise ValueError("a pass that does not hash")
        try:
            while self._buffer.read(_CHUNK_BYTES):
                pass
        except OSError as error:
            raise self._unreadable(error) from None
        return self._hashing.digest.hexdigest()

    def _line(self, most: int) -> bytes:
        try:
            return self._buffer.readline(most)
        except OSError as error:
            raise self._unreadable(error) from None

    def _unreadable(self, error: OSError | ValueError) -> LogError:
        reason = error.strerror if isinstance(error, OSError) else error
        return LogError(f"cannot be read: {reason}", self.path)


class _Hashing(io.RawIOBase):
    """Hashes what passes; a buffer over it asks for large pieces."""

    def __init__(self, raw: io.FileIO) -> None:
        self._raw = raw
        self.digest = hashlib.sha256()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        count = self._raw.readinto(buffer) or 0
        self.digest.update(memoryview(buffer)[:count])
        return count

    def close(self) -> None:
        self._raw.close()
        super().close()


@contextlib.contextmanager
def passing(source: Path | FilePass) -> Iterator[FilePass]:
    """A pass over a path; one that is under way is used, and left open."""
    if isinstance(source, FilePass):
        yield source
    else:
        with FilePass(source, hashed=False) as opened:
            yield opened
