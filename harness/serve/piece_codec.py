"""Ids of texts that are known beforehand: pieces of a few characters, as many as a token has about."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from harness.serve.texts import Decoder

PIECE: Final = 4
"""Characters."""


class PieceCodec:
    """Encodes what it was made of without loss; of other texts only the length is kept, which is all a script reads."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._pieces = [""]
        self._ids = {"": 0}
        for text in texts:
            for piece in _cut(text):
                if piece not in self._ids:
                    self._ids[piece] = len(self._pieces)
                    self._pieces.append(piece)

    def __len__(self) -> int:
        return len(self._pieces)

    def encode(self, text: str) -> list[int]:
        """The ids of a text; what was in no known one is 0."""
        return [self._ids.get(piece, 0) for piece in _cut(text)]

    def decoder(self, *, skip_special: bool) -> Decoder:
        """For one answer."""
        return _Pieces(self._pieces)


class _Pieces:
    def __init__(self, pieces: Sequence[str]) -> None:
        self._pieces = pieces

    def feed(self, ids: Sequence[int], *, last: bool) -> str:
        """The pieces."""
        return "".join(self._pieces[each] for each in ids)


def _cut(text: str) -> Iterator[str]:
    return (text[start : start + PIECE] for start in range(0, len(text), PIECE))
