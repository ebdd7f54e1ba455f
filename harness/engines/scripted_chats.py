"""The chats of a scripted engine: replies that were written before, or ones that name their row."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import orjson

from harness.engines.base import (
    NOT_TOLD,
    Failure,
    Finish,
    Int32Array,
    Int64Array,
    PromptTable,
    Replies,
    Requests,
    Workload,
)
from harness.engines.bodies import BodyStore
from harness.engines.scripted_answers import ANY_ROW

NO_ID: Final = -1


class Reply(NamedTuple):
    """One reply: its JSON as :class:`~harness.engines.base.Replies` has it, its tokens, how it ended."""

    data: bytes
    tokens: int
    finish: Finish


class Scripted(NamedTuple):
    """A reply as it was written: its JSON, how many tokens it has, whether it calls tools."""

    data: bytes
    tokens: int
    calls: bool = False


class ReplyScript(Protocol):
    """Which reply belongs to a row."""

    rows: int
    """For how many rows there are replies."""

    def one(self, row: int) -> Scripted:
        """The reply to one row."""


class CountingReplies:
    """Every reply names its row, and is said to have ``length`` tokens."""

    rows = ANY_ROW

    def __init__(self, length: int) -> None:
        self._length = length

    def one(self, row: int) -> Scripted:
        """A sentence; nothing where replies have no tokens."""
        return Scripted(orjson.dumps({"content": f"This is reply {row}." if self._length else ""}), self._length)


class RecordedReplies:
    """Replies that were written before, in the arrays of :class:`harness.benchmarks.scripts.ScriptedReplies`.

    ``calls`` says of each whether it calls tools.
    """

    def __init__(
        self, data: npt.NDArray[np.uint8], ends: Int64Array, tokens: Int32Array, calls: npt.NDArray[np.bool_]
    ) -> None:
        self.rows = len(ends)
        self._calls = calls
        self._data = data
        self._ends = ends
        self._tokens = tokens

    def one(self, row: int) -> Scripted:
        """The reply as it was written."""
        start = int(self._ends[row - 1]) if row else 0
        data = self._data[start : int(self._ends[row])].tobytes()
        return Scripted(data, int(self._tokens[row]), bool(self._calls[row]))


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
        self._told = np.where(self._prompt_tokens > 0, self._prompt_tokens, NOT_TOLD)
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
        data, tokens, calls = self._script.one(row)
        most = self._cap if kept is None else min(kept, self._cap)
        if tokens <= most:
            ended = Finish.TOOL_CALLS if calls else Finish.STOP
            return Reply(data, tokens, ended if tokens < self._cap else Finish.LENGTH)
        return Reply(_cut(data, tokens, most), most, Finish.LENGTH if kept is None else Finish.STOP)

    def prompt_tokens(self, rows: Sequence[int]) -> list[int]:
        """How many tokens the prompts of these rows have; NOT_TOLD where their store does not say."""
        found: list[int] = self._told[np.asarray(rows, np.int64)].tolist()
        return found

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
            prompt_tokens=self.prompt_tokens(requests.rows),
        )


def _ends(replies: Sequence[bytes]) -> list[int]:
    ends: list[int] = np.cumsum(np.fromiter(map(len, replies), np.int64, len(replies))).tolist()
    return ends


def _cut(data: bytes, tokens: int, kept: int) -> bytes:
    """A reply of which some tokens came, as a server tells it: reasoning, then content, then calls, as far as it got.

    A share of its text as large as that of its tokens, and a character at least where one came. A call under way has
    its name and a part of its arguments; of those after it nothing is told.
    """
    said = orjson.loads(data)
    reasoning, content, calls = said.get("reasoning") or "", said["content"], said.get("tool_calls") or []
    length = len(reasoning) + len(content) + sum(map(_length, calls))
    left = max(min(kept, 1), length * kept // tokens)
    told: dict[str, Any] = {"content": content[: max(0, left - len(reasoning))]}
    if reasoning[:left]:
        told["reasoning"] = reasoning[:left]
    begun = _calls_begun(calls, left - len(reasoning) - len(content))
    return orjson.dumps(told | ({"tool_calls": begun} if begun else {}))


def _calls_begun(calls: list[dict[str, Any]], left: int) -> list[dict[str, Any]]:
    """The calls of which something is told where so many characters are left for them, the last one cut."""
    begun = []
    for call in calls:
        if left <= 0:
            break
        function = call["function"]
        arguments = function["arguments"][: max(0, left - len(function["name"]))]
        begun.append({**call, "function": {**function, "arguments": arguments}})
        left -= _length(call)
    return begun


def _length(call: dict[str, Any]) -> int:
    return len(call["function"]["name"]) + len(call["function"]["arguments"])
