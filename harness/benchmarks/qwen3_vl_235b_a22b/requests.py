"""The chats of a table as a run asks them: ready JSON with its count of prompt tokens, made by several processes.

Each process reads its own pieces of the table and gives back bytes; what comes out is joined in the order of the rows,
so that the store is the same, byte for byte, however many there were.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from harness.benchmarks.qwen3_vl_235b_a22b import images, tokens
from harness.benchmarks.qwen3_vl_235b_a22b.catalogue import MEND, Catalogue, Piece, Reader
from harness.benchmarks.qwen3_vl_235b_a22b.dataset import candidates
from harness.benchmarks.qwen3_vl_235b_a22b.files import CATEGORIES, DESCRIPTION, FORMAT, IMAGE, TITLE
from harness.benchmarks.qwen3_vl_235b_a22b.prompts import Version, messages
from harness.engines.bodies import BodyStore, encoded
from harness.errors import DatasetError

VERSION: Final = 1
"""Grows whenever the same table makes other chats, or other counts of tokens."""
_COLUMNS: Final = (TITLE, DESCRIPTION, IMAGE, FORMAT, CATEGORIES)


@dataclass(frozen=True, slots=True)
class Packed:
    """The chats of a piece, one after the other, and of each its bytes and the tokens of its prompt."""

    data: bytes
    sizes: tuple[int, ...]
    tokens: tuple[int, ...]

    def bodies(self) -> Iterator[bytes]:
        """The chats one by one."""
        at = 0
        for size in self.sizes:
            yield self.data[at : at + size]
            at += size


class Packer:
    """Makes the chats of pieces of a table; pieces come in the order of their rows."""

    def __init__(self, path: Path, version: Version) -> None:
        self._path = path
        self._version = version
        self._reader = Reader(Catalogue.open(path), _COLUMNS)

    def pack(self, piece: Piece) -> Packed:
        """Raises DatasetError for a picture that lacks or cannot be read, and for a list of categories that is none."""
        made = [
            chat(row, self._version, f"{self._path}, row {piece.first + i}")
            for i, row in enumerate(self._reader.read(piece))
        ]
        bodies, counts = zip(*made, strict=True)
        return Packed(b"".join(bodies), tuple(map(len, bodies)), counts)


def chat(row: tuple[str | None, ...], version: Version, where: object) -> tuple[bytes, int]:
    """One row (title, description, picture, format, categories) as the JSON of a chat, and its prompt's tokens."""
    title, description, picture, kind, categories = row
    if not picture:
        raise DatasetError("the row has no picture", where=where, expected=f"base64 in {IMAGE}", mend=MEND)
    if not kind:
        raise DatasetError("the row does not name the picture's format", where=where, mend=MEND)
    candidates(categories, where)
    body = {"messages": messages(title, description, categories or "", images.as_url(kind, picture), version)}
    return encoded(body, where), tokens.count(body, where)


def build(
    table: Path,
    store: Path,
    *,
    version: Version,
    rows: int | None = None,
    processes: int = 1,
    progress: Callable[[int], None] = lambda _: None,
) -> BodyStore:
    """Makes the chats of a table, or of its first rows, and writes them to a store, which appears when it is whole.

    ``progress`` is given the rows done, now and then. Memory holds a few pieces a process. Raises DatasetError for the
    first row that is wrong, MissingError without a tokenizer or Pillow, OSError where the disk is full.
    """
    pieces = Catalogue.open(table).pieces(rows)
    counts: list[int] = []
    with contextlib.closing(_packed(table, version, pieces, min(processes, len(pieces)))) as made:
        return BodyStore.write(store, _bodies(made, counts, progress), tokens=counts)


def _packed(table: Path, version: Version, pieces: list[Piece], processes: int) -> Generator[Packed, None, None]:
    if processes <= 1:
        packer = Packer(table, version)
        yield from map(packer.pack, pieces)
        return
    # Imported here: a process that builds imports this module.
    from harness.benchmarks.qwen3_vl_235b_a22b.builders import in_order

    yield from in_order(table, version, pieces, processes)


def _bodies(made: Iterator[Packed], counts: list[int], progress: Callable[[int], None]) -> Iterator[bytes]:
    for packed in made:
        yield from packed.bodies()
        counts.extend(packed.tokens)
        progress(len(counts))
