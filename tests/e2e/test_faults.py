"""Legs over a server that misbehaves on demand: what is counted, what is told, and how they end."""

from __future__ import annotations

import signal
from pathlib import Path

import psutil
import pytest

from tests.e2e.test_replicas import QUICK, attempt, clients_of, record, server
from tests.harness_process import ScriptedProject, children_of, end_of, living, wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.harmony]

SHORT = ("run_harness", "--systems=SCRIPTED", "--test_run", "--test_mode=PerformanceOnly", "--scenarios=Server")
BEGUN_BEFORE = 4
"""Requests of canary and warm-up that a short warm-up makes; later ones are samples, or soon will be."""


def write(project: ScriptedProject, url: str) -> None:
    engine = {
        "kind": "http",
        "server": "torch",
        "checkpoint": {"make": "tiny-gpt-oss"},
        "endpoints": [url],
        "clients": {"connections": 64, "request_timeout_s": 20},
    }
    project.write_benchmark({"engine": engine, "warmup": {"requests": BEGUN_BEFORE}})


def connected(pid: int) -> bool:
    """Whether a process has a connection to a server."""
    return any(each.status == psutil.CONN_ESTABLISHED for each in psutil.Process(pid).net_connections("tcp"))


def test_each_kind_of_failure_is_counted_and_the_run_goes_on(
    scripted_project: ScriptedProject, standin_data: Path
) -> None:
    failing = {
        "400": "http_400",
        "429": "http_429",
        "500": "http_500",
        "503": "http_503",
        "reset": "reset",
        "half_frame": "truncated",
        "no_ids": "missing_ids",
        "wrong_model": "wrong_model",
        "sse_error": "sse_error",
    }
    places = {fault: 50 + 7 * i for i, fault in enumerate(failing)}
    harmless = {"crlf@101/5": "", "split@102/5": "", "slow_first_token:0.5@103": "", "close_idle@104/25": ""}
    faults = [*(f"{fault}@{n}" for fault, n in places.items()), *harmless]
    with server(QUICK, *(f"--fault={fault}" for fault in faults)) as running:
        assert running.stdout is not None
        write(scripted_project, running.stdout.readline().split()[-1])
        ended = scripted_project.run(*SHORT, data=standin_data)
    assert ended.code == 1, ended.err
    told = ended.err.replace("\n", " ")
    assert f"RUN-FAILED: found {len(failing)} of " in told
    assert "; the first: endpoint 0 (http://127.0.0.1:" in told
    assert "answered with status 400: " in told
    assert "Traceback" not in ended.err
    kept = record(scripted_project)
    assert kept.failure_kinds == dict.fromkeys(failing.values(), 1)
    assert (kept.counts.failed, kept.counts.outstanding) == (len(failing), 0)
    assert kept.client_counters["failures"] == len(failing)
    assert not kept.verdict.valid


@pytest.mark.parametrize(
    ("hangs", "line", "number"),
    [
        ("hang@1", "replica answers; client processes: 1", signal.SIGINT),
        (f"hang@{BEGUN_BEFORE}", "canary harmony round trip: well", signal.SIGTERM),
    ],
    ids=["canary", "warm-up"],
)
def test_told_to_end_before_loadgen_begins(
    scripted_project: ScriptedProject, standin_data: Path, hangs: str, line: str, number: signal.Signals
) -> None:
    with server(QUICK, f"--fault={hangs}") as running:
        assert running.stdout is not None
        write(scripted_project, running.stdout.readline().split()[-1])
        process = scripted_project.start(*SHORT, data=standin_data)
        try:
            assert process.stderr is not None
            assert any(line in told for told in process.stderr)
            wait_until(lambda: [pid for pid in clients_of(process.pid) if connected(pid)], "a request", 60)
            below = children_of(process.pid)
        finally:
            process.send_signal(number)
            ended = end_of(process)
    assert ended.code == 130, ended.err
    assert "Traceback" not in ended.err
    assert not attempt(scripted_project, "Server").exists()
    assert not living(below)
