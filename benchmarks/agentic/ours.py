"""Our client: ``python -m benchmarks.agentic.ours WORK {process|inside}``.

What drives it is a LoadGen worker without LoadGen: an engine of trajectories, which notes every turn and writes down
what it came to. Below it is the HTTP engine, in a process of its own or inside of the worker's.
"""

from __future__ import annotations

import dataclasses
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import numpy as np

from benchmarks.agentic.work import MODEL, Took, Work
from benchmarks.machine import peak_mb
from benchmarks.sse.load import cpu_s
from harness.clients.loadgen.interpreter import make_interpreter_quick
from harness.clients.loadgen.job import Replay
from harness.clients.loadgen.trajectories import TrajectoryEngine
from harness.clients.loadgen.turn_record import TurnRecord
from harness.engines.address import lanes_before
from harness.engines.base import (
    Engine,
    EngineInfo,
    Failure,
    PromptTable,
    Replies,
    Requests,
)
from harness.engines.bodies import BodyStore
from harness.engines.group import start_group
from harness.engines.http.core import HttpCore
from harness.engines.http.settings import HttpSettings
from harness.engines.inside import InsideEngine
from harness.engines.replicas import connect
from harness.ledger.turns import TURN_REPLIES

PATIENCE_S: Final = 60.0
POLL_S: Final = 10.0
VOCABULARY: Final = 163_840
LONGEST: Final = 262_144


def main(work: Work, where: str) -> None:
    """Replays all trajectories."""
    store = BodyStore.open(Path(work.store))
    record = TurnRecord(Path(work.folder) / TURN_REPLIES)
    replay = Replay(max_concurrency=work.concurrency, tool_delays=False)
    rows = list(range(1 + int(store.sessions.max()))) * work.passes
    with (in_a_process if where == "process" else inside)(work) as (below, pids):
        engine = TrajectoryEngine(below, store, replay, record)
        started, cpu = time.monotonic(), sum(map(cpu_s, pids))
        failed = replayed(engine, work, rows)
        wall, cpu = time.monotonic() - started, sum(map(cpu_s, pids)) - cpu
        peak = sum(map(peak_mb, pids))
    turns = engine.turns(np.array(rows, np.int64), np.zeros(0, np.int64))
    record.close()
    answered = turns.counts().answered
    columns = turns.columns
    good = columns["done_ns"] >= 0
    first, whole = (float((columns[name] - columns["issued_ns"])[good].mean()) / 1e6 for name in TIMES)
    print(Took(answered, failed, wall, cpu, first, whole, peak).to_json())


TIMES: Final = ("first_token_ns", "done_ns")


def replayed(engine: TrajectoryEngine, work: Work, rows: list[int]) -> int:
    """Submits all at once, as LoadGen's Offline does, and hears them out; how many failed."""
    numbers = range(len(rows))
    engine.submit(Requests(work.workload(), numbers, rows, PromptTable.empty(len(rows)), numbers))
    left, failed = len(rows), 0
    while left:
        for event in engine.poll(POLL_S):
            if isinstance(event, Replies):
                left -= len(event)
            elif isinstance(event, Failure):
                left, failed = left - 1, failed + 1
                print(f"{event.kind}: {event.message}", file=sys.stderr)
    return failed


@contextmanager
def in_a_process(work: Work) -> Iterator[tuple[Engine, list[int]]]:
    """The engine in a process of its own, and the processes that take part."""
    from harness.runs.engine_up import http_members  # what plans legs is no part of the other way's start

    lanes = lanes_before(1, 1)
    members = http_members(settings(work), lanes)
    log = Path(work.folder) / "client.log"
    with start_group(members, log=log, timeout_s=PATIENCE_S, lanes=lanes) as group:
        engine = connect(group.address)
        try:
            yield engine, [os.getpid(), *(process.pid for process in group.processes)]
        finally:
            engine.close()


@contextmanager
def inside(work: Work) -> Iterator[tuple[Engine, list[int]]]:
    """The engine's core in this process, as a worker has it (``LegJob.inside``)."""
    core = HttpCore(HttpSettings.parse(settings(work)))
    engine = InsideEngine(core)
    try:
        yield engine, [os.getpid()]
    finally:
        engine.close()
        core.close()


def settings(work: Work) -> dict[str, object]:
    """Of the http engine."""
    return {
        "server": "trtllm-serve",
        "model": MODEL,
        "endpoints": [{"name": "0", "url": f"http://127.0.0.1:{work.port}"}],
        "connections": work.concurrency,
        "info": dataclasses.asdict(EngineInfo("http", VOCABULARY, LONGEST, work.concurrency, None, {}, {})),
    }


if __name__ == "__main__":
    make_interpreter_quick()
    main(Work.parse(sys.argv[1]), sys.argv[2])
