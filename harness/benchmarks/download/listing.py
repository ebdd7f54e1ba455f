"""What lies on MLCommons' storage: an index that names the address of a data set's files, and a list of their md5.

Both are small texts: ``<name>.uri`` holds one address, ``<name>.md5`` beside it a line a file as md5sum writes them
(mlcommons/r2-downloader). They come from a network, so that nothing in them is believed before it was looked at.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from urllib.parse import quote, urlsplit

from harness.errors import DatasetError

MEND = "ask MLCommons; nothing was downloaded"
_LINE = re.compile(r"([0-9a-fA-F]{32})[ \t]+\*?(?:\./)?(\S(?:.*\S)?)[ \t]*")


@dataclass(frozen=True, slots=True)
class ListedFile:
    """A file of the list: its path below the data set's folder, and the md5 of its content in hexadecimal."""

    path: str
    md5: str


@dataclass(frozen=True, slots=True)
class Listing:
    """The files of a data set, in the list's order."""

    files: tuple[ListedFile, ...]

    def __post_init__(self) -> None:
        paths = [file.path for file in self.files]
        if len(set(paths)) < len(paths):
            raise ValueError("a path that is listed twice")

    def agrees(self, required: list[str], known: Mapping[str, str], where: object) -> None:
        """DatasetError where the list lacks a file that legs need, or names another md5 than MLCommons' texts do."""
        md5 = {file.path: file.md5 for file in self.files}
        missing = [path for path in required if path not in md5]
        if missing:
            raise DatasetError(
                f"the list of the data set's files has no {', '.join(missing)}",
                where=where,
                expected=", ".join(required),
                mend=MEND,
            )
        for path, wanted in known.items():
            if md5.get(path, wanted) != wanted:
                raise DatasetError(
                    f"the list says another md5 of {path} than MLCommons' documentation: {md5[path]}",
                    where=where,
                    expected=wanted,
                    mend="another edition of the data set is not this round's; ask MLCommons",
                )


@dataclass(frozen=True, slots=True)
class Index:
    """The address of an index, and what follows from it."""

    url: str

    @property
    def name(self) -> str:
        """What the data set is called there."""
        return PurePosixPath(urlsplit(self.url).path).stem

    @property
    def list_url(self) -> str:
        """The address of the list of md5."""
        return self.url.removesuffix(".uri") + ".md5"

    def base(self, text: str) -> str:
        """The address below which the files lie, from the index's text. DatasetError unless it is on the same host."""
        said = text.strip()
        found, own = urlsplit(said), urlsplit(self.url)
        if (found.scheme, found.netloc) != (own.scheme, own.netloc) or not found.path.strip("/"):
            raise DatasetError(
                f"the index names no address of its own host: {said[:200]!r}",
                where=self.url,
                expected=f"{own.scheme}://{own.netloc}/…",
                mend=MEND,
            )
        return said.rstrip("/")


def file_url(base: str, path: str) -> str:
    """The address of a file."""
    return f"{base}/{quote(path)}"


def list_path(folder: Path, index: Index) -> Path:
    """Where the list lies in a data set's folder; MLCommons' own downloader leaves it there too."""
    return folder / f"{index.name}.md5"


def parse_listing(text: str, where: object) -> Listing:
    """Reads a list of md5. DatasetError for a line of another form, a path that leads elsewhere, one that is double."""
    files: dict[str, ListedFile] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        found = _LINE.fullmatch(line)
        if found is None or not _is_inside(found[2]) or found[2] in files:
            raise DatasetError(
                f"not a line of a list of md5: {line[:200]!r}",
                where=f"{where}, line {number}",
                expected="32 hexadecimal digits, blanks, and a path below the data set's folder, each path once",
                mend="remove the list and fetch it again",
            )
        files[found[2]] = ListedFile(found[2], found[1].lower())
    if not files:
        raise DatasetError("the list of md5 is empty", where=where, mend="remove the list and fetch it again")
    return Listing(tuple(files.values()))


def _is_inside(path: str) -> bool:
    parts = path.split("/")
    return path.isprintable() and "\\" not in path and not any(part in ("", ".", "..") for part in parts)
