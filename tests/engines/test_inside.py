"""A core that waits for sockets, stepped by its client's own thread."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Collection, Iterator

import numpy as np
import pytest

from harness.engines.base import (
    REPLICA_DIED,
    EngineInfo,
    Event,
    Failure,
    PromptTable,
    Replies,
    Requests,
    Sampling,
    TokenEvents,
    Workload,
)
from harness.engines.inside import InsideEngine
from harness.errors import EngineDied

WORKLOAD = Workload("x", Sampling(0.0, 1.0, 0, 9, (), 1), TokenEvents.FIRST, bodies="/chats")


class PipeCore:
    """A core whose world is a pipe: each byte in it answers the request that waits longest."""

    def __init__(self, replicas: tuple[str, ...] = ("one",)) -> None:
        self._read, self.world = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._replicas = replicas
        self.asked: list[int] = []
        self.threads: set[int] = set()
        self.due_s: float | None = None
        self.says: list[Event] = []
        self.cancelled = False

    def info(self) -> EngineInfo:
        return EngineInfo("pipe", 9, 9, 9, None, {}, {}, replicas=self._replicas)

    def submit(self, requests: Requests) -> None:
        self.threads.add(threading.get_ident())
        self.asked += requests.numbers

    def step(self) -> list[Event]:
        self.threads.add(threading.get_ident())
        events, self.says = self.says, []
        if not self.asked:
            return events
        try:
            count = len(os.read(self._read, len(self.asked)))  # what is not yet taken is answered later
        except BlockingIOError:
            return events
        answered, self.asked = self.asked[:count], self.asked[count:]
        n = len(answered)
        return [
            *events,
            Replies(answered, b"{}" * n, [2 * i + 2 for i in range(n)], [1] * n, [1] * n, [2] * n, [0] * n),
        ]

    def wait_s(self) -> float | None:
        return 0.0 if self.says else self.due_s

    def descriptor(self) -> int | None:
        return self._read

    def cancel(self) -> None:
        self.cancelled = True

    def drop(self, numbers: Collection[int]) -> None:
        raise AssertionError("nobody drops")

    def counters(self) -> dict[str, int]:
        return {"asked": 3}

    def close(self) -> None:
        os.close(self._read)
        os.close(self.world)


@pytest.fixture
def core() -> Iterator[PipeCore]:
    made = PipeCore()
    yield made
    made.close()


@pytest.fixture
def engine(core: PipeCore) -> Iterator[InsideEngine]:
    made = InsideEngine(core)
    yield made
    made.close()
    made.close()
    assert core.cancelled


def ask(engine: InsideEngine, *numbers: int) -> None:
    engine.submit(Requests(WORKLOAD, list(numbers), list(numbers), PromptTable.empty(9), ()))


def answered(events: list[Event]) -> list[int]:
    return [number for event in events if isinstance(event, Replies) for number in event.numbers]


def test_submit_runs_nothing_of_the_core(core: PipeCore, engine: InsideEngine) -> None:
    ask(engine, 1, 2)
    assert core.threads == set()
    os.write(core.world, b"!")
    assert answered(engine.poll(60)) == [1]
    os.write(core.world, b"!")
    assert answered(engine.poll(60)) == [2]
    assert core.threads == {threading.get_ident()}


def test_the_polling_thread_begins_requests_at_once_and_in_order(core: PipeCore, engine: InsideEngine) -> None:
    assert engine.poll(0) == []
    other = threading.Thread(target=ask, args=(engine, 1))
    other.start()
    other.join()
    ask(engine, 2)
    assert core.asked == [1, 2]


def test_submit_on_one_thread_poll_on_another(core: PipeCore, engine: InsideEngine) -> None:
    seen: list[int] = []

    def complete() -> None:
        while len(seen) < 300:
            seen.extend(answered(engine.poll(5)))

    completion = threading.Thread(target=complete)
    completion.start()
    for number in range(300):
        ask(engine, number)
        os.write(core.world, b"!")
        if number % 50 == 0:
            time.sleep(0.01)  # long enough for the other to wait
    completion.join(20)
    assert seen == list(range(300))


def test_what_is_submitted_ends_a_wait(core: PipeCore, engine: InsideEngine) -> None:
    """Else a request would lie here until something else happens."""

    def later() -> None:
        ask(engine, 7)

    threading.Timer(0.05, later).start()
    start = time.monotonic()
    assert engine.poll(60) == []
    assert time.monotonic() - start < 30
    os.write(core.world, b"!")
    assert answered(engine.poll(60)) == [7]


def test_a_poll_ends_in_time_when_woken_and_when_the_core_has_something(core: PipeCore, engine: InsideEngine) -> None:
    start = time.monotonic()
    assert engine.poll(0.03) == []
    assert 0.03 <= time.monotonic() - start < 10
    engine.wake()
    engine.wake()
    assert engine.poll(60) == []
    threading.Timer(0.05, engine.wake).start()
    assert engine.poll(60) == []
    core.due_s = 0.01
    core.says = [Failure(3, "late", "no answer")]
    assert engine.poll(60) == [Failure(3, "late", "no answer")]
    assert time.monotonic() - start < 30


def test_a_replica_that_died_ends_the_engine_once_all_is_told(core: PipeCore, engine: InsideEngine) -> None:
    core.says = [Failure(1, "other", "x"), Failure(2, REPLICA_DIED, "refused"), Failure(3, REPLICA_DIED, "refused too")]
    assert [event.number for event in engine.poll(1) if isinstance(event, Failure)] == [1, 2, 3]
    with pytest.raises(EngineDied, match=r"replica one died: refused$"):
        engine.poll(1)


def test_the_rest_is_the_cores(engine: InsideEngine) -> None:
    assert engine.info().kind == "pipe"
    assert engine.counters(1) == {"asked": 3}
    replicas = engine.replicas_of(np.arange(3))
    assert (replicas.tolist(), replicas.dtype) == ([0, 0, 0], np.int16)


def test_other_cores_are_refused(monkeypatch: pytest.MonkeyPatch, core: PipeCore) -> None:
    two = PipeCore(("one", "two"))
    with pytest.raises(ValueError, match="2 replicas"):
        InsideEngine(two)
    two.close()
    monkeypatch.setattr(core, "descriptor", lambda: None)
    with pytest.raises(ValueError, match="descriptor None"):
        InsideEngine(core)
