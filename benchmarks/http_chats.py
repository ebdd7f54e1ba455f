"""What our client needs for as many chats with images outstanding as the round's Offline query has: memory, CPU time.

All chats are submitted at once, over the default number of connections, to a server that takes them as fast as it can.
The bodies lie in one store, which every process maps and the system's page cache has once: what a process has of it at
a time is sampled, and what it has for itself. Run as ``python benchmarks/http_chats.py``; it writes the store (6 GB by
default) into ``--folder`` and removes it. Exit status 1 where a goal is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from machine import peak_mb
from sse.load import cpu_s
from sse.ours import POLL_S, clients
from sse.run import HERE

from harness.config.engines import Clients
from harness.engines.base import Failure, PromptTable, Replies, Requests, Sampling, TokenEvents, Workload
from harness.engines.bodies import BodyStore

CHATS = 48_289
KILOBYTES = 130
PROCESSES = 2
PROCESSES_MB = 1_000
"""Of the driver and all client processes, mapped files and all: no more than for as many prompts of token ids."""
TOGETHER_MB = 8_000
"""With the store, which is in memory once."""
SAMPLE_S = 0.05


def main(argv: Sequence[str] | None = None) -> int:
    """Prints what was needed; 1 where that is more than the goals."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--chats", type=int, default=CHATS, help="how many are outstanding")
    parser.add_argument("--kilobytes", type=int, default=KILOBYTES, help="of a chat's body")
    parser.add_argument("--folder", type=Path, default=None, help="where the store is written for as long as it takes")
    options = parser.parse_args(argv)
    with tempfile.TemporaryDirectory(dir=options.folder, prefix="http-chats-") as folder:
        store = BodyStore.write(Path(folder) / "chats", bodies(options.chats, options.kilobytes * 1_000))
        return 0 if measure(store, options.chats) else 1


def bodies(count: int, size: int) -> Iterator[bytes]:
    """Chats of one size, no two alike."""
    noise = np.random.default_rng(0).bytes(size).hex()
    head = b'{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/JPEG;base64,'
    tail = b'"}}]}]}'
    for row in range(count):
        start = row % size
        yield head + b"%08d" % row + noise[start : start + size - len(head) - len(tail) - 8].encode() + tail


def measure(store: BodyStore, chats: int) -> bool:
    """Asks all of them at once."""
    sampling = Sampling(0.7, 0.8, 20, 150, (), 0)
    workload = Workload("catalogue", sampling, TokenEvents.NONE, str(store.path))
    rows = range(chats)
    answered = 0
    with server() as port, clients([port], PROCESSES, Clients().connections) as (group, engine):
        pids = [os.getpid(), *(process.pid for process in group.processes)]
        with Sampled(pids) as sampled:
            started, cpu = time.monotonic(), sum(map(cpu_s, pids[1:]))
            engine.submit(Requests(workload, rows, rows, PromptTable.empty(1), np.zeros(chats, np.int64).tolist()))
            while answered < chats:
                for event in engine.poll(POLL_S):
                    if isinstance(event, Replies):
                        answered += len(event)
                    elif isinstance(event, Failure):
                        raise RuntimeError(f"{event.kind}: {event.message}")
            took, cpu = time.monotonic() - started, sum(map(cpu_s, pids[1:])) - cpu
        counters = engine.counters(POLL_S)
    stored = store.path.stat().st_size / 1e6
    print(f"{chats:,} chats outstanding, a store of {stored:,.0f} MB, {PROCESSES} client processes: {took:.1f} s")
    print(f"  {counters['bytes_sent'] / 1e6:,.0f} MB sent over {counters['connections_opened']} connections,", end=" ")
    print(f"{cpu / chats * 1e6:.0f} us of CPU a chat, {counters['retries']} retries, {counters['failures']} failures")
    anonymous, mapped = sampled.most("RssAnon"), sampled.most("RssFile")
    names = ("driver", *(f"client {number}" for number in range(PROCESSES)))
    for name, own, shared, pid in zip(names, anonymous, mapped, sampled.peaks, strict=True):
        print(f"  {name}: anonymous {own:.0f} MB, mapped files {shared:.0f} MB, at most together {pid:.0f} MB")
    together = sum(anonymous) + sum(mapped)
    met = together < PROCESSES_MB and sum(anonymous) + stored < TOGETHER_MB
    print(f"  processes together {together:.0f} MB; less than {PROCESSES_MB:,}:", end=" ")
    print("met" if together < PROCESSES_MB else "MISSED")
    print(f"  with the store once {sum(anonymous) + stored:,.0f} MB; less than {TOGETHER_MB:,}:", end=" ")
    print("met" if sum(anonymous) + stored < TOGETHER_MB else "MISSED")
    return met


class Sampled:
    """The most memory of each kind that some processes had in a block, in millions of bytes."""

    def __init__(self, pids: Sequence[int]) -> None:
        self._pids = pids
        self._most: dict[tuple[int, str], float] = {}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.peaks: list[float] = []

    def __enter__(self) -> Sampled:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        self.peaks = [peak_mb(pid) for pid in self._pids]

    def most(self, kind: str) -> list[float]:
        """Of ``RssAnon`` or ``RssFile``, process by process."""
        return [self._most[pid, kind] for pid in self._pids]

    def _run(self) -> None:
        while not self._over.wait(SAMPLE_S):
            for pid in self._pids:
                status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
                for kind in ("RssAnon", "RssFile"):
                    now = int(status.partition(f"{kind}:")[2].split()[0]) * 1024 / 1e6
                    self._most[pid, kind] = max(now, self._most.get((pid, kind), 0.0))


@contextmanager
def server() -> Iterator[int]:
    """The port of one that takes chats."""
    command = [sys.executable, "-m", "sse.chats"]
    environment = os.environ | {"PYTHONPATH": str(HERE)}
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)
    with process:
        assert process.stdout is not None
        try:
            yield json.loads(process.stdout.readline())["port"]
        finally:
            told = json.loads(process.communicate("")[0])
            print(
                f"  server: {told['answered']:,} chats, {told['received'] / 1e6:,.0f} MB, {told['cpu_s']:.1f} s of CPU"
            )


if __name__ == "__main__":
    sys.exit(main())
