"""Real LoadGen over the scripted engine where chats are asked: what is logged of them, and what can go wrong."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
import yaml

from harness.clients.loadgen.job import FAILED_DATA, ChatsFile, LegJob, Outcome
from harness.clients.loadgen.launch import run_job
from harness.clients.loadgen.user_conf import write
from harness.engines.address import lanes_each
from harness.engines.base import Sampling
from harness.engines.bodies import BodyStore
from harness.engines.group import EngineGroup, Member, start_group
from harness.engines.start import EngineSpec
from harness.events import ignore
from harness.ledger import ResultsStore, State
from harness.ledger.samples import SampleState, read_samples
from harness.logs import AccuracyLog, DetailLog
from tests.harness_process import ScriptedProject, children_of, end_of, living, wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.qwen3vl]

NAME = "qwen3-vl-235b-a22b"
SUBSET = "shopify_product_catalogue"
ROWS = 48
SHORT = ("run_harness", "--systems=SCRIPTED", "--test_run")
OFFLINE = (*SHORT, "--scenarios=Offline")
SILENT = {"faults": {"performance": {"hang": list(range(ROWS))}}}


@pytest.fixture(scope="module")
def catalogue(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small stand-in of both tables."""
    from harness import benchmarks, rules

    folder = tmp_path_factory.mktemp("data")
    benchmarks.get(NAME, rules.load("v6.1")).make_dataset(folder, seed=0, rows=ROWS)
    return folder


@pytest.fixture
def project(scripted_project: ScriptedProject) -> ScriptedProject:
    scripted_project.benchmark_file.unlink()
    write_benchmark(scripted_project)
    return scripted_project


def write_benchmark(project: ScriptedProject, **engine: Any) -> None:
    service = {"ttft_ms": 400, "per_token_ms": 0.5}
    content = {
        "engine": {"kind": "scripted", "right": {SUBSET: 0.75}, "service": service, **engine},
        "scenarios": {name: {"target_qps": 400} for name in ("Offline", "Server", "Interactive")},
        "warmup": {"requests": 4},
        "test_run": {
            "performance_samples": ROWS,
            "accuracy_samples": ROWS,
            "min_duration_ms": 300,
            "server_queries": 480,
        },
    }
    content["scenarios"]["Offline"]["target_qps"] = 20000
    (project.folder / "systems/SCRIPTED" / f"{NAME}.yaml").write_text(yaml.safe_dump(content))


def folder_of(project: ScriptedProject, scenario: str, leg: str) -> Path:
    return project.results / f"SCRIPTED/{NAME}/{scenario}/{leg}/attempt_01"


def records(project: ScriptedProject) -> dict[tuple[str, str], Any]:
    return {(run.record.id.scenario, run.record.id.leg): run.record for run in ResultsStore(project.results).runs()}


def test_both_legs_are_valid_and_scored(project: ScriptedProject, catalogue: Path) -> None:
    ended = project.run(*OFFLINE, data=catalogue)
    assert ended.code == 0, ended.err
    kept = records(project)
    assert set(kept) == {("Offline", "performance"), ("Offline", "accuracy")}
    accuracy = kept["Offline", "accuracy"]
    subset = accuracy.accuracy.subsets[SUBSET]
    assert (subset.correct, subset.samples) == (36, ROWS)
    assert subset.mean_output_tokens == accuracy.counts.output_tokens / ROWS > 10
    assert f"stand-in data set of {ROWS} rows (the round's: 48289)" in accuracy.not_submittable
    entries = list(AccuracyLog(folder_of(project, "Offline", "accuracy") / "logs/mlperf_log_accuracy.json"))
    assert sorted(entry.sample for entry in entries) == list(range(ROWS))
    assert all(entry.data.decode().startswith("{") for entry in entries)
    columns = read_samples(folder_of(project, "Offline", "performance") / "samples.arrow")
    assert (columns["state"] == SampleState.ANSWERED).all()
    assert (columns["prompt_tokens"] > 200).all()
    assert (columns["answer_tokens"] > 10).all()
    assert {path.name for path in project.results.glob(f"SCRIPTED/{NAME}/*.chats")} == set()
    again = project.run(*OFFLINE, "--resume", data=catalogue)
    assert again.code == 0, again.err
    assert again.err.count("done already (attempt 1, VALID)") == 2


def test_interactive_asks_its_own_table_and_holds_its_own_limit(project: ScriptedProject, catalogue: Path) -> None:
    options = (*SHORT, "--scenarios=Interactive", "--test_mode=PerformanceOnly")
    assert project.run(*options, data=catalogue).code == 0
    write_benchmark(project, service={"ttft_ms": 1600, "per_token_ms": 0.5})
    ended = project.run(*options, data=catalogue)
    assert ended.code == 1
    runs = [run.record for run in ResultsStore(project.results).runs()]
    first, second = sorted(runs, key=lambda record: record.id.attempt)
    assert first.dataset.name == f"{NAME}/catalogue-8k"
    assert first.loadgen_settings[f"{NAME}.Server.target_latency"] == "1500"
    columns = read_samples(folder_of(project, "Interactive", "performance") / "samples.arrow")
    assert (columns["first_token_ns"] > columns["issued_ns"]).all()
    assert (columns["first_token_ns"] < columns["done_ns"]).all()
    rejected = {finding.rule for finding in second.verdict.findings if finding.severity == "reject"}
    assert {"LG-LATENCY", "LG-VALID"} <= rejected
    assert first.verdict.valid


def test_a_reply_that_fails_or_is_empty_spoils_the_score_and_is_told(project: ScriptedProject, catalogue: Path) -> None:
    """Of the accuracy leg alone, though both ask one table."""
    write_benchmark(project, faults={"accuracy": {"fail": [3], "empty": [5]}})
    ended = project.run(*OFFLINE, data=catalogue)
    assert ended.code == 1, ended.err
    kept = records(project)
    assert kept["Offline", "performance"].verdict.valid
    accuracy = kept["Offline", "accuracy"]
    assert accuracy.failure_kinds == {"scripted": 1, "empty_answer": 1}
    assert accuracy.counts.failed == 2
    assert accuracy.accuracy.value is None
    assert accuracy.accuracy.subsets[SUBSET].failed == 2
    assert "RUN-FAILED" in {finding.rule for finding in accuracy.verdict.findings}
    log = AccuracyLog(folder_of(project, "Offline", "accuracy") / "logs/mlperf_log_accuracy.json")
    assert {entry.sample for entry in log if entry.data == FAILED_DATA} == {3, 5}


@contextmanager
def begun(project: ScriptedProject, data: Path) -> Iterator[subprocess.Popen[str]]:
    """Offline legs, the first of which LoadGen has begun; they are ended where a test forgets to."""
    process = project.start(*OFFLINE, data=data)
    try:
        log = folder_of(project, "Offline", "performance") / "logs/mlperf_log_detail.txt"
        wait_until(log.exists, "LoadGen's log")
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
            end_of(process)


@pytest.mark.parametrize(
    ("module", "said"),
    [
        ("harness.engines.host", "the engine was ended by SIGKILL"),
        ("harness.clients.loadgen.worker", "the LoadGen worker was ended by SIGKILL"),
    ],
)
def test_killed_from_outside(project: ScriptedProject, catalogue: Path, module: str, said: str) -> None:
    write_benchmark(project, **SILENT)
    with begun(project, catalogue) as process:
        below = children_of(process.pid)
        (victim,) = [pid for pid in below if module in psutil.Process(pid).cmdline()]
        os.kill(victim, signal.SIGKILL)
        ended = end_of(process)
    assert ended.code == 4, ended.err
    assert said in ended.err
    assert "Traceback" not in ended.err
    assert not living(below)
    assert records(project)["Offline", "performance"].state is State.BROKEN


def test_interrupted_while_chats_are_out(project: ScriptedProject, catalogue: Path) -> None:
    write_benchmark(project, **SILENT)
    with begun(project, catalogue) as process:
        below = children_of(process.pid)
        process.send_signal(signal.SIGINT)
        ended = end_of(process)
    assert ended.code == 130, ended.err
    assert "Traceback" not in ended.err
    assert not living(below)
    assert records(project)["Offline", "performance"].state is State.INTERRUPTED
    columns = read_samples(folder_of(project, "Offline", "performance") / "samples.arrow")
    assert (columns["state"] == SampleState.OUTSTANDING).all()


def test_chats_made_anew_between_legs(project: ScriptedProject, catalogue: Path) -> None:
    write_benchmark(project, service={"ttft_ms": 3000})
    with begun(project, catalogue) as process:
        for store in (catalogue / NAME).rglob("*.chats"):
            os.utime(store, (1, 1))
        ended = end_of(process)
    assert ended.code == 4, ended.err
    assert "the chats of the data set were changed since the command began" in ended.err
    kept = records(project)
    assert kept["Offline", "performance"].state is State.FINISHED
    assert kept["Offline", "accuracy"].state is State.BROKEN


def test_audits_are_refused(project: ScriptedProject, catalogue: Path) -> None:
    ended = project.run("run_audit_test07", "--systems=SCRIPTED", f"--benchmarks={NAME}", data=catalogue)
    assert ended.code == 2
    assert "has no audit TEST07 of" in ended.err
    assert "Traceback" not in ended.err


# -- LoadGen itself ----------------------------------------------------------------------------------------------------


def run_worker(folder: Path, group: EngineGroup, chats: Path, conf: dict[str, float], **changes: Any) -> Outcome:
    folder.mkdir()
    (folder / "user.conf").write_text(write(NAME, "Server", conf))
    fields: dict[str, Any] = {
        "folder": str(folder),
        "data_dir": str(folder),
        "dataset_sha256": "ab" * 32,
        "round": "v6.1",
        "benchmark": NAME,
        "table": "catalogue-8k",
        "dataset": "x",
        "chats": ChatsFile.of(chats),
        "model": NAME,
        "scenario": "Server",
        "mode": "PerformanceOnly",
        "audit": "",
        "engine": group.address,
        "sampling": Sampling(0.7, 0.8, 20, 150, (), 1),
        "min_answer_tokens": 1,
        "watchdog_s": 20,
    }
    return run_job(LegJob(**fields | changes), "x", ignore)


def test_loadgen_logs_its_own_row_count_beside_a_smaller_library(tmp_path: Path) -> None:
    """Interactive has a table of 8,000 rows, and no entry in LoadGen: the override of the other scenarios stays."""
    rows = 8000
    bodies = ({"messages": [{"role": "user", "content": f"{row}"}]} for row in range(rows))
    store = BodyStore.write(tmp_path / "chats", bodies, tokens=np.arange(rows))
    conf = {"target_qps": 500, "min_duration": 100, "min_query_count": 300, "target_latency": 1500}
    faster = conf | {"target_qps": 4000}
    members = [Member(EngineSpec("scripted", {}))]
    with start_group(members, log=tmp_path / "engine.log", timeout_s=60, lanes=lanes_each(1)) as group:
        outcome = run_worker(tmp_path / "run", group, store.path, conf, rows=rows)
        scored = run_worker(tmp_path / "accuracy", group, store.path, faster, rows=rows, mode="AccuracyOnly")
    assert (outcome.error, scored.error) == (None, None)
    assert scored.counts.answered == scored.loaded_rows == rows
    accuracy = DetailLog.read(tmp_path / "accuracy/logs/mlperf_log_detail.txt")
    assert accuracy.integer("effective_accuracy_sample_count") == rows
    entries = AccuracyLog(tmp_path / "accuracy/logs/mlperf_log_accuracy.json")
    assert {(entry.sample, entry.data) for entry in entries} == {(i, b"This is reply %d." % i) for i in range(rows)}
    assert (outcome.library_rows, outcome.loaded_rows) == (rows, rows)
    assert outcome.counts.failed == outcome.counts.outstanding == 0
    detail = DetailLog.read(tmp_path / "run/logs/mlperf_log_detail.txt")
    assert detail.reported_total_count == rows
    assert detail.integer("effective_performance_sample_count") == 48289
    assert detail.integer("effective_target_latency_ns") == 1_500_000_000
    assert detail.loaded_distinct == rows
    columns = read_samples(tmp_path / "run/samples.arrow")
    assert columns["prompt_tokens"].tolist() == columns["index"].tolist()
    assert len(set(columns["index"].tolist())) == len(columns["index"])  # a whole permutation is not yet through
