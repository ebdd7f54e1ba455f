"""Legs over two servers and two client processes: what each does, and what is left when one of them goes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from harness.ledger import ResultsStore, State
from harness.ledger.samples import SampleState, read_samples
from tests.engines.launch.made import free_ports
from tests.harness_process import ROOT, ScriptedProject, children_of, end_of, living, wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.harmony]

SHORT = ("run_harness", "--systems=SCRIPTED", "--test_run", "--test_mode=PerformanceOnly")
QUICK = '{"length": 8, "first_token": {"mean_s": 0.002}}'
SLOW = '{"length": 8, "first_token": {"mean_s": 0.3}, "slots": 8}'


@contextmanager
def server(script: str, *more: str) -> Iterator[subprocess.Popen[str]]:
    """A scripted server with ``more`` options, which leads a process group of its own.

    The first line that it prints ends with its URL.
    """
    command = [sys.executable, "-m", "harness", "serve", "--engine=scripted", f"--script={script}", "--port=0", *more]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "200"}
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment, start_new_session=True
    )
    try:
        yield process
    finally:
        process.terminate()
        process.wait(30)
        if process.stdout is not None:
            process.stdout.close()


@contextmanager
def two_servers(script: str) -> Iterator[list[subprocess.Popen[str]]]:
    """Two servers that answer by a script."""
    pytest.importorskip("starlette", reason="needs the [serve] extra")
    with ExitStack() as stack:
        yield [stack.enter_context(server(script)) for _ in range(2)]


def urls_of(processes: list[subprocess.Popen[str]]) -> list[str]:
    """Where servers that were just started listen."""
    return [process.stdout.readline().split()[-1] for process in processes if process.stdout is not None]


@pytest.fixture(scope="module")
def quick() -> Iterator[list[str]]:
    """The URLs of two quick servers."""
    with two_servers(QUICK) as processes:
        yield urls_of(processes)


@pytest.fixture(scope="module")
def slow() -> Iterator[list[str]]:
    """The URLs of two servers that take long enough for something to happen meanwhile."""
    with two_servers(SLOW) as processes:
        yield urls_of(processes)


def write(project: ScriptedProject, urls: list[str], **changes: Any) -> None:
    """Has a project run against servers."""
    engine = {
        "kind": "http",
        "server": "torch",
        "checkpoint": {"make": "tiny-gpt-oss"},
        "replicas": 2,
        "endpoints": urls,
        "clients": {"processes": 2, "connections": 64},
    }
    project.write_benchmark({"engine": engine, **changes})


def clients_of(pid: int) -> list[int]:
    """The client processes of a run."""
    return [child for child in children_of(pid) if "harness.engines.host" in psutil.Process(child).cmdline()]


def attempt(project: ScriptedProject, scenario: str) -> Path:
    return project.results / f"SCRIPTED/gpt-oss-120b/{scenario}/performance/attempt_01"


def record(project: ScriptedProject) -> Any:
    (run,) = ResultsStore(project.results).runs()
    return run.record


@contextmanager
def offline(project: ScriptedProject, data: Path, *, begun: bool = True) -> Iterator[subprocess.Popen[str]]:
    """An Offline leg that LoadGen has ``begun``; it is ended where a test forgets to."""
    process = project.start(*SHORT, "--scenarios=Offline", data=data)
    try:
        if begun:
            wait_until((attempt(project, "Offline") / "logs/mlperf_log_detail.txt").exists, "LoadGen's log", 120)
        yield process
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGINT)
            end_of(process)


def test_server_samples_go_to_both(scripted_project: ScriptedProject, standin_data: Path, quick: list[str]) -> None:
    write(scripted_project, quick)
    ended = scripted_project.run(*SHORT, "--scenarios=Server", data=standin_data)
    assert ended.code == 0, ended.err
    kept = record(scripted_project)
    assert kept.verdict.valid
    assert kept.engine.replicas == ["0", "1"]
    assert kept.client_counters is not None
    assert kept.client_counters["requests"] == kept.counts.issued
    assert kept.client_counters["failures"] == kept.client_counters["retries"] == 0
    samples = read_samples(attempt(scripted_project, "Server") / "samples.arrow")
    assert set(samples["state"]) == {SampleState.ANSWERED}
    by_replica = Counter(samples["replica"].tolist())
    assert sorted(by_replica) == [0, 1]
    assert min(by_replica.values()) > 100


def test_an_offline_query_is_split_evenly(
    scripted_project: ScriptedProject, standin_data: Path, quick: list[str]
) -> None:
    write(scripted_project, quick, scenarios={"Offline": {"target_qps": 2_000}})
    ended = scripted_project.run(*SHORT, "--scenarios=Offline", data=standin_data)
    assert ended.code in (0, 1), ended.err  # the query may take less time than LoadGen wants
    samples = read_samples(attempt(scripted_project, "Offline") / "samples.arrow")
    assert set(samples["state"]) == {SampleState.ANSWERED}
    counts = Counter(samples["replica"].tolist())
    assert sorted(counts) == [0, 1]
    assert abs(counts[0] - counts[1]) <= 1


def test_one_replica_dies(scripted_project: ScriptedProject, standin_data: Path) -> None:
    with two_servers(SLOW) as servers:
        write(scripted_project, urls_of(servers))
        with offline(scripted_project, standin_data) as process:
            below = children_of(process.pid)
            os.killpg(servers[1].pid, signal.SIGKILL)
            ended = end_of(process)
    assert ended.code == 4, ended.err
    assert "replica 1 died" in ended.err
    assert "Traceback" not in ended.err
    assert not living(below)
    kept = record(scripted_project)
    assert kept.state is State.BROKEN
    assert "replica 1 died" in kept.note
    assert kept.counts.outstanding == 0
    assert kept.counts.failed > 0
    assert kept.counts.answered + kept.counts.failed == kept.counts.issued
    samples = read_samples(attempt(scripted_project, "Offline") / "samples.arrow")
    assert len(samples["state"]) == kept.counts.issued


def test_a_client_process_is_killed(scripted_project: ScriptedProject, standin_data: Path, slow: list[str]) -> None:
    write(scripted_project, slow)
    with offline(scripted_project, standin_data) as process:
        below = children_of(process.pid)
        victim = max(clients_of(process.pid))
        os.kill(victim, signal.SIGKILL)
        ended = end_of(process)
    assert ended.code == 4, ended.err
    assert "of the engine was ended by SIGKILL" in ended.err
    assert "Traceback" not in ended.err
    assert not living(below)
    kept = record(scripted_project)
    assert kept.state is State.BROKEN
    assert kept.counts.outstanding == 0
    assert {failure.kind for failure in kept.failures} == {"engine_died"}
    samples = read_samples(attempt(scripted_project, "Offline") / "samples.arrow")
    assert len(samples["state"]) == kept.counts.issued


def test_interrupted_while_loadgen_runs(scripted_project: ScriptedProject, standin_data: Path, slow: list[str]) -> None:
    write(scripted_project, slow)
    with offline(scripted_project, standin_data) as process:
        below = children_of(process.pid)
        assert len(clients_of(process.pid)) == 2
        process.send_signal(signal.SIGINT)
        ended = end_of(process)
    assert ended.code == 130, ended.err
    assert "Traceback" not in ended.err
    assert not living(below)
    assert record(scripted_project).state is State.INTERRUPTED


def test_interrupted_while_the_clients_start(
    scripted_project: ScriptedProject, standin_data: Path, slow: list[str]
) -> None:
    write(scripted_project, slow)
    with offline(scripted_project, standin_data, begun=False) as process:
        wait_until(lambda: len(clients_of(process.pid)) == 2, "the client processes")
        below = children_of(process.pid)
        process.send_signal(signal.SIGINT)
        ended = end_of(process)
    assert ended.code == 130, ended.err
    assert "Traceback" not in ended.err
    assert not living(below)


def test_the_harness_killed_leaves_no_client_behind(
    scripted_project: ScriptedProject, standin_data: Path, slow: list[str]
) -> None:
    write(scripted_project, slow)
    with offline(scripted_project, standin_data) as process:
        below = children_of(process.pid)
        os.kill(process.pid, signal.SIGKILL)
        end_of(process)
        wait_until(lambda: not living(below), "the end of clients and worker", 20)


@pytest.mark.torch
def test_a_server_that_was_started_for_the_run_dies(scripted_project: ScriptedProject, standin_data: Path) -> None:
    pytest.importorskip("starlette", reason="needs the [serve] extra")
    engine = {
        "kind": "http",
        "server": "torch",
        "checkpoint": {"make": "tiny-gpt-oss"},
        "options": {"slots": 4, "max_total_tokens": 768},
        "launch": {"port": free_ports()},
    }
    caps = {"performance": 64, "accuracy": 64}
    scripted_project.write_benchmark({"engine": engine, "output_caps": caps, "warmup": {"requests": 4}})
    with offline(scripted_project, standin_data) as process:
        below = children_of(process.pid)
        (victim,) = [pid for pid in below if psutil.Process(pid).cmdline()[1:4] == ["-m", "harness", "serve"]]
        os.kill(victim, signal.SIGKILL)
        ended = end_of(process)
    assert ended.code == 4, ended.err
    assert "was ended by SIGKILL" in ended.err
    assert "replica 0 died" in ended.err
    assert "Traceback" not in ended.err
    assert not living(below)
    assert record(scripted_project).state is State.BROKEN
