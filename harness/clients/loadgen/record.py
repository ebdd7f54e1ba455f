"""What the SUT notes of each sample while LoadGen measures, and the columns it is put together to afterwards.

A note keeps the columns that were handed over anyway, so it costs one tuple however many samples it is about.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from harness.engines.base import Failure, PromptTable
from harness.ledger.samples import NONE, Int64, SampleState

Column: TypeAlias = Sequence[int]
Issued: TypeAlias = tuple[Column, Column, int]
"""Ids, rows, and when LoadGen handed them over."""
Firsts: TypeAlias = tuple[Column, int]
"""Ids, and when their first tokens were told."""
Dones: TypeAlias = tuple[Column, Column, Column, Column, Column, int]
"""Ids, tokens, finish, when the engine had first and last token, and when the completion was told."""


@dataclass(slots=True)
class Record:
    """Notes in the order they were made. Samples go by LoadGen's response ids, which no two samples share.

    A first token that was told together with its completion has no note of its own.
    """

    tells_first_tokens: bool
    issued: list[Issued] = field(default_factory=list)
    firsts: list[Firsts] = field(default_factory=list)
    dones: list[Dones] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)

    def frozen(self) -> FrozenRecord:
        """A copy that stands still, whatever LoadGen's thread goes on to do."""
        # What was issued last: nothing is told of a sample whose issue is not noted.
        failures, firsts, dones = tuple(self.failures), list(self.firsts), list(self.dones)
        issued = list(self.issued)
        done_counts = [len(note[0]) for note in dones]
        return FrozenRecord(
            tells_first_tokens=self.tells_first_tokens,
            ids=_joined(note[0] for note in issued),
            rows=_joined(note[1] for note in issued),
            issued_ns=np.repeat(_column(note[2] for note in issued), [len(note[0]) for note in issued]),
            first_ids=_joined(note[0] for note in firsts),
            first_ns=np.repeat(_column(note[1] for note in firsts), [len(note[0]) for note in firsts]),
            done_ids=_joined(note[0] for note in dones),
            tokens=_joined(note[1] for note in dones),
            finish=_joined(note[2] for note in dones),
            engine_first_ns=_joined(note[3] for note in dones),
            engine_done_ns=_joined(note[4] for note in dones),
            done_ns=np.repeat(_column(note[5] for note in dones), done_counts),
            failures=failures,
        )


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

    def rows_of(self, ids: Column) -> list[int]:
        """The data set's rows of samples."""
        rows: list[int] = self.rows[self._places(np.array(ids, dtype=np.int64))].tolist()
        return rows

    def by_sample(self, prompts: PromptTable) -> dict[str, Int64]:
        """The columns of samples.arrow (but the replica), in the order of issue."""
        done = self._places(self.done_ids)
        failed = self._places(np.array([failure.number for failure in self.failures], dtype=np.int64))
        state = np.full(len(self.ids), SampleState.OUTSTANDING, dtype=np.int64)
        state[done] = SampleState.ANSWERED
        state[failed] = SampleState.FAILED
        columns = {
            "index": self.rows,
            "issued_ns": self.issued_ns,
            "prompt_tokens": np.asarray(prompts.lengths, dtype=np.int64)[self.rows],
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


def _joined(columns: Iterable[Column]) -> Int64:
    return _column(itertools.chain.from_iterable(columns))


def _column(values: Iterable[int]) -> Int64:
    return np.fromiter(values, dtype=np.int64)
