"""Runs of contestants, each in processes of its own, against one test server."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.agentic.peer import PROGRAM
from benchmarks.agentic.work import Took, Work

ROOT: Final = Path(__file__).parents[2]
FLOOR: Final = "bare socket"
APART: Final = "ours, apart"
"""The engine in a process of its own."""
INSIDE: Final = "ours, inside"
"""The engine's core in the worker's process."""
OURS: Final = (INSIDE, APART)
PEER: Final = "mlcommons/endpoints"


@dataclass(frozen=True, slots=True)
class Run:
    """What a contestant took, and how long its process was there beside: its start and its end."""

    took: Took
    around_s: float

    @property
    def turns_per_s(self) -> float:
        """Answered turns."""
        return self.took.turns / self.took.wall_s

    @property
    def memory_mb(self) -> float:
        """The most of all its processes; not a number where nobody looked."""
        return math.nan if self.took.peak_mb is None else self.took.peak_mb

    @property
    def cpu_ms(self) -> float:
        """Of all its processes, a turn."""
        return self.took.cpu_s / max(1, self.took.turns) * 1e3


def peer_is_there() -> bool:
    """Whether the environment names mlcommons' client."""
    return bool(os.environ.get(PROGRAM))


def run(contestant: str, work: Work) -> Run:
    """One contestant's run. Raises CalledProcessError where it failed."""
    with tempfile.TemporaryDirectory(dir=work.folder, prefix="run-") as folder:
        own = Work(work.store, work.data, folder, work.port, work.concurrency, work.passes)
        began = time.monotonic()
        said = _call(_module(contestant), own.to_json(), *(_HOW.get(contestant, ())))
        took = Took.parse(said)
        return Run(took, time.monotonic() - began - took.wall_s)


_HOW: Final = {APART: ("process",), INSIDE: ("inside",)}
_MODULES: Final = {FLOOR: "floor", APART: "ours", INSIDE: "ours", PEER: "peer"}


def _module(contestant: str) -> list[str]:
    return [sys.executable, "-m", f"benchmarks.agentic.{_MODULES[contestant]}"]


def _call(words: Sequence[str], *arguments: str) -> str:
    process = subprocess.Popen([*words, *arguments], stdout=subprocess.PIPE, text=True, cwd=ROOT, env=_environment())
    said, _ = process.communicate()
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, words)
    return said


@contextmanager
def server(data: Path, first_ms: float) -> Iterator[int]:
    """The port of a recorded-answer server; prints what it says of itself at the end."""
    command = [sys.executable, "-m", "tests.doubles.recorded_process", str(data), "--first-ms", str(first_ms)]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT, env=_environment()
    )
    with process:
        assert process.stdout is not None
        try:
            yield json.loads(process.stdout.readline())["port"]
        finally:
            told = json.loads(process.communicate("")[0])
            print(
                f"  server: {told['answered']:,} turns answered of {told['asked']:,} asked, "
                f"{told['cpu_s'] / max(1, told['asked']) * 1e3:.3f} ms of CPU each, "
                f"first bytes {told['late_ms']:.2f} ms late"
            )


def _environment() -> dict[str, str]:
    return os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
