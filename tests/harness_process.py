"""Runs ``python -m harness`` as a user does: a process, a folder, an exit code."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[1]
TIMEOUT_S = 120


@dataclass(frozen=True, slots=True)
class Ended:
    """How a verb ended."""

    code: int
    out: str
    err: str


@dataclass(frozen=True, slots=True)
class ScriptedProject:
    """A folder with ``systems/SCRIPTED``; its results lie in ``results``."""

    folder: Path

    @classmethod
    def made(cls, folder: Path) -> ScriptedProject:
        """Makes the folder, with the system's description and the plain benchmark file."""
        system = folder / "systems" / "SCRIPTED"
        system.mkdir(parents=True)
        described = {
            "system_name": "scripted",
            "number_of_nodes": 1,
            "cooling": None,
            "host_networking_topology": None,
        }
        (system / "system.yaml").write_text(yaml.safe_dump(described))
        project = cls(folder)
        project.write_benchmark({})
        return project

    @property
    def results(self) -> Path:
        return self.folder / "results"

    @property
    def benchmark_file(self) -> Path:
        return self.folder / "systems" / "SCRIPTED" / "gpt-oss-120b.yaml"

    def write_benchmark(self, changes: dict[str, Any]) -> None:
        """The benchmark's file: a fast scripted engine, with top-level keys replaced by ``changes``."""
        content: dict[str, Any] = {
            "engine": {"kind": "scripted", "answer_tokens": 8, "service": {"ttft_ms": 2, "per_token_ms": 0.5}},
            "output_caps": {"performance": 64, "accuracy": 512},
            "scenarios": {"Offline": {"target_qps": 50}, "Server": {"target_qps": 200}},
            "warmup": {"requests": 8},
            "test_run": {
                "performance_samples": 64,
                "accuracy_samples": 64,
                "min_duration_ms": 500,
                "server_queries": 600,
            },
        }
        content["scenarios"]["Offline"]["target_qps"] = 20000
        content.update(changes)
        self.benchmark_file.write_text(yaml.safe_dump(content))

    def start(self, *argv: object, data: Path | None = None) -> subprocess.Popen[str]:
        """Starts a verb in the project's folder."""
        environ = {**os.environ, "PYTHONPATH": str(ROOT), "HARNESS_CACHE_DIR": str(ROOT / "build" / "cache")}
        if data is not None:
            environ["HARNESS_DATA_DIR"] = str(data)
        return subprocess.Popen(
            [sys.executable, "-m", "harness", *map(str, argv)],
            cwd=self.folder,
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def run(self, *argv: object, data: Path | None = None, timeout_s: float = TIMEOUT_S) -> Ended:
        """Runs a verb to its end."""
        return end_of(self.start(*argv, data=data), timeout_s)


def end_of(process: subprocess.Popen[str], timeout_s: float = TIMEOUT_S) -> Ended:
    """Waits for a verb and reads what it printed; kills it where it hangs."""
    try:
        out, err = process.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        out, err = process.communicate()
        raise AssertionError(f"the verb hung:\n{out}\n{err}") from None
    return Ended(process.returncode, out, err)


def wait_until(condition: Callable[[], object], what: str, timeout_s: float = 60) -> None:
    """Polls until ``condition`` holds."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"in vain waited for: {what}")
        time.sleep(0.02)


def living(pids: list[int]) -> list[int]:
    """Those of the processes that still run; one that has ended and that nobody has reaped does not."""
    import psutil

    alive = []
    for pid in pids:
        try:
            if psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
                alive.append(pid)
        except psutil.NoSuchProcess:
            continue
    return alive


def children_of(pid: int) -> list[int]:
    """All processes below one, by their command's start."""
    import psutil

    return [child.pid for child in psutil.Process(pid).children(recursive=True)]
