"""The search for a rate with real LoadGen: on the scripted engine, whose limit is known, and on the CPU system."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest

from harness.config.rewrite import write_number
from harness.ledger import ResultsStore, State, StoredRun
from harness.ledger.search import SearchEcho, read_search, searches
from tests.harness_process import ScriptedProject, end_of, wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.harmony, pytest.mark.slow]

SEARCH = ("find_target_qps", "--systems=SCRIPTED", "--benchmarks=gpt-oss-120b", "--test_run")
SERVER = (*SEARCH, "--scenarios=Server")
PLACES, SERVICE_MS = 12, 20 + 7 * 2
CAPACITY = PLACES / (SERVICE_MS / 1000)
"""Requests a second that the engine below can answer: with a limit of 3 s on the first token, the highest rate too."""


@pytest.fixture
def project(scripted_project: ScriptedProject) -> ScriptedProject:
    """Eight tokens an answer, twelve at once: 353 a second."""
    scripted_project.write_benchmark(
        {
            "engine": {
                "kind": "scripted",
                "answer_tokens": 8,
                "slots": PLACES,
                "service": {"ttft_ms": 20, "per_token_ms": 2},
            },
            "scenarios": {"Offline": {"target_qps": 5000}, "Server": {"target_qps": 250}},
            "test_run": {
                "performance_samples": 512,
                "accuracy_samples": 64,
                "min_duration_ms": 6000,
                "server_queries": 600,
            },
        }
    )
    return scripted_project


def runs(project: ScriptedProject, leg: str, scenario: str = "Server") -> list[StoredRun]:
    return ResultsStore(project.results).attempts("SCRIPTED", "gpt-oss-120b", scenario, leg)


def ended(project: ScriptedProject, scenario: str = "Server") -> SearchEcho:
    folder = project.results / "SCRIPTED" / "gpt-oss-120b" / scenario / "probe"
    (number,) = searches(folder)
    return read_search(folder, number)


@pytest.mark.alone
@pytest.mark.timeout(600)
def test_the_scripted_engine_s_limit_is_found(project: ScriptedProject, standin_data: Path) -> None:
    configured = project.benchmark_file.read_bytes()
    done = project.run(*SERVER, "--from=300", "--probe_seconds=12", data=standin_data, timeout_s=500)
    assert done.code == 0, done.err + done.out
    echo = ended(project)
    assert echo.found is not None
    assert abs(echo.found / CAPACITY - 1) < 0.02, done.out
    assert f"found: target_qps {echo.found:g}, whose short run is VALID" in done.out
    assert done.err.count("starting the scripted engine") == 1
    probes = runs(project, "probe")
    assert 3 <= len(probes) <= 10
    assert [run.record.probe.number for run in probes if run.record.probe] == list(range(1, len(probes) + 1))
    for run in probes:
        assert run.record.test_run
        assert "probe of find_target_qps (short)" in run.record.not_submittable
        assert "short run (--test_run)" not in run.record.not_submittable
    confirmed = runs(project, "performance")[-1].record
    assert confirmed.state is State.FINISHED
    assert confirmed.verdict is not None and confirmed.verdict.valid
    assert confirmed.rate is not None and confirmed.rate.target_qps == echo.found
    assert confirmed.probe is None
    assert project.benchmark_file.read_bytes() == configured
    unwritten = project.run("status")
    assert unwritten.code == 0
    assert "changed since: scenario.target_qps" in unwritten.out
    write_number(project.benchmark_file, ("scenarios", "Server", "target_qps"), echo.found)
    written = project.run("status").out
    assert "scenario.target_qps" not in written
    assert "attempts" not in written  # of the leg there is one, however many probes there were


@pytest.mark.alone
@pytest.mark.timeout(300)
def test_a_hopeless_probe_is_ended_early_and_none_found_is_code_1(project: ScriptedProject, standin_data: Path) -> None:
    done = project.run(*SERVER, "--probe_seconds=12", "--from=1400", "--max_probes=1", data=standin_data)
    assert done.code == 1, done.err
    (probe,) = runs(project, "probe")
    assert probe.record.state is State.INTERRUPTED
    assert probe.record.note is not None and probe.record.note.startswith("ended early: ")
    assert probe.record.counts is not None and probe.record.counts.issued < 1400 * 12
    echo = ended(project)
    assert echo.found is None
    assert "none found: no probe of 1 kept the limits" in done.out
    assert echo.runs[0].sustained == pytest.approx(CAPACITY, rel=0.05)
    assert runs(project, "performance") == []


@pytest.mark.timeout(300)
def test_an_interrupted_search_is_gone_on_with(project: ScriptedProject, standin_data: Path) -> None:
    options = (*SERVER, "--probe_seconds=5", "--max_probes=2", "--from=200")
    process = project.start(*options, data=standin_data)
    second_s_log = project.results / "SCRIPTED/gpt-oss-120b/Server/probe/attempt_02/logs/mlperf_log_detail.txt"
    wait_until(second_s_log.exists, "LoadGen in the second probe")
    process.send_signal(signal.SIGINT)
    stopped = end_of(process)
    assert stopped.code == 130, stopped.err
    assert "not ended: the next search takes its probes" in stopped.out
    first, second = (run.record for run in runs(project, "probe"))
    assert first.state is State.FINISHED
    assert second.state is State.INTERRUPTED
    again = project.run(*options, data=standin_data)
    assert again.code == 0, again.err
    assert "probes of a search that was interrupted, taken as they are: 1" in again.err
    echo = ended(project)
    assert [run.former for run in echo.probes] == [True, False]
    highest = max(run.came for run in echo.probes if run.came is not None)
    assert echo.found == pytest.approx(0.995 * highest, rel=0.001)
    assert "no rate that fails was probed" in again.out


@pytest.mark.alone
@pytest.mark.timeout(300)
def test_offline_s_rate_is_what_a_short_run_answers(project: ScriptedProject, standin_data: Path) -> None:
    """The configured rate is fourteen times too high: the probe is ended, and tells it all the same."""
    done = project.run(*SEARCH, "--scenarios=Offline", "--probe_seconds=5", data=standin_data)
    assert done.code == 0, done.err + done.out
    echo = ended(project, "Offline")
    assert [run.kind for run in echo.runs] == ["probe", "full"]
    assert echo.found == pytest.approx(CAPACITY * 1.02, rel=0.03)
    (probe,) = runs(project, "probe", "Offline")
    assert probe.record.state is State.INTERRUPTED
    assert "longer than 10 s" in (probe.record.note or "")


@pytest.mark.torch
@pytest.mark.timeout(600)
def test_the_cpu_system_ends_in_a_valid_run_or_says_that_there_is_none(
    scripted_project: ScriptedProject, standin_data: Path
) -> None:
    """Which of the two depends on the machine."""
    changes: dict[str, Any] = {
        "engine": {"kind": "torch", "checkpoint": {"make": "tiny-gpt-oss"}, "slots": 16, "max_total_tokens": 512},
        "output_caps": {"performance": 4, "accuracy": 4},
        "scenarios": {"Server": {"target_qps": {"warmup_share": 0.7}}},
        "warmup": {"requests": 32},
        "test_run": {"performance_samples": 92, "min_duration_ms": 3000, "server_queries": 460},
    }
    scripted_project.write_benchmark(changes)
    done = scripted_project.run(*SERVER, "--max_probes=2", data=standin_data, timeout_s=500)
    echo = ended(scripted_project)
    assert echo.guess_from == "warm-up x 0.7"
    full = runs(scripted_project, "performance")
    if done.code == 0:
        assert echo.found is not None
        assert full[-1].record.verdict is not None and full[-1].record.verdict.valid
    else:
        assert done.code == 1, done.err
        assert f"none found: {echo.why}" in done.out
        assert echo.why
