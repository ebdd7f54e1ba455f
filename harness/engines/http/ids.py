"""Answers of token ids, read from a stream of events or from one JSON object.

The events up to the first token are read one by one as they come. Later ones are left to be read in blocks, and there
a stream whose events all look alike, which is how servers write them, is cut at its keys instead of being parsed:
whatever looks different is parsed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
import orjson

from harness.engines.base import Finish, Int32Array
from harness.engines.http.dialects import Dialect, Said
from harness.engines.http.problems import BAD_ANSWER, MISSING_IDS, SSE_ERROR, TRUNCATED, WRONG_MODEL, BadAnswer, quoted
from harness.engines.http.sse import DONE, EventStream, data_of

FINISHES: Final = {"stop": Finish.STOP, "length": Finish.LENGTH}
HIGHEST_ID: Final = 2**31 - 1
TAIL_EVENTS: Final = 4
"""So many events at the end of a block are always parsed: the last tokens, the finish, the usage, the end."""


class IdsAnswer(NamedTuple):
    """A whole answer: int32 ids without the stop token, and why it ended."""

    tokens: Int32Array
    finish: Finish


@dataclass(frozen=True, slots=True)
class Expected:
    """What a workload's answers are held against."""

    dialect: Dialect
    model: str
    cap: int
    stop: frozenset[int]


class IdsReader:
    """Reads one answer. Raises BadAnswer from any of its methods for one that is none."""

    __slots__ = ("_accumulates", "_done", "_events", "_expected", "_finish", "_ids", "_n", "_usage", "first")

    def __init__(self, expected: Expected) -> None:
        self.first: int | None = None
        """The first token, once it came."""
        self._expected = expected
        self._events = EventStream()
        self._ids: list[Int32Array] = []
        self._n = 0
        self._usage: int | None = None
        self._finish: str | None = None
        self._done = False
        self._accumulates: bool | None = False if not expected.dialect.may_accumulate else None

    def feed(self, data: bytes) -> list[int]:
        """Takes a piece of a stream, parses each event that is whole now, and gives the ids that are new."""
        fresh: list[int] = []
        for event in self._events.events(data):
            fresh += self._event(event)
        return fresh

    def feed_later(self, data: bytes) -> None:
        """Takes a piece, mostly a large one, of a stream whose first token was seen."""
        block = self._events.block(data)
        if not block:
            return
        if self._accumulates is False:
            events = block.split(b"\n\ndata: ")
            if len(events) > TAIL_EVENTS + 1 and self._cut(events[:-TAIL_EVENTS]):
                block = b"data: " + b"\n\ndata: ".join(events[-TAIL_EVENTS:])
        events = data_of(block)
        for event in events[-TAIL_EVENTS:] if self._accumulates else events:
            self._event(event)

    def _cut(self, events: list[bytes]) -> bool:
        """Takes the ids of events that all look alike; False, and nothing taken, where one does not."""
        key = self._expected.dialect.ids_key
        size = len(key)
        events[0] = events[0].removeprefix(b"data: ") if events[0].startswith(b"data: {") else b"\n"
        try:
            found = [event[(at := event.index(key) + size) : event.index(b"]", at)] for event in events]
            if b"\n" in b"".join(events) or set(map(_first_byte, events)) != {b"{"}:
                return False
            ids = np.fromstring(b",".join([each for each in found if each]), np.int64, sep=",")
        except ValueError:
            return False
        self._take(ids)
        return True

    def _event(self, event: bytes) -> Sequence[int]:
        if event == DONE:
            self._done = True
            return ()
        return self._said(self._expected.dialect.read(_object(event)))

    def _said(self, said: Said) -> Sequence[int]:
        if said.error is not None:
            raise BadAnswer(SSE_ERROR, f"said in its stream: {quoted(said.error)}")
        check_model(said.model, self._expected.model)
        if said.finish is not None:
            self._finish = said.finish
        if said.tokens is not None:
            self._usage = said.tokens
        if not said.ids:
            return ()
        fresh = said.ids
        if self._accumulates is not False and self._n:
            fresh = self._without_what_is_known(said.ids)
        if fresh:
            self._take(_array(fresh))
            if self.first is None:
                self.first = fresh[0]
        return fresh

    def _without_what_is_known(self, ids: list[int]) -> list[int]:
        """The new ids of an event, from a server of which each event tells the new ones or all: it counts them."""
        if self._accumulates is None:
            self._accumulates = self._usage is not None and abs(self._usage - len(ids)) < abs(
                self._usage - len(ids) - self._n
            )
            if not self._accumulates:
                return ids
        return ids[self._n :]

    def _take(self, ids: np.ndarray[Any, np.dtype[np.int64]]) -> None:
        if len(ids):
            if int(ids.min()) < 0 or int(ids.max()) > HIGHEST_ID:
                raise BadAnswer(BAD_ANSWER, "answered with token ids that are no int32 of at least 0")
            self._ids.append(ids.astype(np.int32))
            self._n += len(ids)

    def finish(self) -> IdsAnswer:
        """The answer, once the stream is at its end."""
        if not self._done:
            check_end(self._events.rest(), f"after {self._n} tokens ")
        return self._answer()

    def whole(self, body: bytes) -> IdsAnswer:
        """The answer that a single JSON object holds."""
        self._said(self._expected.dialect.read(_object(body)))
        return self._answer()

    def _answer(self) -> IdsAnswer:
        if self._finish not in FINISHES:
            raise BadAnswer(BAD_ANSWER, f"says that the answer ended by {self._finish!r}, neither stop nor length")
        finish, n, usage = FINISHES[self._finish], self._n, self._usage
        if usage is None:
            raise BadAnswer(MISSING_IDS, f"gave {n} token ids and did not say how many it made")
        tokens = self._ids[0] if len(self._ids) == 1 else np.concatenate(self._ids) if n else np.empty(0, np.int32)
        stopped = finish is Finish.STOP and n > 0 and int(tokens[-1]) in self._expected.stop
        uncounted = int(finish is Finish.STOP and not stopped)  # the stop token, which is counted and not told
        if not n <= usage <= n + uncounted and not (stopped and usage == n - 1):
            raise BadAnswer(MISSING_IDS, f"gave {n} token ids and says that it made {usage}")
        if stopped:
            tokens = tokens[:-1]
        if len(tokens) > self._expected.cap:
            raise BadAnswer(BAD_ANSWER, f"answered with {len(tokens)} tokens where {self._expected.cap} were the most")
        return IdsAnswer(tokens, finish)


def check_model(said: str | None, expected: str) -> None:
    """Raises BadAnswer where another model answers than was asked."""
    if said is not None and said != expected:
        raise BadAnswer(WRONG_MODEL, f"answers as the model {said!r} and not as {expected!r}")


def check_end(rest: bytes, after: str) -> None:
    """Looks at what remains of a stream that did not say its end in a whole event; raises BadAnswer."""
    rest = rest.strip()
    if rest in (b"data: " + DONE, b"data:" + DONE):
        return
    if rest.startswith(b"{"):
        raise BadAnswer(BAD_ANSWER, f"answered with no stream: {quoted(rest)}")
    raise BadAnswer(TRUNCATED, f"ended its stream {after}without {DONE.decode()}")


def _object(text: bytes) -> dict[str, Any]:
    try:
        content = orjson.loads(text)
    except orjson.JSONDecodeError:
        raise BadAnswer(BAD_ANSWER, f"said what is no JSON: {quoted(text)}") from None
    if not isinstance(content, dict):
        raise BadAnswer(BAD_ANSWER, f"said what is no JSON object: {quoted(text)}")
    return content


def _array(ids: list[int]) -> np.ndarray[Any, np.dtype[np.int64]]:
    try:
        array = np.array(ids)
    except (ValueError, OverflowError):
        array = np.empty(0)
    if array.dtype != np.int64 or array.ndim != 1:
        raise BadAnswer(BAD_ANSWER, f"answered with token ids that are no integers: {str(ids)[:80]}")
    return array


def _first_byte(event: bytes) -> bytes:
    return event[:1]
