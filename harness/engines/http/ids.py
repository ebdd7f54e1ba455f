"""Answers of token ids, read from a stream of events or from one JSON object.

The events up to the first token are read one by one as they come. Later ones are left to be read in blocks, and there
a stream whose events all look alike, which is how servers write them, is cut at its keys instead of being parsed:
whatever looks different is parsed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
import orjson

from harness.engines.base import Finish, Int32Array, Int64Array
from harness.engines.http.dialects import Dialect, Said
from harness.engines.http.problems import BAD_ANSWER, MISSING_IDS, SSE_ERROR, TRUNCATED, WRONG_MODEL, BadAnswer, quoted
from harness.engines.http.sse import DONE, EventStream, data_of

OF_A_STREAM: Final = (b"data", b"event", b"id", b"retry", b":")
"""How lines of a stream of events begin."""
FINISHES: Final = {"stop": Finish.STOP, "length": Finish.LENGTH}
HIGHEST_ID: Final = 2**31 - 1
NEXT_EVENT: Final = b"\n\ndata: {"
"""What is between two events that look as most do."""
TAIL_EVENTS: Final = 3
"""So many events at the end of what came are left to be parsed: the finish, the usage, the end."""
FINISHED: Final = (b'"finish_reason":"', b'"finish_reason":{')
"""What is in an event that says why an answer ended."""


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

    __slots__ = ("_accumulates", "_done", "_events", "_expected", "_finish", "_fresh", "_ids", "_n", "_usage", "first")

    def __init__(self, expected: Expected) -> None:
        self.first: int | None = None
        """The first token, once it came."""
        self._expected = expected
        self._events = EventStream()
        self._ids: list[Int64Array] = []
        self._fresh: list[int] = []
        """Ids behind those of ``_ids``, as they were parsed."""
        self._n = 0
        self._usage: int | None = None
        self._finish: str | None = None
        self._done = False
        self._accumulates: bool | None = False if not expected.dialect.may_accumulate else None

    def feed(self, data: bytes) -> None:
        """Takes a piece of a stream, of any size."""
        block = self._events.block(data)
        place, end = 0, len(block)
        while self.first is None and place < end:  # one by one, up to the first token
            next_place = block.find(b"\n\n", place)
            next_place = end if next_place < 0 else next_place
            for event in data_of(block[place:next_place]):
                self._event(event)
            place = next_place + 2
        if place < end:
            self._feed_block(block[place:] if place else block)

    def feed_and_tell(self, data: bytes) -> list[int]:
        """The same, and the ids that are new; each event is parsed."""
        told = self._n
        for event in self._events.events(data):
            self._event(event)
        return self._fresh[len(self._fresh) - (self._n - told) :] if self._n > told else []

    def _feed_block(self, block: bytes) -> None:
        """Takes whole events, the first token being known."""
        if self._accumulates is False:
            events = block.split(NEXT_EVENT)
            if len(events) > TAIL_EVENTS and self._cut(events[:-TAIL_EVENTS]):
                self._events.put_back(NEXT_EVENT.join([b"", *events[-TAIL_EVENTS:]])[2:])
                return
        events = data_of(block)
        for event in events[-TAIL_EVENTS:] if self._accumulates else events:
            self._event(event)
        self._pack()

    def _cut(self, events: list[bytes]) -> bool:
        """Takes the ids of events that all look alike; False, and nothing taken, where one does not."""
        if not events[0].startswith(NEXT_EVENT[2:]):
            return False
        events[0] = events[0][len(NEXT_EVENT) - 2 :]
        key = self._expected.dialect.ids_key
        try:
            ids = _cut_at_places(events, key)
            if ids is None:
                ids = _cut_at_keys(events, key)
        except ValueError:
            return False
        self._pack()
        self._n += len(ids)
        self._ids.append(ids)
        return True

    def _event(self, event: bytes) -> None:
        if event == DONE:
            self._done = True
        else:
            self._said(self._expected.dialect.read(_object(event)))

    def _said(self, said: Said) -> None:
        if said.error is not None:
            raise BadAnswer(SSE_ERROR, f"said in its stream: {quoted(said.error)}")
        check_model(said.model, self._expected.model)
        if said.finish is not None:
            self._finish = said.finish
        if said.tokens is not None:
            self._usage = said.tokens
        ids = said.ids
        if ids and self._n and self._accumulates is not False:
            ids = self._without_what_is_known(ids)
        if ids:
            if self.first is None:
                self.first = _first_of(ids)
            self._n += len(ids)
            self._fresh += ids

    def _without_what_is_known(self, ids: list[int]) -> list[int]:
        """The new ids of an event, from a server of which each event tells the new ones or all: it counts them."""
        if self._accumulates is None:
            self._accumulates = self._usage is not None and abs(self._usage - len(ids)) < abs(
                self._usage - len(ids) - self._n
            )
            if not self._accumulates:
                return ids
        return ids[self._n :]

    def _pack(self) -> None:
        if self._fresh:
            self._ids.append(_packed(self._fresh))
            self._fresh.clear()

    def catch_up(self) -> None:
        """Parses all that came; there will be no more."""
        for event in self._events.events(b""):
            self._event(event)

    def finish(self) -> IdsAnswer:
        """The answer, once the stream is at its end."""
        self.catch_up()
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
        self._pack()
        finish, n, usage = FINISHES[self._finish], self._n, self._usage
        if usage is None:
            raise BadAnswer(MISSING_IDS, f"gave {n} token ids and did not say how many it made")
        parts, self._ids = self._ids, []
        tokens = _as_int32(parts[0] if len(parts) == 1 else np.concatenate(parts) if parts else np.empty(0, np.int64))
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
    if not any(rest.startswith(line) or line.startswith(rest) for line in OF_A_STREAM):
        raise BadAnswer(BAD_ANSWER, f"answered with no stream: {quoted(rest)}")
    raise BadAnswer(TRUNCATED, f"ended its stream {after}without {DONE.decode()}")


def _cut_at_places(events: list[bytes], key: bytes) -> Int64Array | None:
    """The ids of events that differ in nothing else; None where they do. Raises ValueError where the first has none.

    A cut takes the brackets with it: at any other place it would bring something between the numbers.
    """
    first = events[0]
    begin = first.index(key) + len(key) - 1
    behind = first.index(b"]", begin) + 1 - len(first)
    found = b"".join([event[begin:behind] for event in events])
    numbers = found.replace(b"][", b",")
    if found[:1] != b"[" or found[-1:] != b"]" or len(found) - len(numbers) != len(events) - 1:
        return None
    try:
        return np.fromstring(numbers[1:-1], np.int64, sep=",")
    except ValueError:
        return None


def _cut_at_keys(events: list[bytes], key: bytes) -> Int64Array:
    """The ids of events with other things that differ, too: texts, say. Raises ValueError for an event that is none."""
    size = len(key)
    found = [event[(at := event.index(key) + size) : event.index(b"]", at)] for event in events]
    whole = b"".join(events)
    if b"\n" in whole or any(each in whole for each in FINISHED):
        raise ValueError
    return np.fromstring(b",".join([each for each in found if each]), np.int64, sep=",")


def _object(text: bytes) -> dict[str, Any]:
    try:
        content = orjson.loads(text)
    except orjson.JSONDecodeError:
        raise BadAnswer(BAD_ANSWER, f"said what is no JSON: {quoted(text)}") from None
    if not isinstance(content, dict):
        raise BadAnswer(BAD_ANSWER, f"said what is no JSON object: {quoted(text)}")
    return content


def _first_of(ids: list[Any]) -> int:
    first = ids[0]
    return first if type(first) is int and 0 <= first <= HIGHEST_ID else int(_as_int32(_packed(ids[:1]))[0])


def _packed(ids: list[int]) -> Int64Array:
    try:
        array = np.array(ids)
    except (ValueError, OverflowError):
        array = np.empty(0)
    if array.dtype != np.int64 or array.ndim != 1:
        raise BadAnswer(BAD_ANSWER, f"answered with token ids that are no integers: {str(ids)[:80]}")
    return array


def _as_int32(ids: Int64Array) -> Int32Array:
    if not 0 <= int(np.bitwise_or.reduce(ids)) <= HIGHEST_ID:
        raise BadAnswer(BAD_ANSWER, "answered with token ids that are no int32 of at least 0")
    return ids.astype(np.int32)
