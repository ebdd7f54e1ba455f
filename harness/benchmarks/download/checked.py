"""What of a data set's files lies in a folder, and whether it is what the list says."""

from __future__ import annotations

import enum
import functools
import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from harness.benchmarks.base import CHUNK_BYTES
from harness.benchmarks.download.listing import ListedFile
from harness.errors import DatasetError


class State(enum.Enum):
    """How a file stands."""

    RIGHT = "right"
    WRONG = "another md5"
    MISSING = "missing"


@dataclass(frozen=True, slots=True)
class FileState:
    """A listed file as it lies in the folder; ``size`` in bytes and ``md5`` are what was found, where it is there."""

    file: ListedFile
    state: State
    size: int | None = None
    md5: str | None = None


def check_files(folder: Path, files: Iterable[ListedFile]) -> list[FileState]:
    """Reads every file that is there. DatasetError for one that cannot be read."""
    return [_state(folder, file) for file in files]


def _state(folder: Path, file: ListedFile) -> FileState:
    path = folder / file.path
    if not path.exists():
        return FileState(file, State.MISSING)
    try:
        found = md5_of(path)
        size = path.stat().st_size
    except OSError as error:
        raise DatasetError(
            f"cannot be read: {error.strerror}", where=path, mend="mend the path or its rights"
        ) from None
    return FileState(file, State.RIGHT if found == file.md5 else State.WRONG, size, found)


def md5_of(path: Path) -> str:
    """MD5 of a file's content, in hexadecimal; read once a process while the file stays as it is."""
    stat = path.stat()
    return _md5_of(path, stat.st_ino, stat.st_size, stat.st_mtime_ns)


@functools.cache
def _md5_of(path: Path, inode: int, size: int, mtime_ns: int) -> str:
    digest = hashlib.md5(usedforsecurity=False)  # The list's own; it tells damage, not intent.
    with path.open("rb") as file:
        while chunk := file.read(CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()
