"""One file from a storage to a folder: resumed where it stopped, and checked before it gets its name."""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from harness.benchmarks.base import CHUNK_BYTES
from harness.benchmarks.download.checked import md5_of
from harness.benchmarks.download.listing import ListedFile
from harness.benchmarks.download.web import BrokeOff, Part, Web, read_some
from harness.errors import ConfigError, DatasetError, InUseError, MissingError
from harness.events import Note, Observer, ignore

TRIES = 5
"""Failures one after the other, without a byte in between, after which a download gives up."""
MAX_PAUSE_S = 30.0
PART = ".part"


@dataclass(frozen=True, slots=True)
class FileProgress:
    """How far a file is, in bytes."""

    path: str
    done: int
    size: int


Tell = Callable[[FileProgress], None]


def wait(seconds: float) -> None:
    """Lets a storage or a network come back."""
    time.sleep(seconds)


def quiet(progress: FileProgress) -> None:
    """Tells nobody."""


@dataclass(frozen=True, slots=True)
class Told:
    """Who is told: of bytes ``progress``, of whatever else is worth a line ``note``."""

    progress: Tell = quiet
    note: Observer = ignore


@dataclass(frozen=True, slots=True)
class Transfer:
    """A file to be had: where from, where to, and its size by the server's word."""

    file: ListedFile
    url: str
    folder: Path
    size: int

    @property
    def target(self) -> Path:
        """Where the file lies once it is right."""
        return self.folder / self.file.path

    @property
    def part(self) -> Path:
        """Where it grows."""
        return part_path(self.folder, self.file)

    @property
    def missing_bytes(self) -> int:
        """Bytes that are still to come."""
        there = self.part.stat().st_size if self.part.is_file() else 0
        return self.size - there if there <= self.size else self.size

    def run(self, web: Web, told: Told, pause: Callable[[float], None] = wait) -> None:
        """Fetches what is missing and gives the file its name.

        Raises MissingError where the network or the disk fails (what came is kept), DatasetError where the content is
        another (kept under another name), InUseError where another process fetches the same file.
        """
        with folders_only(self.target):
            self.target.parent.mkdir(parents=True, exist_ok=True)
        with _mine_alone(self.part) as file:
            self._fill(file, web, told, pause)
            os.fsync(file.fileno())
            self._check()
            self.part.replace(self.target)

    def _fill(self, file: BinaryIO, web: Web, told: Told, pause: Callable[[float], None]) -> None:
        have = file.seek(0, os.SEEK_END)
        if have > self.size:
            have = _cut(file, 0)
        told.progress(FileProgress(self.file.path, have, self.size))
        failures = 0
        while have < self.size:
            before, reason = have, "the connection was cut"
            try:
                with web.part(self.url, have) as part:
                    have = self._append(file, part, have, told.progress)
            except BrokeOff as error:
                reason = str(error)
                have = file.seek(0, os.SEEK_END)
            failures = 0 if have > before else failures + 1
            if failures >= TRIES:
                raise MissingError(
                    f"the download broke off: {reason}",
                    where=self.url,
                    expected=f"{self.size} bytes; {have} are there, in {self.part}",
                    mend="run the same command again: it goes on from there",
                )
            if have < self.size:
                told.note(Note(f"{self.file.path}: {reason}; it goes on from byte {have:,}"))
                pause(min(2.0**failures, MAX_PAUSE_S))

    def _append(self, file: BinaryIO, part: Part, have: int, tell: Tell) -> int:
        if part.total != self.size:
            raise DatasetError(
                f"the file is of {part.total} bytes now; it was of {self.size} a moment ago",
                where=self.url,
                mend="run the same command again",
            )
        if part.start != have:
            have = _cut(file, 0)
            if part.start:
                raise BrokeOff(f"asked from byte {have} on, the server answers from byte {part.start} on")
        while have < self.size and (chunk := read_some(part, min(CHUNK_BYTES, self.size - have))):
            self._write(file, chunk)
            have += len(chunk)
            tell(FileProgress(self.file.path, have, self.size))
        return have

    def _write(self, file: BinaryIO, chunk: bytes) -> None:
        left = memoryview(chunk)
        try:
            while left:
                left = left[file.write(left) :]
        except OSError as error:
            raise MissingError(
                f"what was downloaded cannot be written: {error.strerror}",
                where=self.part,
                mend="free space; the same command goes on from what is there",
            ) from None

    def _check(self) -> None:
        found = md5_of(self.part)
        if found == self.file.md5:
            return
        aside = set_aside(self.part, self.target, found)
        raise DatasetError(
            f"what was downloaded has the md5 {found}",
            where=f"{self.url}, kept as {aside}",
            expected=self.file.md5,
            mend="run the same command again: the file is fetched anew",
        )


def part_path(folder: Path, file: ListedFile) -> Path:
    """Where a listed file grows while it is fetched."""
    return folder / (file.path + PART)


def set_aside(path: Path, target: Path, md5: str) -> Path:
    """Gives a file of another content than ``target`` should have a name under which nobody reads it."""
    aside = target.with_name(f"{target.name}.wrong-{md5[:8]}")
    return path.replace(aside)


@contextlib.contextmanager
def folders_only(path: Path) -> Iterator[None]:
    """ConfigError where a file lies in the place of a folder, or a folder in that of a file."""
    try:
        yield
    except (FileExistsError, NotADirectoryError, IsADirectoryError) as error:
        raise ConfigError(
            f"a file and a folder want the same name: {error.strerror}",
            where=error.filename or path,
            mend="move it away, or name another data folder with --data_dir",
        ) from None


@contextlib.contextmanager
def _mine_alone(part: Path) -> Iterator[BinaryIO]:
    with folders_only(part):
        file = part.open("ab", buffering=0)
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InUseError("another process downloads this file", where=part, mend="wait for it to end") from None
        yield file


def _cut(file: BinaryIO, size: int) -> int:
    file.truncate(size)
    return file.seek(0, os.SEEK_END)
