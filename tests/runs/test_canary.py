"""Canaries: every replica is asked every prompt, and one that is not as the others are is named."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.benchmarks.base import CanaryFinding, Chats
from harness.engines.base import Checkpoint, EngineInfo, Int16Array, Int64Array, Requests, Sampling
from harness.engines.routing import LeastOutstanding
from harness.errors import RunBroke
from harness.runs.canary import sing
from tests.clients.loadgen.fakes import replies
from tests.runs.made_legs import leg

WEIGHTS = Checkpoint("w", "ab" * 32, stand_in=False, weight_data_type="bf16")


class Echo:
    """A canary that wants its own words back."""

    name = "echo"
    max_new_tokens = 4
    prompts = Chats(tuple({"messages": [{"role": "user", "content": f"{i}"}]} for i in range(3)))

    def check(self, answers: Sequence[bytes]) -> list[CanaryFinding]:
        return [
            CanaryFinding(f"answer {i} is {said.decode()}", str(i))
            for i, said in enumerate(answers)
            if said != b"%d" % i
        ]


class Replicas:
    """An engine of some replicas, among which requests are spread as ever; ``say`` makes an answer of both."""

    def __init__(self, names: tuple[str, ...], say: Callable[[int, int], str], *, to_one: bool = False) -> None:
        self._names = names
        self._say = say
        self._to_one = to_one
        self.asked: list[tuple[int, int]] = []
        """Replica and question."""
        self._events: list[Any] = []

    def info(self) -> EngineInfo:
        return EngineInfo("http", 9, 99, 1, WEIGHTS, {}, {}, replicas=self._names)

    def submit(self, requests: Requests) -> None:
        least = LeastOutstanding(range(len(self._names)))
        for number, row in zip(requests.numbers, requests.rows, strict=True):
            replica = 0 if self._to_one else least.choose(requests.workload.sampling.max_new_tokens)
            least.give(number, 0, replica)
            self.asked.append((replica, row))
        said = {number: self._say(*asked) for number, asked in enumerate(self.asked)}
        self._events.append(replies(said))

    def poll(self, timeout_s: float) -> list[Any]:
        events, self._events = self._events, []
        return events

    def replicas_of(self, numbers: Int64Array) -> Int16Array:
        return np.array([self.asked[number][0] for number in numbers], np.int16)

    def close(self) -> None:
        pass


class Group:
    """What holds the engine."""

    logs = (Path("engine.log"),)

    def __init__(self, engine: Replicas) -> None:
        self._engine = engine
        self.info = engine.info()

    def connect(self) -> Replicas:
        return self._engine

    def ending(self) -> None:
        return None


class Benchmark:
    """Asks the canary alone."""

    def __init__(self, logged: str = "content") -> None:
        self.logged = logged

    def canaries(self, *, stand_in_checkpoint: bool) -> tuple[Echo, ...]:
        assert not stand_in_checkpoint
        return (Echo(),)

    def sampling(self, which: str, *, seed: int, max_new_tokens: int) -> Sampling:
        return Sampling(0.0, 1.0, 0, max_new_tokens, (), seed)


def sung(engine: Replicas, work: Path, logged: str = "content") -> list[str]:
    group: Any = Group(engine)
    benchmark: Any = Benchmark(logged)
    return sing(group, benchmark, leg("Offline", "performance"), work)


@pytest.mark.parametrize("count", [1, 2, 5])
def test_every_replica_is_asked_every_prompt(tmp_path: Path, count: int) -> None:
    engine = Replicas(tuple("abcde"[:count]), lambda _, question: str(question))
    assert sung(engine, tmp_path) == ["canary echo: well"]
    assert sorted(engine.asked) == [(replica, question) for replica in range(count) for question in range(3)]


def test_one_that_is_not_as_the_others_are_is_named(tmp_path: Path) -> None:
    engine = Replicas(("0", "1", "2"), lambda replica, question: "0" if replica == 1 else str(question))
    with pytest.raises(RunBroke, match="canary echo, replica 1: answer 1 is 0"):
        sung(engine, tmp_path)


def test_an_engine_without_replicas_is_not_called_one(tmp_path: Path) -> None:
    with pytest.raises(RunBroke, match="canary echo: answer 0 is x"):
        sung(Replicas(("0",), lambda *_: "x"), tmp_path)


def test_where_requests_do_not_go_to_each_all_answers_are_looked_at(tmp_path: Path) -> None:
    engine = Replicas(("0", "1"), lambda _, question: str(question), to_one=True)
    assert sung(engine, tmp_path) == ["canary echo: well"]
    late = Replicas(("0", "1"), lambda _, question: "x" if question == 2 else str(question), to_one=True)
    with pytest.raises(RunBroke, match="canary echo: answer 2 is x"):
        sung(late, tmp_path)


def test_a_benchmark_that_logs_whole_replies_is_shown_them(tmp_path: Path) -> None:
    with pytest.raises(RunBroke, match=r'canary echo: answer 0 is \{"content":"0"\}'):
        sung(Replicas(("0",), lambda _, question: str(question)), tmp_path, "reply")
