"""Real LoadGen over the scripted engine: legs, exact scores, and everything that can go wrong on the way."""

from __future__ import annotations

import itertools
import json
import os
import re
import shutil
import signal
from pathlib import Path
from typing import Any

import psutil
import pytest

from harness.ledger import ResultsStore, State
from harness.ledger.samples import read_samples
from tests.harness_process import ScriptedProject, children_of, end_of, living, wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.harmony]

SHORT = ("run_harness", "--systems=SCRIPTED", "--test_run")
OFFLINE_PERFORMANCE = (*SHORT, "--scenarios=Offline", "--test_mode=PerformanceOnly")
SILENT = {
    "kind": "scripted",
    "answer_tokens": 8,
    "faults": {"performance": {"hang": list(range(64))}},
}
NEVER_WARM = {"kind": "scripted", "answer_tokens": 8, "service": {"ttft_ms": 600_000}}


def engine(**changes: Any) -> dict[str, Any]:
    plain = {"kind": "scripted", "answer_tokens": 8, "service": {"ttft_ms": 2, "per_token_ms": 0.5}}
    return {"engine": plain | changes}


def records(project: ScriptedProject) -> dict[str, Any]:
    return {str(run.record.id): run.record for run in ResultsStore(project.results).runs()}


@pytest.fixture(scope="module")
def four_legs(tmp_path_factory: pytest.TempPathFactory, standin_data: Path) -> ScriptedProject:
    """A project in which both scenarios ran in both modes, all of them well."""
    project = ScriptedProject.made(tmp_path_factory.mktemp("four") / "project")
    # An Offline query of 64 samples that takes at least the 500 ms it is asked for.
    project.write_benchmark(engine(service={"ttft_ms": 800, "per_token_ms": 0.5}))
    ended = project.run(*SHORT, data=standin_data)
    assert ended.code == 0, ended.err
    return project


def test_all_four_legs_are_valid_and_kept(four_legs: ScriptedProject) -> None:
    kept = records(four_legs)
    assert sorted(kept) == [
        f"SCRIPTED/gpt-oss-120b/{scenario}/{leg}#1"
        for scenario in ("Offline", "Server")
        for leg in ("accuracy", "performance")
    ]
    for record in kept.values():
        assert record.state is State.FINISHED
        assert record.verdict.valid
        assert record.ecc is not None and all(record.ecc.sources[part] for part in ("host", "accelerators"))
        assert set(record.not_submittable) == {"scripted engine", "stand-in data set", "short run (--test_run)"}
    server = kept["SCRIPTED/gpt-oss-120b/Server/performance#1"]
    assert server.counts.answered == server.counts.issued == 640  # 600 queries, padded to whole passes of 64
    figures = {pair.figure: pair for pair in server.comparisons}
    assert figures["result_query_count"].ratio == 1
    assert 0.9 < figures["result_first_token_99.00_percentile_latency_ns"].ratio < 1.1
    assert figures["result_completed_tokens_per_second"].ratio == pytest.approx(1, abs=0.02)


def test_legs_of_a_row_share_the_fingerprint_and_scenarios_differ_only_in_it(four_legs: ScriptedProject) -> None:
    prints = {name: record.fingerprint for name, record in records(four_legs).items()}
    offline = prints["SCRIPTED/gpt-oss-120b/Offline/performance#1"]
    assert offline == prints["SCRIPTED/gpt-oss-120b/Offline/accuracy#1"]
    server = prints["SCRIPTED/gpt-oss-120b/Server/accuracy#1"]
    assert {key.split(".")[0] for key in offline.differs_from(server)} == {"scenario"}


def test_samples_have_every_time_in_order(four_legs: ScriptedProject) -> None:
    folder = four_legs.results / "SCRIPTED/gpt-oss-120b/Server/performance/attempt_01"
    columns = read_samples(folder / "samples.arrow")
    assert len(columns["index"]) == 640
    assert (columns["state"] == 0).all()
    assert (columns["answer_tokens"] == 8).all()
    assert (columns["prompt_tokens"] >= 32).all()
    order = ("issued_ns", "engine_first_token_ns", "first_token_ns", "done_ns")
    for earlier, later in itertools.pairwise(order):
        assert (columns[earlier] <= columns[later]).all(), (earlier, later)
    assert (columns["engine_done_ns"] <= columns["done_ns"]).all()


@pytest.mark.slow
def test_stated_shares_come_out_exactly(scripted_project: ScriptedProject, standin_data: Path) -> None:
    scripted_project.write_benchmark(
        engine(right={"aime25": 0.6, "gpqa_diamond": 0.4}, service={})
        | {"test_run": {"performance_samples": 64, "accuracy_samples": 4395, "server_queries": 600}}
    )
    options = ("--scenarios=Offline", "--test_mode=AccuracyOnly", "--judge-sandbox=none")
    ended = scripted_project.run(*SHORT, *options, data=standin_data)
    assert ended.code == 0, ended.err
    assert "the judge's self test passed" in ended.err
    record = records(scripted_project)["SCRIPTED/gpt-oss-120b/Offline/accuracy#1"]
    assert "model-written code ran without a sandbox" in record.deviations
    subsets = record.accuracy.subsets
    assert (subsets["aime25"].correct, subsets["aime25"].samples) == (144, 240)
    assert (subsets["gpqa_diamond"].correct, subsets["gpqa_diamond"].samples) == (396, 990)
    assert (subsets["livecodebench_v6"].unscored, subsets["livecodebench_v6"].wrong) == (0, 3165)  # no program in them
    folder = scripted_project.results / "SCRIPTED/gpt-oss-120b/Offline/accuracy/attempt_01"
    text = (folder / "accuracy.txt").read_text()
    assert "not by the reference's evaluator" in text.splitlines()[0]
    assert "unscored: 0" in text
    assert f"'exact_match': {(144 / 8 + 396 / 5) / 1283 * 100:.3f}" in text


@pytest.mark.parametrize("scenario", ["Offline", "Server"])
def test_failed_samples_are_counted_and_make_the_run_invalid(
    scripted_project: ScriptedProject, standin_data: Path, scenario: str
) -> None:
    """Those that the engine says it failed, and those whose answer has one token, or none."""
    rows = {"fail": [3, 5], "short": [7, 8], "empty": [11, 13]}
    scripted_project.write_benchmark(engine(faults={"performance": rows, "accuracy": rows}))
    ended = scripted_project.run(*SHORT, f"--scenarios={scenario}", data=standin_data)
    assert ended.code == 1, ended.err
    told = ended.err.replace("\n", " ")
    kept = records(scripted_project)
    performance = kept[f"SCRIPTED/gpt-oss-120b/{scenario}/performance#1"]
    passes, rest = divmod(performance.counts.issued, 64)  # a row is asked once a pass
    assert rest == 0
    assert performance.counts.failed == 6 * passes
    assert performance.counts.failed + performance.counts.answered == performance.counts.issued
    assert performance.failure_kinds == {"scripted": 2 * passes, "too_short": 4 * passes}
    first = performance.failures[0]
    assert f"RUN-FAILED: found {performance.counts.failed} of" in told
    kinds = ", ".join(f"{kind} {count}" for kind, count in performance.failure_kinds.items())
    assert f"; {kinds}; the first: {first.message}" in told
    assert not performance.verdict.valid
    assert "failed samples" in performance.not_submittable
    assert "RUN-FAILED" in {finding.rule for finding in performance.verdict.findings}
    accuracy = kept[f"SCRIPTED/gpt-oss-120b/{scenario}/accuracy#1"]
    assert accuracy.counts.failed == 6
    assert accuracy.accuracy.subsets["aime25"].failed == 6
    assert accuracy.accuracy.value is None


def test_the_engine_killed_in_mid_run(scripted_project: ScriptedProject, standin_data: Path) -> None:
    assert scripted_project.run(*OFFLINE_PERFORMANCE, data=standin_data).code in (0, 1)
    before = (scripted_project.results / "SCRIPTED/gpt-oss-120b/Offline/performance/attempt_01/run.json").read_bytes()
    scripted_project.write_benchmark(engine(faults={"performance": {"die": 7}}))
    ended = scripted_project.run(*OFFLINE_PERFORMANCE, data=standin_data)
    assert ended.code == 4, ended.err
    assert "engine" in ended.err
    broken = records(scripted_project)["SCRIPTED/gpt-oss-120b/Offline/performance#2"]
    assert broken.state is State.BROKEN
    assert broken.verdict is None
    assert broken.counts.outstanding == 0
    assert broken.counts.failed > 0
    assert {failure.kind for failure in broken.failures} == {"engine_died"}
    folder = scripted_project.results / "SCRIPTED/gpt-oss-120b/Offline/performance"
    assert (folder / "attempt_01/run.json").read_bytes() == before


@pytest.mark.parametrize(
    ("module", "said"),
    [
        ("harness.engines.host", "the engine was ended by SIGKILL"),
        ("harness.clients.loadgen.worker", "the LoadGen worker was ended by SIGKILL"),
    ],
)
def test_killed_from_outside(scripted_project: ScriptedProject, standin_data: Path, module: str, said: str) -> None:
    scripted_project.write_benchmark({"engine": SILENT})
    process = scripted_project.start(*OFFLINE_PERFORMANCE, data=standin_data)
    folder = scripted_project.results / "SCRIPTED/gpt-oss-120b/Offline/performance/attempt_01"
    wait_until(lambda: (folder / "logs/mlperf_log_detail.txt").exists(), "LoadGen's log")
    below = children_of(process.pid)
    (victim,) = [pid for pid in below if module in psutil.Process(pid).cmdline()]
    os.kill(victim, signal.SIGKILL)
    ended = end_of(process)
    assert ended.code == 4, ended.err
    assert said in ended.err
    assert "Traceback" not in ended.err
    assert not living(below)
    record = records(scripted_project)["SCRIPTED/gpt-oss-120b/Offline/performance#1"]
    assert record.state is State.BROKEN
    assert said in record.note


def test_a_data_set_changed_between_legs(scripted_project: ScriptedProject, standin_data: Path, tmp_path: Path) -> None:
    data = tmp_path / "data"
    shutil.copytree(standin_data, data)
    scripted_project.write_benchmark(engine(service={"ttft_ms": 1000}))
    process = scripted_project.start(*SHORT, "--scenarios=Offline", data=data)
    folder = scripted_project.results / "SCRIPTED/gpt-oss-120b/Offline/performance/attempt_01"
    wait_until(lambda: (folder / "logs/mlperf_log_detail.txt").exists(), "LoadGen's log")
    for array in (data / "gpt-oss-120b/acc").glob("input_*.npy"):
        array.unlink()  # a table without its optional arrays is a whole one, but not the one it was
    ended = end_of(process)
    assert ended.code == 4, ended.err
    assert "the data set was changed since the command began" in ended.err
    kept = records(scripted_project)
    assert kept["SCRIPTED/gpt-oss-120b/Offline/performance#1"].state is State.FINISHED
    assert kept["SCRIPTED/gpt-oss-120b/Offline/accuracy#1"].state is State.BROKEN


def test_an_engine_that_never_answers_trips_the_watchdog(scripted_project: ScriptedProject, standin_data: Path) -> None:
    scripted_project.write_benchmark(engine(faults={"performance": {"hang": [3]}}) | {"watchdog_s": 2})
    ended = scripted_project.run(*OFFLINE_PERFORMANCE, data=standin_data)
    assert ended.code == 4, ended.err
    assert "no token came" in ended.err
    assert "while samples were outstanding: replica 0 owes " in ended.err.replace("\n", " ")


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_while_loadgen_runs(
    scripted_project: ScriptedProject, standin_data: Path, stop: signal.Signals
) -> None:
    scripted_project.write_benchmark({"engine": SILENT})
    process = scripted_project.start(*OFFLINE_PERFORMANCE, data=standin_data)
    folder = scripted_project.results / "SCRIPTED/gpt-oss-120b/Offline/performance/attempt_01"
    wait_until(lambda: (folder / "logs/mlperf_log_detail.txt").exists(), "LoadGen's log")
    below = children_of(process.pid)
    assert len(below) >= 2  # the engine and the LoadGen worker
    process.send_signal(stop)
    ended = end_of(process)
    assert ended.code == 130, ended.err
    assert "Traceback" not in ended.err
    assert not living(below)
    record = records(scripted_project)["SCRIPTED/gpt-oss-120b/Offline/performance#1"]
    assert record.state is State.INTERRUPTED
    assert (folder / "samples.arrow").exists()


def test_interrupted_in_the_warm_up_leaves_no_attempt(scripted_project: ScriptedProject, standin_data: Path) -> None:
    scripted_project.write_benchmark({"engine": NEVER_WARM})
    process = scripted_project.start(*OFFLINE_PERFORMANCE, data=standin_data)
    log = scripted_project.results / "SCRIPTED/gpt-oss-120b/engine.log"
    wait_until(log.exists, "the engine's start")
    wait_until(lambda: len(children_of(process.pid)) == 1, "the engine")
    below = children_of(process.pid)
    process.send_signal(signal.SIGINT)
    ended = end_of(process)
    assert ended.code == 130, ended.err
    assert "Traceback" not in ended.err
    wait_until(lambda: not living(below), "the engine's end", 10)
    assert records(scripted_project) == {}


def test_the_harness_killed_leaves_no_orphan(scripted_project: ScriptedProject, standin_data: Path) -> None:
    scripted_project.write_benchmark({"engine": SILENT})
    process = scripted_project.start(*OFFLINE_PERFORMANCE, data=standin_data)
    folder = scripted_project.results / "SCRIPTED/gpt-oss-120b/Offline/performance/attempt_01"
    wait_until(lambda: (folder / "logs/mlperf_log_detail.txt").exists(), "LoadGen's log")
    below = children_of(process.pid)
    os.kill(process.pid, signal.SIGKILL)
    end_of(process)
    wait_until(lambda: not living(below), "the end of engine and worker", 10)
    assert json.loads((folder / "run.json").read_text())["state"] == "running"


def test_a_results_folder_in_use_is_refused(scripted_project: ScriptedProject, standin_data: Path) -> None:
    store = ResultsStore(scripted_project.results)
    with store.lock():
        ended = scripted_project.run(*OFFLINE_PERFORMANCE, data=standin_data)
    assert ended.code == 3
    assert re.search(r"in use by process \d+", ended.err)
    assert "--results_dir" in ended.err


def test_a_prompt_longer_than_the_engine_takes(scripted_project: ScriptedProject, standin_data: Path) -> None:
    scripted_project.write_benchmark({"output_caps": {"performance": 131_072, "accuracy": 64}})
    ended = scripted_project.run(*OFFLINE_PERFORMANCE, data=standin_data)
    assert ended.code == 2
    assert "more than the engine takes" in ended.err
    assert "output_caps" in ended.err
    assert records(scripted_project) == {}


def test_server_as_a_share_of_an_offline_run_that_is_not_there(
    scripted_project: ScriptedProject, standin_data: Path
) -> None:
    scripted_project.write_benchmark(
        {"scenarios": {"Offline": {"target_qps": 20000}, "Server": {"target_qps": {"offline_share": 0.4}}}}
    )
    ended = scripted_project.run(*SHORT, "--scenarios=Server", data=standin_data)
    assert ended.code == 3
    assert "no Offline performance run has finished" in ended.err
    assert "make run_harness" in ended.err
