"""What the SUT notes of each sample while LoadGen measures, and the columns it is put together to afterwards.

A note is a few integers at the end of one flat array: no object is kept for a sample, and nothing is looked up.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from harness.engines.base import Failure, PromptTable
from harness.ledger.samples import NONE, Int64, SampleState


def _notes() -> array[int]:
    return array("q")


@dataclass(slots=True)
class Record:
    """Flat arrays of int64, so many a note. Samples go by LoadGen's response ids, which no two samples share.

    ``issued``: id, row, nanoseconds. ``firsts``: id, nanoseconds. ``dones``: id, nanoseconds, tokens, finish, and when
    the engine had the first and the last token.
    """

    issued: array[int] = field(default_factory=_notes)
    firsts: array[int] = field(default_factory=_notes)
    dones: array[int] = field(default_factory=_notes)
    failures: list[Failure] = field(default_factory=list)

    def frozen(self) -> FrozenRecord:
        """A copy that stands still, whatever LoadGen's thread goes on to do."""
        return FrozenRecord(
            issued=_table(self.issued, 3),
            firsts=_table(self.firsts, 2),
            dones=_table(self.dones, 6),
            failures=tuple(self.failures),
        )


@dataclass(frozen=True, slots=True, eq=False)
class FrozenRecord:
    """A record as tables: issued (n, 3), firsts (n, 2), dones (n, 6), int64, columns as :class:`Record` has them."""

    issued: Int64
    firsts: Int64
    dones: Int64
    failures: tuple[Failure, ...]

    @property
    def output_tokens(self) -> int:
        """Tokens of all answers."""
        return int(self.dones[:, 2].sum())

    def rows(self, numbers: Sequence[int]) -> list[int]:
        """The data set's rows of samples, by their ids."""
        return self.issued[self._places(np.array(numbers, dtype=np.int64)), 1].tolist()  # type: ignore[no-any-return]

    def by_sample(self, prompts: PromptTable) -> dict[str, Int64]:
        """The columns of samples.arrow (but the replica), in the order of issue."""
        rows = self.issued[:, 1]
        columns = {
            "index": rows,
            "issued_ns": self.issued[:, 2],
            "prompt_tokens": np.asarray(prompts.lengths, dtype=np.int64)[rows],
            "state": np.full(len(rows), SampleState.OUTSTANDING, dtype=np.int64),
        }
        done = self._places(self.dones[:, 0])
        columns["state"][done] = SampleState.ANSWERED
        for name, places, values in (
            ("first_token_ns", self._places(self.firsts[:, 0]), self.firsts[:, 1]),
            ("done_ns", done, self.dones[:, 1]),
            ("answer_tokens", done, self.dones[:, 2]),
            ("finish", done, self.dones[:, 3]),
            ("engine_first_token_ns", done, self.dones[:, 4]),
            ("engine_done_ns", done, self.dones[:, 5]),
        ):
            columns[name] = np.full(len(rows), NONE, dtype=np.int64)
            columns[name][places] = values
        failed = np.array([failure.number for failure in self.failures], dtype=np.int64)
        columns["state"][self._places(failed)] = SampleState.FAILED
        return columns

    def _places(self, ids: Int64) -> Int64:
        """Where in the order of issue the samples of these ids stand."""
        order = np.argsort(self.issued[:, 0], kind="stable")
        return order[np.searchsorted(self.issued[order, 0], ids)]


def extend(notes: array[int], *columns: Int64 | Sequence[int] | int) -> None:
    """Appends n notes at once: a column is n values, or one value for all."""
    notes.frombytes(np.stack(np.broadcast_arrays(*(np.asarray(c, np.int64) for c in columns)), axis=1).tobytes())


def _table(notes: array[int], width: int) -> Int64:
    """A copy as a table; a note that is being appended at this moment is whole or not there."""
    return np.frombuffer(notes.tobytes(), dtype=np.int64).reshape(-1, width)
