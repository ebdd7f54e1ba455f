"""A LoadGen that keeps what it was told and an engine that says what a test makes it say."""

from __future__ import annotations

import ctypes
import queue
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import orjson

from harness.engines.base import Answers, EngineInfo, Event, Int16Array, Int64Array, Replies, Requests, Tokens


@dataclass
class Response:
    """What LoadGen is handed: an address and a size that it reads at once."""

    id: int
    data: int
    size: int
    n_tokens: int


@dataclass(frozen=True)
class Told:
    """One sample of one call, with the bytes that lay at its address then."""

    call: int
    kind: str
    id: int
    data: bytes
    n_tokens: int
    thread: str

    @property
    def tokens(self) -> tuple[int, ...]:
        """The bytes as token ids."""
        return tuple(np.frombuffer(self.data, np.int32).tolist())


@dataclass
class FakeLoadGen:
    """Stands for the module ``mlperf_loadgen``."""

    QuerySampleResponse = Response
    told: list[Told] = field(default_factory=list)
    calls: list[tuple[str, int]] = field(default_factory=list)

    def FirstTokenComplete(self, responses: Sequence[Response]) -> None:  # noqa: N802 - LoadGen's name
        self._keep("first", responses)

    def QuerySamplesComplete(self, responses: Sequence[Response]) -> None:  # noqa: N802 - LoadGen's name
        self._keep("done", responses)

    def _keep(self, kind: str, responses: Sequence[Response]) -> None:
        self.calls.append((kind, len(responses)))
        for response in responses:
            raw = ctypes.string_at(response.data, response.size)
            thread = threading.current_thread().name
            self.told.append(Told(len(self.calls), kind, response.id, raw, response.n_tokens, thread))

    def of(self, query_id: int) -> list[tuple[str, tuple[int, ...], int]]:
        """What was told of one sample, in order."""
        return [(one.kind, one.tokens, one.n_tokens) for one in self.told if one.id == query_id]

    def said(self, query_id: int) -> list[tuple[str, bytes, int]]:
        """The same, as bytes."""
        return [(one.kind, one.data, one.n_tokens) for one in self.told if one.id == query_id]


class FakeEngine:
    """Gives each ``poll`` the next list of events that was put; an exception among them is raised."""

    def __init__(self) -> None:
        self.submitted: list[Requests] = []
        self.refuses: Exception | None = None
        self._events: queue.Queue[list[Event] | Exception] = queue.Queue()

    def info(self) -> EngineInfo:
        raise AssertionError("the SUT does not ask")

    def submit(self, requests: Requests) -> None:
        if self.refuses is not None:
            raise self.refuses
        self.submitted.append(requests)

    def say(self, *events: Event) -> None:
        """What one poll returns."""
        self._events.put(list(events))

    def die(self, error: Exception) -> None:
        self._events.put(error)

    def poll(self, timeout_s: float) -> list[Event]:
        try:
            events = self._events.get(timeout=timeout_s)
        except queue.Empty:
            return []
        if isinstance(events, Exception):
            raise events
        return events

    def wake(self) -> None:
        self._events.put([])

    def replicas_of(self, numbers: Int64Array) -> Int16Array:
        return np.zeros(len(numbers), np.int16)

    def counters(self, timeout_s: float) -> dict[str, int]:
        return {}

    def close(self) -> None:
        """Nothing is held."""


def answers(given: dict[int, Sequence[int]], at_ns: int = 7) -> Answers:
    """One batch: number -> token ids."""
    lengths = [len(ids) for ids in given.values()]
    n = len(given)
    return Answers(
        numbers=list(given),
        tokens=np.array([t for ids in given.values() for t in ids], np.int32),
        ends=np.cumsum(lengths).tolist(),
        first_ns=[at_ns] * n,
        done_ns=[at_ns + 1] * n,
        finish=[0] * n,
    )


def first_tokens(given: dict[int, int], position: int = 0) -> Tokens:
    """One token each: number -> token id."""
    return Tokens(list(given), [position] * len(given), np.array(list(given.values()), np.int32), 5)


def replies(given: dict[int, str], tokens: int = 5, at_ns: int = 7) -> Replies:
    """One batch: number -> content; each is said to have so many tokens."""
    data = [orjson.dumps({"content": content}) for content in given.values()]
    n = len(given)
    ends = np.cumsum([len(each) for each in data]).tolist()
    return Replies(list(given), b"".join(data), ends, [tokens] * n, [at_ns] * n, [at_ns + 1] * n, [0] * n)
