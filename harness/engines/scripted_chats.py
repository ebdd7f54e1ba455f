"""The chats of a scripted engine: replies that were written before, or ones that name their row."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import orjson

from harness.engines.base import Failure, Finish, Int32Array, Int64Array, PromptTable, Replies, Requests, Workload
from harness.engines.bodies import BodyStore
from harness.engines.scripted_answers import ANY_ROW

NO_ID: Final = -1


class Reply(NamedTuple):
    """One reply: its JSON as :class:`~harness.engines.base.Replies` has it, its tokens, how it ended."""

    data: bytes
    tokens: int
    finish: Finish


class ReplyScript(Protocol):
    """Which reply belongs to a row."""

    rows: int
    """For how many rows there are replies."""

    def one(self, row: int) -> tuple[bytes, int]:
        """The JSON of the reply to one row, and how many tokens it has."""


class CountingReplies:
    """Every reply names its row, and is said to have ``length`` tokens."""

    rows = ANY_ROW

    def __init__(self, length: int) -> None:
        self._length = length

    def one(self, row: int) -> tuple[bytes, int]:
        """A sentence; nothing where replies have no tokens."""
        return orjson.dumps({"content": f"This is reply {row}." if self._length else ""}), self._length


class RecordedReplies:
    """Replies that were written before, in the arrays of :class:`harness.benchmarks.base.ScriptedReplies`."""

    def __init__(self, data: npt.NDArray[np.uint8], ends: Int64Array, tokens: Int32Array) -> None:
        self.rows = len(ends)
        self._data = data
        self._ends = ends
        self._tokens = tokens

    def one(self, row: int) -> tuple[bytes, int]:
        """The reply as it was written."""
        start = int(self._ends[row - 1]) if row else 0
        return self._data[start : int(self._ends[row])].tobytes(), int(self._tokens[row])


class ScriptedChats:
    """What a workload of chats comes to: its store, of which only lengths are read, and a script.

    DatasetError where the store is none.
    """

    def __init__(self, workload: Workload, script: ReplyScript, max_total_tokens: int) -> None:
        store = BodyStore.open(Path(workload.bodies))
        self._dataset = workload.dataset
        self._cap = workload.sampling.max_new_tokens
        self._script = script
        self._limit = max_total_tokens
        self._rows = min(len(store), script.rows)
        self._prompt_tokens = np.array(store.tokens)
        self._ids = np.full(self._cap, NO_ID, np.int32)

    def fitting(self, requests: Requests) -> tuple[Requests, list[Failure]]:
        """The requests that have a reply and room for it, and failures for the rest."""
        rows = np.asarray(requests.rows, np.int64)
        known = (rows >= 0) & (rows < self._rows)
        tokens = self._prompt_tokens[np.where(known, rows, 0)] if self._rows else np.zeros(len(rows), np.int64)
        fits = known & (tokens < self._limit)
        if fits.all():
            return requests, []
        numbers = [requests.numbers[i] for i in np.flatnonzero(fits).tolist()]
        left = Requests(requests.workload, numbers, rows[fits].tolist(), PromptTable.empty(0), ())
        unfit = np.flatnonzero(~fits).tolist()
        return left, [self._unfit(requests.numbers[i], int(rows[i]), bool(known[i])) for i in unfit]

    def _unfit(self, number: int, row: int, known: bool) -> Failure:
        if not known:
            return Failure(number, "no_such_row", f"no scripted reply for row {row} of {self._dataset!r}")
        length = int(self._prompt_tokens[row])
        message = f"the prompt of row {row} has {length} tokens; prompt and answer together may have {self._limit}"
        return Failure(number, "prompt_too_long", message)

    def reply(self, row: int, kept: int | None = None) -> Reply:
        """The reply to a row, as far as the output cap lets it come, or ``kept`` tokens of it."""
        data, tokens = self._script.one(row)
        most = self._cap if kept is None else min(kept, self._cap)
        if tokens <= most:
            return Reply(data, tokens, Finish.STOP if tokens < self._cap else Finish.LENGTH)
        return Reply(_cut(data, tokens, most), most, Finish.LENGTH if kept is None else Finish.STOP)

    def ids(self, tokens: int) -> Int32Array:
        """As many token ids that nobody tells."""
        return self._ids[:tokens]

    def answered(self, requests: Requests, now: int) -> Replies:
        """All replies at once."""
        replies = [self.reply(row) for row in requests.rows]
        times = (now,) * len(replies)
        return Replies(
            numbers=requests.numbers,
            data=b"".join(reply.data for reply in replies),
            ends=_ends([reply.data for reply in replies]),
            tokens=[reply.tokens for reply in replies],
            first_ns=times,
            done_ns=times,
            finish=[reply.finish for reply in replies],
        )


def _ends(replies: Sequence[bytes]) -> list[int]:
    ends: list[int] = np.cumsum(np.fromiter(map(len, replies), np.int64, len(replies))).tolist()
    return ends


def _cut(data: bytes, tokens: int, kept: int) -> bytes:
    """A reply of which some tokens came: as large a part of its text, and a character at least where one did."""
    content = str(orjson.loads(data)["content"])
    return orjson.dumps({"content": content[: max(min(kept, 1), len(content) * kept // tokens)]})
