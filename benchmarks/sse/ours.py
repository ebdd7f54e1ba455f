"""Our client under a load: ``python -m sse.ours LOAD``. One client process, and this one that drives it.

The driver is what a LoadGen worker is, without LoadGen: it holds the Engine interface, one request a message, first
tokens and whole answers told. It holds every answer against the ids that the server sends.
"""

from __future__ import annotations

import dataclasses
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from harness.engines.address import lanes_before, lanes_each
from harness.engines.base import (
    Answers,
    Engine,
    EngineInfo,
    Failure,
    PromptTable,
    Requests,
    Sampling,
    TokenEvents,
    Tokens,
    Workload,
)
from harness.engines.group import EngineGroup, start_group
from harness.engines.replicas import connect
from harness.runs.engine_up import http_members
from sse import shape
from sse.load import Load, Took, cpu_s

START_S = 60.0
POLL_S = 10.0
LONGEST = 1 << 20
ALONE = lanes_before(1, 1)


@contextmanager
def clients(ports: Sequence[int], processes: int, connections: int) -> Iterator[tuple[EngineGroup, Engine]]:
    """Client processes before servers at these ports; ``connections`` for each server. And what a worker holds.

    Where there are as many processes as servers, each knows its own alone: it may have so many open files, no more.
    """
    if processes == len(ports):
        members, lanes = (
            [http_members(settings([port], connections), ALONE)[0] for port in ports],
            lanes_each(processes),
        )
    else:
        lanes = lanes_before(len(ports), processes)
        members = http_members(settings(ports, connections), lanes)
    with (
        tempfile.TemporaryDirectory(prefix="http-client-") as folder,
        start_group(members, log=Path(folder) / "client.log", timeout_s=START_S, lanes=lanes) as group,
    ):
        engine = connect(group.address)
        try:
            yield group, engine
        finally:
            engine.close()


def settings(ports: Sequence[int], connections: int) -> dict[str, object]:
    """Of the http engine, for servers at these ports."""
    return {
        "server": "trtllm-serve",
        "model": shape.MODEL,
        "endpoints": [{"name": str(i), "url": f"http://127.0.0.1:{port}"} for i, port in enumerate(ports)],
        "connections": connections,
        "info": dataclasses.asdict(EngineInfo("http", shape.VOCABULARY, LONGEST, connections, None, {}, {})),
    }


def workload(tokens: int, events: TokenEvents) -> Workload:
    """Answers of so many tokens."""
    return Workload("bench", Sampling(1.0, 1.0, 0, tokens, (), 0), events)


def prompts(rows: int, length: int) -> PromptTable:
    """Prompts of one length."""
    ids = np.random.default_rng(0).integers(shape.VOCABULARY, size=(rows, length), dtype=np.int32)
    return PromptTable.from_padded(ids, np.full(rows, length))


def main(load: Load) -> None:
    """Runs a load."""
    with clients([load.port], 1, load.streams) as (group, engine):
        driver = Driver(engine, load)
        driver.ask(load.streams, 1)
        pids = [process.pid for process in group.processes]
        started, theirs, own = time.monotonic(), sum(map(cpu_s, pids)), cpu_s(os.getpid())
        driver.ask(load.answers, load.tokens)
        took = Took(
            load.answers,
            sum(map(cpu_s, pids)) - theirs,
            cpu_s(os.getpid()) - own,
            time.monotonic() - started,
            {name: float(value) for name, value in engine.counters(POLL_S).items()},
        )
    print(took.to_json())


class Driver:
    """Keeps a load's streams busy."""

    def __init__(self, engine: Engine, load: Load) -> None:
        self._engine = engine
        self._streams = load.streams
        self._prompts = prompts(1, load.prompt)
        self._next = 0

    def ask(self, answers: int, tokens: int) -> None:
        """Asks for so many answers and waits for them. Raises for one that is not the server's."""
        asked = workload(tokens, TokenEvents.FIRST)
        expected = np.array(shape.token_ids(tokens), np.int32)
        first = self._next
        left, told = answers, 0
        for _ in range(min(answers, self._streams)):
            self._submit(asked)
        while left:
            for event in self._engine.poll(POLL_S):
                if isinstance(event, Tokens):
                    told += len(event.numbers)
                elif isinstance(event, Answers):
                    left -= len(event)
                    if not np.array_equal(event.tokens.reshape(len(event), -1), np.tile(expected, (len(event), 1))):
                        raise RuntimeError(f"not the answer: {event}")
                    for _ in range(min(len(event), first + answers - self._next)):
                        self._submit(asked)
                elif isinstance(event, Failure):
                    raise RuntimeError(f"{event.kind}: {event.message}")
        if told > answers:
            raise RuntimeError(f"{told} first tokens of {answers} answers")

    def _submit(self, asked: Workload) -> None:
        number, self._next = self._next, self._next + 1
        self._engine.submit(Requests(asked, (number,), (0,), self._prompts, (0,)))


if __name__ == "__main__":
    main(Load.parse(sys.argv[1]))
