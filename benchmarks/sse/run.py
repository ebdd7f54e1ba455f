"""Runs of contestants against test servers, each in processes of their own."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from machine import busy_s

from sse.load import Flight, Load, Took, percentile
from sse.shape import Shape

HERE: Final = Path(__file__).parents[1]
PEER_PYTHON: Final = "ENDPOINTS_PYTHON"
"""The environment variable that names the interpreter of an environment with mlcommons/endpoints' package."""
FLOOR: Final = "raw reader"
PEER: Final = "mlcommons/endpoints"
OURS: Final = "ours"


@dataclass(frozen=True)
class Pace:
    """Answers of a server: their shape, and what lies between their chunks."""

    shape: Shape
    interval_ms: float
    first_ms: float = 0.0

    def __str__(self) -> str:
        return f"{self.shape}, " + (f"{self.interval_ms:g} ms apart" if self.interval_ms else "at once")


@dataclass
class TestServer:
    """A running test server; what it said of itself when it has ended."""

    port: int
    told: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Run:
    """What a run took. ``others`` is what the rest of the machine used meanwhile, in cores."""

    took: Took
    server_s: float
    late_ms: float
    others: float


@dataclass(frozen=True)
class Added:
    """What a run below LoadGen added to what the server waited, in milliseconds; CPU time is of all its answers."""

    first_p50_ms: float
    first_p99_ms: float
    whole_p50_ms: float
    whole_p99_ms: float
    completed_per_s: float
    answers: int
    failures: int
    client_s: float
    driver_s: float
    late_ms: float
    others: float


def run(contestant: str, pace: Pace, streams: int, answers: int, prompt: int) -> Run:
    """A contestant under a load. Raises CalledProcessError where it failed."""
    with Others() as others, server(pace, pinned=True) as running:
        load = Load(running.port, streams, answers, pace.shape.tokens, pace.shape.ids, prompt)
        took = Took.parse(call(_command(contestant), load.to_json(), pinned=True))
    return Run(took, running.told["cpu_s"], running.told["latest_ms"], others.cores)


def run_latency(pace: Pace, streams: int, prompt: int, rate: float, seconds: float) -> Added:
    """Our client below LoadGen."""
    with Others() as others, server(pace) as running:
        load = Load(running.port, streams, 0, pace.shape.tokens, pace.shape.ids, prompt)
        told = json.loads(call(_module("latency"), load.to_json(), str(rate), str(seconds)))
    waited, took = running.told["waited_ns"], running.told["took_ns"]
    for name, of_server in (("first", waited), ("whole", took)):
        for share in (50, 99):
            told[f"{name}_p{share}_ms"] -= percentile(of_server, share / 100) / 1e6
    return Added(**told, late_ms=running.told["latest_ms"], others=others.cores)


def run_flight(
    pace: Pace, servers: int, *, processes: int, connections: int, requests: int, prompt: int, streamed: bool
) -> tuple[list[float], int]:
    """Our client with many requests outstanding.

    The peak memory of the driver and of each client process, in millions of bytes; how many answers were under way at
    most at each server, all together.
    """
    with ExitStack() as stack:
        running = [stack.enter_context(server(pace)) for _ in range(servers)]
        ports = tuple(each.port for each in running)
        of = Flight(ports, processes, connections, requests, pace.shape.tokens, prompt, streamed)
        peaks = json.loads(call(_module("flight"), of.to_json()))
    return peaks, sum(each.told["most_open"] for each in running)


@contextmanager
def server(pace: Pace, *, pinned: bool = False) -> Iterator[TestServer]:
    """A test server; ``pinned`` on the first core, where there are others for its clients."""
    command = [*_module("server"), "--shape", f"{pace.shape.chunks}x{pace.shape.ids}"]
    command += ["--interval-ms", str(pace.interval_ms), "--first-ms", str(pace.first_ms)]
    with _on(_FIRST if pinned else _ALL):
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=_environment()
        )
    with process:
        assert process.stdout is not None
        running = TestServer(json.loads(process.stdout.readline())["port"])
        try:
            yield running
        finally:
            rest, _ = process.communicate("")
        running.told = json.loads(rest)


def call(words: Sequence[str], *arguments: str, pinned: bool = False) -> str:
    """What a command prints; ``pinned`` on the cores that are not a pinned server's."""
    command = [*words, *arguments]
    with _on(_OTHERS if pinned else _ALL):
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=_environment())
    said, _ = process.communicate()
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, words)
    return said


class Others:
    """What processes that are not ours used of the machine in a block, in cores."""

    cores = 0.0

    def __enter__(self) -> Others:
        self._started, self._before = time.monotonic(), busy_s() - _children_s()
        return self

    def __exit__(self, *_: object) -> None:
        self.cores = max(0.0, busy_s() - _children_s() - self._before) / (time.monotonic() - self._started)


_ALL: Final = frozenset(os.sched_getaffinity(0))
_FIRST: Final = frozenset({min(_ALL)})
_OTHERS: Final = _ALL - _FIRST or _ALL


@contextmanager
def _on(cores: frozenset[int]) -> Iterator[None]:
    """What is started meanwhile runs on these."""
    os.sched_setaffinity(0, cores)
    try:
        yield
    finally:
        os.sched_setaffinity(0, _ALL)


def _command(contestant: str) -> list[str]:
    if contestant == PEER:
        return [os.environ[PEER_PYTHON], str(HERE / "sse" / "peer.py")]
    return _module({FLOOR: "floor", OURS: "ours"}[contestant])


def _module(name: str) -> list[str]:
    return [sys.executable, "-m", f"sse.{name}"]


def _children_s() -> float:
    """CPU seconds of all processes that were started and waited for, and of theirs."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _environment() -> dict[str, str]:
    """Ours, with this folder's modules to be found, and numerical libraries on one thread."""
    places = [str(HERE), *filter(None, [os.environ.get("PYTHONPATH")])]
    return os.environ | {"PYTHONPATH": os.pathsep.join(places), "OMP_NUM_THREADS": "1"}
