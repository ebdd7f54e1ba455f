"""The answers of a scripted engine: counted up from the row, or as they were recorded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np

from harness.engines.base import Finish, Int32Array, Int64Array

ANY_ROW: Final = 1 << 62
FEW: Final = 32
"""Up to so many views are put together faster than one gather is set up."""


class Script(Protocol):
    """Which answer belongs to a row."""

    rows: int
    """For how many rows there are answers."""

    def one(self, row: int, cap: int) -> tuple[Int32Array, int]:
        """The first ``cap`` ids of the answer of one row, a view, and where in memory they lie."""

    def many(self, rows: Sequence[int], cap: int) -> Batch:
        """The same for n rows, in memory of their own."""


@dataclass(slots=True)
class Batch:
    """n answers as :class:`~harness.engines.base.Answers` has them; ``longest`` is the length of the longest."""

    tokens: Int32Array
    ends: Sequence[int]
    finish: Sequence[int]
    longest: int

    def at(self, position: int, numbers: Sequence[int]) -> tuple[Sequence[int], Int32Array]:
        """Which of the answers have a token at a position, by their numbers, and those tokens."""
        ends = np.asarray(self.ends, np.int64)
        starts = np.concatenate((np.zeros(1, np.int64), ends[:-1]))
        has = ends - starts > position
        if has.all():
            return numbers, self.tokens[starts + position]
        return [numbers[i] for i in np.flatnonzero(has).tolist()], self.tokens[starts[has] + position]


class EvenBatch(Batch):
    """Answers of one length: their places need no looking up."""

    def at(self, position: int, numbers: Sequence[int]) -> tuple[Sequence[int], Int32Array]:
        """Every answer has a token at every position below that length."""
        return numbers, self.tokens[position :: self.longest].copy()


class CountingScript:
    """Every answer has ``length`` ids and counts up from its row, modulo the vocabulary."""

    rows = ANY_ROW

    def __init__(self, length: int, vocab_size: int) -> None:
        self._vocab_size = vocab_size
        self._length = length
        self._counted: Int32Array = np.arange(vocab_size + length, dtype=np.int64).__mod__(vocab_size).astype(np.int32)
        self._address: int = self._counted.ctypes.data

    def one(self, row: int, cap: int) -> tuple[Int32Array, int]:
        """A view into one table: nothing is computed."""
        first = row % self._vocab_size
        last = first + (self._length if self._length < cap else cap)
        return self._counted[first:last], self._address + 4 * first

    def many(self, rows: Sequence[int], cap: int) -> Batch:
        """n equal lengths, so one gather from the table."""
        n, length = len(rows), min(self._length, cap)
        finish = (Finish.LENGTH if length >= cap else Finish.STOP,) * n
        if not length:
            return Batch(self._counted[:0], (0,) * n, finish, 0)
        if n <= FEW:
            tokens = np.concatenate([self.one(row, cap)[0] for row in rows])
        else:
            first = np.array(rows, np.int64) % self._vocab_size
            tokens = self._counted[first[:, None] + np.arange(length)].reshape(-1)
        return EvenBatch(tokens, range(length, n * length + 1, length), finish, length)


class RecordedScript:
    """Answers that were written before, as :mod:`~harness.engines.scripted_files` reads them."""

    def __init__(self, tokens: Int32Array, ends: Int64Array) -> None:
        self.rows = len(ends)
        self._tokens = tokens
        self._address: int = tokens.ctypes.data
        self._ends = ends
        self._starts = np.concatenate((np.zeros(1, np.int64), ends[:-1])) if len(ends) else ends

    def one(self, row: int, cap: int) -> tuple[Int32Array, int]:
        """A view into the file's array."""
        start = int(self._starts[row])
        return self._tokens[start : min(int(self._ends[row]), start + cap)], self._address + 4 * start

    def many(self, rows: Sequence[int], cap: int) -> Batch:
        """A ragged gather: the place of each id is its answer's start plus its position in the answer."""
        which = np.array(rows, np.int64)
        starts = self._starts[which]
        lengths = np.minimum(self._ends[which] - starts, cap)
        ends = np.cumsum(lengths)
        places = np.repeat(starts - (ends - lengths), lengths) + np.arange(int(lengths.sum()))
        finish = np.where(lengths >= cap, int(Finish.LENGTH), int(Finish.STOP))
        return Batch(self._tokens[places], ends.tolist(), finish.tolist(), int(lengths.max()))
