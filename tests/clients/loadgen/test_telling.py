"""Lines of progress: whole or not at all, and so seldom that they cost next to nothing."""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Mapping

import pytest

from harness.clients.loadgen import telling
from harness.clients.loadgen.telling import LATEST_S, ProgressPipe, Teller


def test_a_pipe_that_nobody_reads_holds_nothing_up() -> None:
    reader, writer = os.pipe()
    pipe = ProgressPipe(writer)
    line = {"running": [{"name": "x" * 1000}]}
    for _ in range(200):  # more than a pipe holds
        pipe.tell(line)
    there = os.read(reader, 1 << 20)
    os.close(reader)
    assert all(json.loads(each) == line for each in there.splitlines())
    pipe.tell(line)  # nor one whose reader has gone
    os.close(writer)


def test_the_longest_line_fits_a_pipe_in_one_piece() -> None:
    names = [prefix + name for prefix in ("", "turn ") for name in ("TTFT", "TPOT", "latency")]
    each = [{"name": name, "p50_ns": 1.2345678901234567e15, "p99_ns": 1.2345678901234567e15} for name in names]
    line = {"issued": 10**12, "completed": 10**12, "failed": 10**12, "turns": 10**12, "running": each}
    assert len(json.dumps(line)) < 4096


class Clocks:
    """Time as a test has it: of the wall, of the process, of the thread that tells."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, look_s: float) -> None:
        self.wall = self.process = self.thread = 0.0
        self.look_s = look_s
        self.told: list[float] = []
        monkeypatch.setattr(telling.time, "monotonic", lambda: self.wall)
        monkeypatch.setattr(telling.time, "process_time", lambda: self.process)
        monkeypatch.setattr(telling.time, "thread_time", lambda: self.thread)

    def tell(self, progress: Mapping[str, object]) -> None:
        self.told.append(self.wall)

    def look(self) -> Mapping[str, object]:
        self.thread += self.look_s
        self.process += self.look_s
        return {}

    def run(self, seconds: float, busy: float) -> list[float]:
        """Turns twenty times a second in a process that uses so much of a core."""
        pipe: object = self
        teller = Teller(pipe, self.look)  # type: ignore[arg-type]
        for turn in range(round(seconds * 20)):
            self.wall = turn / 20
            self.process += busy / 20
            teller.turn()
        return self.told


def test_a_process_that_works_tells_every_second(monkeypatch: pytest.MonkeyPatch) -> None:
    told = Clocks(monkeypatch, look_s=0.001).run(20, busy=0.5)
    assert told == [float(second) for second in range(1, 20)]


def test_one_that_mostly_waits_tells_as_often_as_a_hundredth_of_it_allows(monkeypatch: pytest.MonkeyPatch) -> None:
    clocks = Clocks(monkeypatch, look_s=0.0005)
    told = clocks.run(100, busy=0.02)
    assert clocks.thread <= 0.0115 * clocks.process
    assert max(after - before for before, after in itertools.pairwise(told)) < LATEST_S


def test_one_that_does_nothing_still_tells(monkeypatch: pytest.MonkeyPatch) -> None:
    told = Clocks(monkeypatch, look_s=0.0005).run(30, busy=0.0)
    assert told[0] == 1.0
    assert [round(after - before, 2) for before, after in itertools.pairwise(told)] == [LATEST_S] * 5
