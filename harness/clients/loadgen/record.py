"""What the SUT notes of each sample while LoadGen measures, and the columns it is put together to afterwards.

A note of one sample is a few integers at the end of a flat array: no object is kept for it, and a long run touches
little memory. A note of many samples keeps their columns as they came.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

import numpy as np

from harness.engines.base import Failure
from harness.ledger.samples import NONE, Int64, SampleState

Column: TypeAlias = Sequence[int]


pack_issued: Final = struct.Struct("=3q").pack
pack_first: Final = struct.Struct("=2q").pack
pack_done: Final = struct.Struct("=6q").pack
"""A note's bytes, for ``array.frombytes``: half of what it takes to append the integers themselves."""


def _notes() -> array[int]:
    return array("q")


@dataclass(slots=True)
class Record:
    """Flat arrays of int64, so many a note. Samples go by LoadGen's response ids, which no two samples share.

    ``issued``: id, row, nanoseconds. ``firsts``: id, nanoseconds; a first token that was told together with its
    completion has no note of its own. ``dones``: id, tokens, finish, when the engine had the first and the last token,
    and when the completion was told. ``issued_many`` and ``dones_many`` hold the same of many samples, as columns; the
    last is one value for all.
    """

    tells_first_tokens: bool
    issued: array[int] = field(default_factory=_notes)
    firsts: array[int] = field(default_factory=_notes)
    dones: array[int] = field(default_factory=_notes)
    issued_many: list[tuple[Column, Column, int]] = field(default_factory=list)
    dones_many: list[tuple[Column, Column, Column, Column, Column, int]] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)

    @property
    def issued_count(self) -> int:
        """How many samples are noted as issued."""
        return len(self.issued) // 3 + sum(len(note[0]) for note in self.issued_many)

    def frozen(self) -> FrozenRecord:
        """A copy that stands still, whatever LoadGen's thread goes on to do."""
        # What was issued last: nothing is told of a sample whose issue is not noted.
        failures, firsts, dones = (
            tuple(self.failures),
            _columns(self.firsts, 2),
            _columns(self.dones, 6, self.dones_many),
        )
        issued = _columns(self.issued, 3, self.issued_many)
        issued = issued[:, np.argsort(issued[2], kind="stable")]
        return FrozenRecord(
            tells_first_tokens=self.tells_first_tokens,
            ids=issued[0],
            rows=issued[1],
            issued_ns=issued[2],
            first_ids=firsts[0],
            first_ns=firsts[1],
            done_ids=dones[0],
            tokens=dones[1],
            finish=dones[2],
            engine_first_ns=dones[3],
            engine_done_ns=dones[4],
            done_ns=dones[5],
            failures=failures,
        )


def _columns(notes: array[int], width: int, many: Sequence[tuple[Column | int, ...]] = ()) -> Int64:
    """A copy as columns (width, n); a note that is being appended at this moment is whole or not there."""
    flat: Int64 = np.frombuffer(notes.tobytes(), dtype=np.int64).reshape(-1, width).T
    batches = (np.broadcast_arrays(*(np.asarray(column, np.int64) for column in note)) for note in tuple(many))
    return np.concatenate([flat, *map(np.stack, batches)], axis=1)


@dataclass(frozen=True, slots=True, eq=False)
class FrozenRecord:
    """A record in flat columns of int64: ``ids``, ``rows`` and ``issued_ns`` by sample in the order of issue,
    ``first_*`` by first token that was told by itself, the others by answer.
    """

    tells_first_tokens: bool
    ids: Int64
    rows: Int64
    issued_ns: Int64
    first_ids: Int64
    first_ns: Int64
    done_ids: Int64
    tokens: Int64
    finish: Int64
    engine_first_ns: Int64
    engine_done_ns: Int64
    done_ns: Int64
    failures: tuple[Failure, ...]

    def outstanding(self) -> Int64:
        """Samples that are neither answered nor failed."""
        told = np.concatenate((self.done_ids, np.array([failure.number for failure in self.failures], dtype=np.int64)))
        return self.ids[~np.isin(self.ids, told)]

    def failed_places(self) -> Int64:
        """Where in the order of issue the failed samples stand."""
        return self._places(np.array([failure.number for failure in self.failures], dtype=np.int64))

    def with_the_rest_failed(self, kind: str, message: str) -> FrozenRecord:
        """The record with every sample that is outstanding as a failed one: the engine has gone."""
        rest = self.outstanding().tolist()
        return replace(self, failures=(*self.failures, *(Failure(number, kind, message) for number in rest)))

    def rows_of(self, ids: Sequence[int]) -> list[int]:
        """The data set's rows of samples."""
        rows: list[int] = self.rows[self._places(np.array(ids, dtype=np.int64))].tolist()
        return rows

    def by_sample(self, prompt_tokens: Int64) -> dict[str, Int64]:
        """The columns of samples.arrow (but the replica), in the order of issue. ``prompt_tokens`` is by row."""
        done = self._places(self.done_ids)
        failed = self.failed_places()
        state = np.full(len(self.ids), SampleState.OUTSTANDING, dtype=np.int64)
        state[done] = SampleState.ANSWERED
        state[failed] = SampleState.FAILED
        columns = {
            "index": self.rows,
            "issued_ns": self.issued_ns,
            "prompt_tokens": np.asarray(prompt_tokens, dtype=np.int64)[self.rows],
            "state": state,
            "done_ns": self._placed(done, self.done_ns),
            "answer_tokens": self._placed(done, self.tokens),
            "finish": self._placed(done, self.finish),
            "engine_first_token_ns": self._placed(done, self.engine_first_ns),
            "engine_done_ns": self._placed(done, self.engine_done_ns),
        }
        firsts = columns["done_ns"].copy() if self.tells_first_tokens else self._placed(done[:0], self.done_ns[:0])
        firsts[self._places(self.first_ids)] = self.first_ns
        return columns | {"first_token_ns": firsts}

    def _placed(self, places: Int64, values: Int64) -> Int64:
        column = np.full(len(self.ids), NONE, dtype=np.int64)
        column[places] = values
        return column

    def _places(self, ids: Int64) -> Int64:
        """Where in the order of issue the samples of these ids stand."""
        order = np.argsort(self.ids, kind="stable")
        return order[np.searchsorted(self.ids[order], ids)]
