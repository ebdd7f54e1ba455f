"""What is noted of each turn while LoadGen measures, and the columns it is put together to afterwards.

As with samples (:mod:`~harness.clients.loadgen.record`) a note is a few integers at the end of a flat array. Replies go
to a file as they come, so that no run is too long for the memory.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from harness.clients.loadgen.turn_order import Trajectory
from harness.errors import MissingError
from harness.ledger.record import TurnCounts
from harness.ledger.samples import NONE, Int64
from harness.ledger.turns import COLUMNS, TurnState, failure_line, reply_line

_BUFFER_BYTES = 1 << 16
_pack_issued: Final = struct.Struct("=3q").pack
_pack_first: Final = struct.Struct("=2q").pack
_pack_answered: Final = struct.Struct("=7q").pack
_OF_AN_ANSWER: Final = ("first_token_ns", "done_ns", "answer_tokens", "prompt_tokens", "cached_tokens", "finish")


class TurnRecord:
    """Notes of turns by the number of their request, which counts up from 0 through the run.

    All calls come from one thread, but for :attr:`answered_count`. MissingError where the replies cannot be written.
    """

    def __init__(self, replies: Path) -> None:
        self._path = replies
        self._issued = array("q")
        """Sample, turn, nanoseconds; in the order of numbers."""
        self._firsts = array("q")
        """Number, nanoseconds."""
        self._answered = array("q")
        """Number, and what :data:`_OF_AN_ANSWER` names."""
        self._failed: array[int] = array("q")
        """Number."""
        try:
            self._file = replies.open("wb", _BUFFER_BYTES)
        except OSError as error:
            raise self._full(error) from None

    @property
    def answered_count(self) -> int:
        """Turns answered so far."""
        return len(self._answered) // 7

    @property
    def notes(self) -> tuple[array[int], array[int], array[int]]:
        """What grows of issues, answers and failures, for whoever follows it: 3, 7 and 1 integers a note, each begun by
        the number of its request but an issue, which is a sample, a turn and nanoseconds.
        """
        return self._issued, self._answered, self._failed

    def issued(self, trajectory: Trajectory, now_ns: int) -> int:
        """Its turn is about to be handed to the engine: the number of the request."""
        number = len(self._issued) // 3
        self._issued.frombytes(_pack_issued(trajectory.sample, trajectory.chat - trajectory.begin, now_ns))
        return number

    def first_token(self, number: int, at_ns: int) -> None:
        """The engine told a first token by itself."""
        self._firsts.frombytes(_pack_first(number, at_ns))

    def answered(self, number: int, trajectory: Trajectory, reply: bytes, *note: int) -> None:
        """Its turn was answered: the reply's JSON; when the engine had the first and the last token, tokens of the
        answer, of the prompt, of those the cached ones, finish.
        """
        self._answered.frombytes(_pack_answered(number, *note))
        turn = trajectory.chat - trajectory.begin
        self._write(reply_line(trajectory.sample, trajectory.row, turn, reply))

    def failed(self, number: int, trajectory: Trajectory, kind: str, message: str) -> None:
        """Its turn failed."""
        self._failed.append(number)
        self._write(failure_line(trajectory.sample, trajectory.row, trajectory.turn, kind, message))

    def first_numbers(self) -> tuple[Int64, Int64]:
        """The samples that were begun, and the number of the first request of each; in the order of samples."""
        issued = _columns(self._issued, 3)
        numbers = np.flatnonzero(issued[1] == 0)
        order = np.argsort(issued[0, numbers], kind="stable")
        return issued[0, numbers][order], numbers[order]

    def close(self) -> None:
        """Writes out what is still in memory; MissingError where there is no room for it."""
        try:
            self._file.close()
        except OSError as error:
            raise self._full(error) from None

    def frozen(self, rows: Int64, failed: Int64, rows_of: Callable[[int], range]) -> FrozenTurns:
        """Every turn of the samples that LoadGen issued, whose library rows these are, in the order of issue.

        ``failed`` are the places of samples that failed; ``rows_of`` tells the chats of a row.
        """
        # What was issued last: nothing is told of a turn whose issue is not noted.
        bad, answered, firsts = _columns(self._failed, 1), _columns(self._answered, 7), _columns(self._firsts, 2)
        issued = _columns(self._issued, 3)
        columns, starts = _unasked(rows, rows_of)
        places = starts[issued[0]] + issued[1]
        columns["issued_ns"][places] = issued[2]
        columns["first_token_ns"][places[firsts[0]]] = firsts[1]
        for name, values in zip(_OF_AN_ANSWER, answered[1:], strict=True):
            columns[name][places[answered[0]]] = values
        broken = np.zeros(len(starts), bool)
        broken[failed] = True
        broken[issued[0, bad[0]]] = True
        asked, ended_badly = columns["issued_ns"] != NONE, broken[columns["sample"]]
        state = columns["state"]
        state[ended_badly] = np.where(asked[ended_badly], TurnState.FAILED, TurnState.SKIPPED)
        state[places[answered[0]]] = TurnState.ANSWERED
        return FrozenTurns(columns, starts)

    def _write(self, line: bytes) -> None:
        try:
            self._file.write(line)
        except OSError as error:
            raise self._full(error) from None

    def _full(self, error: OSError) -> MissingError:
        return MissingError(
            f"cannot write: {error.strerror}",
            where=self._path,
            mend="free space on this disk; what is measured is kept",
        )


@dataclass(frozen=True, slots=True, eq=False)
class FrozenTurns:
    """The columns of turns.arrow, and where in them each sample's turns start (each has one at least)."""

    columns: dict[str, Int64]
    starts: Int64

    def counts(self) -> TurnCounts:
        """How many there are of each state."""
        of = np.bincount(self.columns["state"], minlength=len(TurnState)).tolist()
        return TurnCounts(
            issued=int((self.columns["issued_ns"] != NONE).sum()),
            answered=of[TurnState.ANSWERED],
            failed=of[TurnState.FAILED],
            skipped=of[TurnState.SKIPPED],
            outstanding=of[TurnState.OUTSTANDING],
        )

    def prompt_tokens(self) -> Int64:
        """By sample, the prompt tokens of all its turns together; NONE where the server did not tell them of each."""
        if not len(self.starts):
            return np.zeros(0, np.int64)
        told = self.columns["prompt_tokens"]
        whole = np.minimum.reduceat(told, self.starts) != NONE
        return np.where(whole, np.add.reduceat(told, self.starts), NONE)


def _columns(notes: array[int], width: int) -> Int64:
    """A copy as columns (width, n)."""
    columns: Int64 = np.frombuffer(notes.tobytes(), np.int64).reshape(-1, width).T
    return columns


def _unasked(rows: Int64, rows_of: Callable[[int], range]) -> tuple[dict[str, Int64], Int64]:
    """The columns of all turns of samples of these rows as if none had been asked, and where each sample's start."""
    which, places = np.unique(rows, return_inverse=True)
    chats = [rows_of(row) for row in which.tolist()]
    begins = np.array([each.start for each in chats], np.int64)[places]
    counts = np.array([len(each) for each in chats], np.int64)[places]
    starts = np.cumsum(counts) - counts
    sample = np.repeat(np.arange(len(rows)), counts)
    turn = np.arange(len(sample)) - starts[sample]
    columns = {name: np.full(len(sample), NONE, np.int64) for name in COLUMNS}
    columns |= {"sample": sample, "row": rows[sample], "turn": turn, "chat": begins[sample] + turn}
    columns["state"][:] = TurnState.OUTSTANDING
    return columns, starts
