"""Real LoadGen over trajectories: three of them, asked turn by turn, in every scenario; and what can go wrong."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
import yaml

from harness.env import BFCL_PYTHON
from harness.ledger import ResultsStore, RunRecord, State
from harness.ledger.record import TurnCounts
from harness.ledger.samples import read_samples
from harness.ledger.turn_report import read_turn_report
from harness.ledger.turns import TurnState, read_turn_replies, read_turns
from harness.logs import AccuracyLog, DetailLog
from tests.e2e.made_agentic import NAME, rejects
from tests.harness_process import ScriptedProject, children_of, end_of, living, wait_until

pytestmark = pytest.mark.e2e

SHORT = ("run_harness", "--systems=SCRIPTED", "--test_run")
PERFORMANCE = (*SHORT, "--test_mode=PerformanceOnly")
STREAM = (*PERFORMANCE, "--scenarios=SingleStream")
OFFLINE = (*PERFORMANCE, "--scenarios=Offline")
QUESTIONS = 40
REASONS = {"scripted engine", "stand-in data set", "short run (--test_run)"}
RULED = "the row's metric is the mean latency of turns (endpoints client)"


@pytest.fixture
def project(scripted_project: ScriptedProject, monkeypatch: pytest.MonkeyPatch) -> ScriptedProject:
    """No checker of BFCL is there, unless a test names one."""
    monkeypatch.setenv(BFCL_PYTHON.name, str(scripted_project.folder / "no python"))
    scripted_project.benchmark_file.unlink()
    write_benchmark(scripted_project)
    return scripted_project


def write_benchmark(
    project: ScriptedProject,
    agentic: dict[str, Any] | None = None,
    short: dict[str, Any] | None = None,
    **engine: Any,
) -> None:
    service = {"ttft_ms": 2, "per_token_ms": 0.01}
    content = {
        "engine": {"kind": "scripted", "service": service, **engine},
        "output_caps": {"performance": 256, "accuracy": 256},
        "scenarios": {
            "SingleStream": {"target_qps": 50},
            "Offline": {"target_qps": 1500},
            "Server": {"target_qps": 200, "target_latency_ms": 20_000},
        },
        "agentic": {"repeats": 4, "max_concurrency": 8, **(agentic or {})},
        "warmup": {"requests": 4},
        "test_run": {
            "performance_samples": 3,
            "accuracy_samples": QUESTIONS,
            "min_duration_ms": 200,
            "server_queries": 480,
            **(short or {}),
        },
    }
    (project.folder / "systems/SCRIPTED" / f"{NAME}.yaml").write_text(yaml.safe_dump(content))


def folder_of(project: ScriptedProject, scenario: str, leg: str = "performance", attempt: int = 1) -> Path:
    return project.results / f"SCRIPTED/{NAME}/{scenario}/{leg}/attempt_{attempt:02}"


def records(project: ScriptedProject) -> dict[tuple[str, str, int], RunRecord]:
    runs = (run.record for run in ResultsStore(project.results).runs())
    return {(record.id.scenario, record.id.leg, record.id.attempt): record for record in runs}


@pytest.fixture(scope="module")
def turns_each(data: Path) -> list[int]:
    """How many turns each of the three trajectories has."""
    from harness import rules
    from harness.benchmarks.qwen3_6_27b.dataset import read
    from harness.benchmarks.qwen3_6_27b.sampling import rules_of

    return [len(each.turns) for each in read(data / NAME, rules_of(rules.load("v6.1"))).trajectories]


@pytest.fixture(scope="module")
def all_legs(tmp_path_factory: pytest.TempPathFactory, data: Path, bfcl: Path) -> ScriptedProject:
    """A project in which all scenarios ran in both modes, all of them well."""
    project = ScriptedProject.made(tmp_path_factory.mktemp("all") / "project")
    project.benchmark_file.unlink()
    write_benchmark(project)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(BFCL_PYTHON.name, str(bfcl))
        ended = project.run(*SHORT, data=data)
    assert ended.code == 0, ended.err
    assert "judges" in ended.err
    return project


@pytest.mark.parametrize(
    ("scenario", "key"),
    [
        ("SingleStream", "early_stopping_latency_ss"),
        ("Offline", "result_samples_per_second"),
        ("Server", "result_completed_samples_per_sec"),
    ],
)
def test_a_sample_is_a_whole_trajectory(
    all_legs: ScriptedProject, turns_each: list[int], scenario: str, key: str
) -> None:
    record = records(all_legs)[scenario, "performance", 1]
    assert record.state is State.FINISHED
    assert record.verdict is not None
    assert record.verdict.valid
    assert record.result is not None
    assert record.result.key == key
    assert set(record.not_submittable) == REASONS | {f"metric differs: {key} over whole trajectories; {RULED}"}
    turns = read_turns(folder_of(all_legs, scenario) / "turns.arrow")
    samples = read_samples(folder_of(all_legs, scenario) / "samples.arrow")
    assert record.counts is not None
    assert record.counts.answered == record.counts.issued == len(samples["index"])
    asked = np.bincount(turns["sample"])
    assert asked.tolist() == [turns_each[row] for row in samples["index"]]
    total = int(asked.sum())
    assert record.turns == TurnCounts(issued=total, answered=total, failed=0, skipped=0, outstanding=0)
    assert samples["answer_tokens"].tolist() == np.bincount(turns["sample"], turns["answer_tokens"]).tolist()
    ends = np.cumsum(asked)
    begins = ends - asked
    assert (samples["issued_ns"] <= turns["issued_ns"][begins]).all()
    assert (turns["done_ns"][ends - 1] <= samples["done_ns"]).all()
    for earlier, later in ((i, i + 1) for i in range(total - 1) if turns["sample"][i] == turns["sample"][i + 1]):
        assert turns["done_ns"][earlier] <= turns["issued_ns"][later]


def test_a_library_has_the_trajectories_that_are_asked_and_no_count_is_overridden(all_legs: ScriptedProject) -> None:
    for scenario in ("SingleStream", "Offline", "Server"):
        folder = folder_of(all_legs, scenario)
        detail = DetailLog.read(folder / "logs/mlperf_log_detail.txt")
        assert detail.reported_total_count == detail.integer("effective_performance_sample_count") == 3
        assert detail.integer("requested_performance_sample_count_override") == 0
        assert "override" not in (folder / "user.conf").read_text()
    server = folder_of(all_legs, "Server")
    detail = DetailLog.read(server / "logs/mlperf_log_detail.txt")
    assert detail.integer("effective_target_latency_ns") == 20_000 * 1_000_000
    assert f"{NAME}.Server.target_latency = 20000\n" in (server / "user.conf").read_text()


def test_how_often_each_trajectory_was_issued_is_told(all_legs: ScriptedProject) -> None:
    record = records(all_legs)["SingleStream", "performance", 1]
    index = read_samples(folder_of(all_legs, "SingleStream") / "samples.arrow")["index"]
    assert record.turn_figures is not None
    assert list(record.turn_figures.issued.values()) == np.bincount(index, minlength=3).tolist()
    assert sum(record.turn_figures.issued.values()) >= 64
    assert all(name.startswith("made-up__") for name in record.turn_figures.issued)


def test_turns_have_figures_of_their_own(all_legs: ScriptedProject) -> None:
    record = records(all_legs)["SingleStream", "performance", 1]
    assert record.turn_figures is not None
    assert record.turn_figures.mean_latency_ns is not None
    assert record.result is not None
    trajectory_ms = record.result.value
    turn_ms = record.turn_figures.mean_latency_ns / 1e6
    report = read_turn_report(folder_of(all_legs, "SingleStream"))
    assert report.latency_ns is not None
    assert record.turn_figures.mean_latency_ns == report.latency_ns.mean
    assert {"turns.arrow", "turn_replies.jsonl", "turns.json"} <= set(record.hashes)
    assert 2 <= turn_ms < trajectory_ms / 4  # no trajectory has fewer than five turns
    assert record.turn_figures.turns_per_s is not None
    assert record.turn_figures.turns_per_s * turn_ms / 1e3 == pytest.approx(1, abs=0.3)  # one after the other


def test_recorded_answers_score_exactly_one(all_legs: ScriptedProject) -> None:
    for scenario in ("SingleStream", "Offline", "Server"):
        figures = records(all_legs)[scenario, "performance", 1].turn_figures
        assert figures is not None
        assert figures.inline_score == 1.0


def test_a_stated_share_of_recorded_answers_is_the_score(project: ScriptedProject, data: Path) -> None:
    """Of the compared turns of one pass; each trajectory is asked equally often: 1.1 x 1500 x 0.2 s over three."""
    write_benchmark(project, right={"coding": 0.5})
    ended = project.run(*OFFLINE, data=data)
    assert ended.code == 0, ended.err
    figures = records(project)["Offline", "performance", 1].turn_figures
    assert figures is not None
    assert len(set(figures.issued.values())) == 1
    report = read_turn_report(folder_of(project, "Offline"))
    compared = report.inline.scored // next(iter(figures.issued.values()))
    assert figures.inline_score == pytest.approx(round(0.5 * compared) / compared)
    assert "inline score: 0." in ended.out


def test_questions_are_asked_once_each_and_scored_by_bfcls_checker(all_legs: ScriptedProject) -> None:
    record = records(all_legs)["SingleStream", "accuracy", 1]
    assert record.verdict is not None
    assert record.verdict.valid
    assert record.accuracy is not None
    assert sum(subset.samples for subset in record.accuracy.subsets.values()) == QUESTIONS
    assert record.turns is None
    assert any(reason.startswith("layout differs: accuracy by LoadGen") for reason in record.not_submittable)
    log = AccuracyLog(folder_of(all_legs, "SingleStream", "accuracy") / "logs/mlperf_log_accuracy.json")
    answers = {entry.sample: json.loads(entry.data) for entry in log}
    assert sorted(answers) == list(range(QUESTIONS))
    assert all("content" in answer for answer in answers.values())
    assert not (folder_of(all_legs, "SingleStream", "accuracy") / "turns.arrow").exists()


@pytest.mark.slow
def test_stated_shares_of_all_questions_come_out_to_the_row(
    project: ScriptedProject, data: Path, bfcl: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(BFCL_PYTHON.name, str(bfcl))
    shares = {"non_live": 0.8, "live": 0.5, "hallucination": 0.75}
    write_benchmark(project, short={"accuracy_samples": 995}, right=shares)
    ended = project.run(*SHORT, "--scenarios=Offline", "--test_mode=AccuracyOnly", data=data)
    assert ended.code == 0, ended.err
    record = records(project)["Offline", "accuracy", 1]
    assert record.accuracy is not None
    subsets = record.accuracy.subsets
    assert {name: (subset.correct, subset.samples) for name, subset in subsets.items()} == {
        "non_live": (570, 713),
        "live": (85, 170),
        "hallucination": (84, 112),
    }
    assert record.accuracy.value == pytest.approx(100 * (570 + 85 + 84) / 995, abs=0.005)
    assert "overall_accuracy" in (folder_of(project, "Offline", "accuracy") / "accuracy.txt").read_text()


def test_scenarios_share_all_but_what_is_the_scenarios(all_legs: ScriptedProject) -> None:
    kept = records(all_legs)
    stream, offline = (kept[name, "performance", 1].fingerprint for name in ("SingleStream", "Offline"))
    assert stream == kept["SingleStream", "accuracy", 1].fingerprint
    assert stream.keys["config.agentic.repeats"] == 4
    assert {key.split(".")[0] for key in stream.differs_from(offline)} == {"scenario"}


def test_resumed_nothing_is_run_again(all_legs: ScriptedProject, data: Path) -> None:
    again = all_legs.run(*PERFORMANCE, "--resume", data=data)
    assert again.code == 0, again.err
    assert again.err.count("done already (attempt 1, VALID)") == 3
    assert len(records(all_legs)) == 6


def test_what_was_only_measured_is_judged_later(project: ScriptedProject, data: Path) -> None:
    assert project.run(*STREAM, data=data).code == 0
    path = folder_of(project, "SingleStream") / "run.json"
    told = json.loads(path.read_bytes())
    unjudged = {"state": "measured", "verdict": None, "turn_figures": None, "turns": None, "result": None}
    path.write_text(json.dumps(told | unjudged | {"hashes": hashes_but(told["hashes"], "turns.json")}))
    ended = project.run(*STREAM, "--resume", data=data)
    assert ended.code == 0, ended.err
    assert "its logs are judged now" in ended.err
    judged = json.loads(path.read_bytes())
    for key in ("state", "turns", "turn_figures", "result", "not_submittable", "deviations"):
        assert judged[key] == told[key], key


def hashes_but(hashes: dict[str, str], made_by_judging: str) -> dict[str, str]:
    return {name: told for name, told in hashes.items() if name != made_by_judging}


def test_a_failed_turn_ends_its_trajectory_and_makes_the_run_invalid(
    project: ScriptedProject, data: Path, turns_each: list[int]
) -> None:
    """The second turn of the first trajectory fails, the first turn of the second is empty."""
    write_benchmark(project, faults={"performance": {"fail": [1], "empty": [turns_each[0]]}})
    ended = project.run(*PERFORMANCE, data=data)
    assert ended.code == 1, ended.err
    for scenario in ("SingleStream", "Offline", "Server"):
        check_failed(records(project)[scenario, "performance", 1], folder_of(project, scenario), turns_each)


def check_failed(record: RunRecord, folder: Path, turns_each: list[int]) -> None:
    first, second, third = turns_each
    assert record.turn_figures is not None
    times = list(record.turn_figures.issued.values())
    assert min(times) > 0
    answered, failed = times[0] + times[2] * third, times[0] + times[1]
    skipped = times[0] * (first - 2) + times[1] * (second - 1)
    issued = answered + failed
    assert record.turns == TurnCounts(issued=issued, answered=answered, failed=failed, skipped=skipped, outstanding=0)
    assert {"RUN-FAILED", "RUN-TURNS-FAILED", "RUN-TURNS-SKIPPED"} <= rejects(record)
    assert "failed samples" in record.not_submittable
    assert record.counts is not None
    assert (record.counts.answered, record.counts.failed) == (times[2], failed)
    turns = read_turns(folder / "turns.arrow")
    assert (turns["done_ns"][turns["state"] == TurnState.SKIPPED] == -1).all()
    told = [each for each in read_turn_replies(folder / "turn_replies.jsonl") if each.failure]
    assert len(told) == failed
    assert {(each.row, each.turn) for each in told} == {(0, 1), (1, 0)}
    latency = read_turn_report(folder).latency_ns
    assert latency is not None
    assert latency.count == answered


def test_the_engine_dies_in_mid_run(project: ScriptedProject, data: Path) -> None:
    write_benchmark(project, faults={"performance": {"die": 7}})
    ended = project.run(*OFFLINE, data=data)
    assert ended.code == 4, ended.err
    assert "Traceback" not in ended.err
    record = records(project)["Offline", "performance", 1]
    assert record.state is State.BROKEN
    assert record.verdict is None
    assert record.turns is not None
    assert record.turns.failed > 0
    assert {"turns.arrow", "turn_replies.jsonl"} <= set(record.hashes)
    write_benchmark(project)
    again = project.run(*OFFLINE, "--resume", data=data)
    assert again.code == 0, again.err
    assert records(project)["Offline", "performance", 2].state is State.FINISHED


def test_the_engine_is_killed_while_turns_are_out(project: ScriptedProject, data: Path) -> None:
    write_benchmark(project, faults={"performance": {"hang": list(range(40))}})
    process = project.start(*OFFLINE, data=data)
    try:
        wait_until((folder_of(project, "Offline") / "logs/mlperf_log_detail.txt").exists, "LoadGen's log")
        below = children_of(process.pid)
        (host,) = [pid for pid in below if "harness.engines.host" in psutil.Process(pid).cmdline()]
        os.kill(host, signal.SIGKILL)
        ended = end_of(process)
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
            end_of(process)
    assert ended.code == 4, ended.err
    assert "the engine was ended by SIGKILL" in ended.err
    assert "Traceback" not in ended.err
    assert not living(below)


def test_each_run_has_prompts_of_its_own_where_that_is_asked_for(project: ScriptedProject, data: Path) -> None:
    write_benchmark(project, agentic={"salt": "run"})
    for _ in range(2):
        ended = project.run(*STREAM, data=data)
        assert ended.code == 0, ended.err
        assert "making the requests of 3 trajectories" in ended.err
    kept = records(project)
    salts = [kept["SingleStream", "performance", attempt].dataset.salt for attempt in (1, 2)]
    assert None not in salts
    assert salts[0] != salts[1]
    prints = [kept["SingleStream", "performance", attempt].fingerprint for attempt in (1, 2)]
    assert not [key for key in prints[0].differs_from(prints[1]) if not key.startswith("versions")]
    assert "salted prompts (run)" in kept["SingleStream", "performance", 1].deviations
    assert list(project.results.rglob("*.chats")) == []


def test_without_bfcls_checker_nothing_is_started(project: ScriptedProject, data: Path) -> None:
    ended = project.run(*SHORT, "--scenarios=SingleStream", data=data)
    assert ended.code == 3
    assert "the environment of bfcl-eval is not there" in ended.err
    assert "make bfcl" in ended.err
    assert "starting the" not in ended.err
    assert records(project) == {}


def test_server_without_a_latency_is_refused(project: ScriptedProject, data: Path) -> None:
    path = project.folder / "systems/SCRIPTED" / f"{NAME}.yaml"
    content = yaml.safe_load(path.read_text())
    del content["scenarios"]["Server"]["target_latency_ms"]
    path.write_text(yaml.safe_dump(content))
    ended = project.run(*PERFORMANCE, data=data)
    assert ended.code == 2
    assert "Server of qwen3.6-27b has no target latency" in ended.err
    assert "scenarios.Server.target_latency_ms" in ended.err
