"""One submitter's folder while it is built: every file with its hash and origin, as the manifest lists them."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path, PurePosixPath

from harness.errors import MissingError, Refused
from harness.ledger import hashes
from harness.submission.manifest import FileEntry

GENERATED = "generated"


class SubmitterTree:
    """Files below ``root``; no path is written twice with other content."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._entries: dict[str, FileEntry] = {}

    @property
    def entries(self) -> list[FileEntry]:
        """All files, by path."""
        return [self._entries[path] for path in sorted(self._entries)]

    def write(self, path: PurePosixPath, content: bytes, origin: str) -> None:
        """Writes one file."""
        self._record(path, hashlib.sha256(content).hexdigest(), origin)
        self._made(path).write_bytes(content)

    def copy_of_run(self, path: PurePosixPath, source: Path, origin: str, sha256: str | None) -> None:
        """Copies a run's file, which must have the hash that its record has. Refused where it has another, or none."""
        self._known(source, sha256)
        self.copy(path, source, origin, sha256=sha256)

    def copy(self, path: PurePosixPath, source: Path, origin: str, *, sha256: str | None = None) -> None:
        """Copies one file byte for byte. ``sha256`` is what it must have; Refused where it has another."""
        if not source.is_file():
            raise _gone(source)
        target = self._made(path)
        shutil.copyfile(source, target)
        found = hashes.sha256(target)
        if sha256 is not None and found != sha256:
            raise _changed(source, sha256, found)
        self._record(path, found, origin)

    def check(self, source: Path, sha256: str | None) -> None:
        """Refuses a file that is not copied whole but must be what a run wrote, by the hash in its record."""
        known = self._known(source, sha256)
        if (found := hashes.sha256(source)) != known:
            raise _changed(source, known, found)

    def _known(self, source: Path, sha256: str | None) -> str:
        if not source.is_file():
            raise _gone(source)
        if sha256 is None:
            raise Refused("the run's record has no hash of a file", where=source, mend="run the leg again")
        return sha256

    def _made(self, path: PurePosixPath) -> Path:
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        return target

    def _record(self, path: PurePosixPath, sha256: str, origin: str) -> None:
        known = self._entries.get(str(path))
        if known is not None and known.sha256 != sha256:
            raise ValueError(f"{path} is written twice with different content")
        self._entries[str(path)] = FileEntry(path=str(path), sha256=sha256, origin=origin)


def _gone(source: Path) -> MissingError:
    return MissingError("a file of the run is gone", where=source, mend="run the leg again")


def _changed(source: Path, expected: str, found: str) -> Refused:
    return Refused(
        "a file is not what the run wrote",
        where=source,
        expected=f"sha256 {expected}, found {found}",
        mend="run the leg again; results are never mended by hand",
    )
