"""What lies in a tree, looked at once and without following a link; and its files, whatever is in them."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import yaml

from harness.logs import FilePass

MAX_TEXT_BYTES = 16 << 20
"""Far above any description, table or README; a file beyond it is not read as text."""

_CHUNK_BYTES = 1 << 20


class Unreadable(Exception):
    """A file that is not there, or does not hold what its name says. The message is what a finding says."""


@dataclass(frozen=True, slots=True)
class Node:
    """One name in the tree. ``kind`` is ``file``, ``folder``, ``link`` or ``other``; ``bytes`` is a file's size."""

    path: PurePosixPath
    kind: str
    bytes: int


class TreeIndex:
    """A tree by relative path. Links are never followed: what hangs on one counts as absent.

    ``unreadable`` are the folders that could not be listed, with the reason. Below the folders that
    :meth:`hash_below` was told, what is read is hashed on the way: :meth:`sha256` then reads only what nobody has read.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.unreadable: dict[PurePosixPath, str] = {}
        self._nodes: dict[PurePosixPath, Node] = {}
        self._children: dict[PurePosixPath, list[Node]] = {}
        self._digests: dict[PurePosixPath, str] = {}
        self._hashed_below: set[tuple[str, ...]] = set()
        pending = [PurePosixPath()]
        while pending:
            folder = pending.pop()
            children = sorted(self._list(folder), key=lambda node: node.path)
            self._children[folder] = children
            self._nodes.update((node.path, node) for node in children)
            pending += [node.path for node in children if node.kind == "folder"]

    def _list(self, folder: PurePosixPath) -> Iterator[Node]:
        try:
            with os.scandir(self.root / folder) as entries:
                for entry in entries:
                    yield _node(folder / entry.name, entry)
        except OSError as error:
            self.unreadable[folder] = error.strerror or str(error)

    @property
    def nodes(self) -> Mapping[PurePosixPath, Node]:
        """Everything, by path."""
        return self._nodes

    def children(self, folder: PurePosixPath) -> list[Node]:
        """What lies directly in a folder, by name; nothing where there is no such folder."""
        return self._children.get(folder, [])

    def folders(self, folder: PurePosixPath) -> list[str]:
        """The names of the folders in a folder."""
        return [node.path.name for node in self.children(folder) if node.kind == "folder"]

    def is_folder(self, path: PurePosixPath) -> bool:
        """Whether there is a real folder at ``path``."""
        return path in self._children

    def file(self, path: PurePosixPath) -> Node | None:
        """The plain file at ``path``, None where there is none."""
        node = self._nodes.get(path)
        return node if node is not None and node.kind == "file" else None

    def has_content(self, path: PurePosixPath) -> bool:
        """Whether there is a plain file at ``path`` that is not empty."""
        node = self.file(path)
        return node is not None and node.bytes > 0

    def files_below(self, folder: PurePosixPath) -> Iterator[Node]:
        """All plain files at any depth below a folder."""
        pending = [folder]
        while pending:
            for node in self.children(pending.pop()):
                if node.kind == "file":
                    yield node
                elif node.kind == "folder":
                    pending.append(node.path)

    def locate(self, path: PurePosixPath) -> Path:
        """Where a file of the tree is on this machine."""
        return self.root / path

    def read(self, path: PurePosixPath) -> bytes:
        """A file's content; Unreadable where it is absent, too large for a text, or cannot be read."""
        node = self.file(path)
        if node is None:
            raise Unreadable("no such file")
        if node.bytes > MAX_TEXT_BYTES:
            raise Unreadable(f"{node.bytes} bytes, too large to be what its name says")
        try:
            content = (self.root / path).read_bytes()
        except OSError as error:
            raise Unreadable(f"cannot be read: {error.strerror}") from None
        if self._is_hashed(path):
            self._digests[path] = hashlib.sha256(content).hexdigest()
        return content

    def hash_below(self, folder: PurePosixPath) -> None:
        """All files below a folder will be asked for their hashes."""
        self._hashed_below.add(folder.parts)

    def _is_hashed(self, path: PurePosixPath) -> bool:
        if not self._hashed_below or path in self._digests:
            return False
        parts = path.parts
        return any(parts[: len(folder)] == folder for folder in self._hashed_below)

    @contextlib.contextmanager
    def opened(self, path: PurePosixPath) -> Iterator[FilePass]:
        """One pass over a file of any size, for a reader of logs. LogError where it cannot be opened or read."""
        hashed = self._is_hashed(path)
        with FilePass(self.root / path, hashed=hashed) as file:
            yield file
            if hashed:
                self._digests[path] = file.sha256()

    def read_text(self, path: PurePosixPath) -> str:
        """A file's text; Unreadable where it is no UTF-8."""
        try:
            return self.read(path).decode("utf-8")
        except UnicodeDecodeError as error:
            raise Unreadable(f"not UTF-8 text: {error.reason} at byte {error.start}") from None

    def read_object(self, path: PurePosixPath) -> dict[str, Any]:
        """A file's JSON object; Unreadable where it holds none."""
        try:
            data = json.loads(self.read_text(path))
            json.dumps(data, ensure_ascii=False).encode("utf-8")  # halves of characters can be read, not written
        except RecursionError:
            raise Unreadable("not JSON: nested without end") from None
        except ValueError as error:
            raise Unreadable(f"not JSON: {error}") from None
        if not isinstance(data, dict):
            raise Unreadable(f"a JSON {type(data).__name__}, not an object")
        return data

    def read_yaml(self, path: PurePosixPath) -> Any:  # noqa: ANN401 - whatever it holds
        """A YAML file's content; Unreadable where it does not parse."""
        try:
            return yaml.safe_load(self.read_text(path))
        except (yaml.YAMLError, RecursionError, ValueError) as error:
            raise Unreadable(f"not YAML: {error}") from None

    def sha256(self, path: PurePosixPath) -> str:
        """The hash of a file's content, in hexadecimal; Unreadable where it cannot be read."""
        if path not in self._digests:
            digest = hashlib.sha256()
            try:
                with (self.root / path).open("rb") as handle:
                    while chunk := handle.read(_CHUNK_BYTES):
                        digest.update(chunk)
            except OSError as error:
                raise Unreadable(f"cannot be read: {error.strerror}") from None
            self._digests[path] = digest.hexdigest()
        return self._digests[path]


def _node(path: PurePosixPath, entry: os.DirEntry[str]) -> Node:
    status = entry.stat(follow_symlinks=False)
    if stat.S_ISLNK(status.st_mode):
        return Node(path, "link", 0)
    if stat.S_ISDIR(status.st_mode):
        return Node(path, "folder", 0)
    if stat.S_ISREG(status.st_mode):
        return Node(path, "file", status.st_size)
    return Node(path, "other", 0)
