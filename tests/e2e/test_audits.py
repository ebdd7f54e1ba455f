"""Real LoadGen over the scripted engine: the audits that pass, those that fail, and commands that are resumed."""

from __future__ import annotations

import json
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest

from harness.ledger import ResultsStore, RunRecord, State
from harness.logs import AccuracyLog, DetailLog
from harness.rules import load
from tests.harness_process import ROOT, Ended, ScriptedProject, end_of, wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.harmony]

AUDITS = load("v6.1").benchmark("gpt-oss-120b").audit_rules
QUICK = {"kind": "scripted", "answer_tokens": 8}
PASSING = {"kind": "scripted", "answer_tokens": 1278, "right": {"gpqa_diamond": 0.615}}
RATES = {"Offline": {"target_qps": 20000}, "Server": {"target_qps": 3000}, "Interactive": {"target_qps": 3000}}
CAPS = {"performance": 2048, "accuracy": 2048}


@pytest.fixture
def project(scripted_project: ScriptedProject) -> ScriptedProject:
    """The scripted project with the audits' settings and all three scenarios."""
    shutil.copytree(ROOT / "compliance", scripted_project.folder / "compliance")
    write(scripted_project, QUICK)
    return scripted_project


def write(project: ScriptedProject, engine: dict[str, Any], **changes: Any) -> None:
    project.write_benchmark({"engine": engine, "scenarios": RATES, "output_caps": CAPS, **changes})


def records(project: ScriptedProject) -> dict[str, RunRecord]:
    return {
        f"{run.record.id.scenario}/{run.record.id.leg}#{run.record.id.attempt}": run.record
        for run in ResultsStore(project.results).runs()
    }


def folder(project: ScriptedProject, scenario: str, leg: str, attempt: int = 1) -> Path:
    return project.results / "SCRIPTED" / "gpt-oss-120b" / scenario / leg / f"attempt_{attempt:02d}"


def assert_each_row_once(run: Path, test: str) -> None:
    """What LoadGen logged: as many answers as rows, of as many rows, and the approved settings."""
    rows, rules = AUDITS[test].rows.value, AUDITS[test].config
    samples = [entry.sample for entry in AccuracyLog(run / "logs/mlperf_log_accuracy.json")]
    assert len(samples) == rows
    assert set(samples) == set(range(rows))
    detail = DetailLog.read(run / "logs/mlperf_log_detail.txt")
    assert {key: detail.value(key) for key in rules.logged.value} == rules.logged.value
    assert detail.error_count == 0


@pytest.mark.parametrize("scenario", ["Offline", "Server"])
def test_both_audits_pass(project: ScriptedProject, standin_data: Path, scenario: str) -> None:
    write(project, PASSING)
    ended = project.run("run_harness", f"--scenarios={scenario}", "--legs=TEST07,TEST09", data=standin_data)
    assert ended.code == 0, ended.err
    kept = records(project)
    accuracy, lengths = kept[f"{scenario}/TEST07#1"], kept[f"{scenario}/TEST09#1"]
    assert accuracy.audit is not None
    assert lengths.audit is not None
    assert (accuracy.audit.passed, round(accuracy.audit.value, 3)) == (True, 61.515)
    assert (lengths.audit.passed, lengths.audit.value) == (True, 1278)
    for test, record in (("TEST07", accuracy), ("TEST09", lengths)):
        run = folder(project, scenario, test)
        assert_each_row_once(run, test)
        assert record.audit_config is not None
        assert record.audit_config.sha256 == record.hashes["audit.config"]
        assert record.audit_config.approved_sha256 == AUDITS[test].config.sha256.value
        assert "TEST PASS" in (run / record.audit.verdict_file).read_text().splitlines()
        assert not list(project.folder.glob("audit.config"))
        assert not (run / "cwd").exists()
    assert "the scripted engine that runs is used" in ended.err


@pytest.mark.parametrize(
    ("verb", "scenario", "test", "value"),
    [
        ("run_audit_test07", "Offline", "TEST07", "exact_match 60.606 (at least 60.698)"),
        ("run_audit_test09", "Interactive", "TEST09", "mean_output_tokens 8.000 (1150.38 to 1406.02)"),
    ],
)
def test_an_audit_that_fails_says_what_was_measured(
    project: ScriptedProject, standin_data: Path, verb: str, scenario: str, test: str, value: str
) -> None:
    write(project, QUICK | {"right": {"gpqa_diamond": 0.606}})
    ended = project.run(verb, f"--scenarios={scenario}", data=standin_data)
    assert ended.code == 1, ended.err
    assert f"FAIL, {value}" in ended.err
    record = records(project)[f"{scenario}/{test}#1"]
    assert record.state is State.FINISHED
    assert record.verdict is not None
    assert not record.verdict.valid
    assert {finding.rule for finding in record.verdict.findings if finding.severity == "reject"} == {
        "AUDIT-VERDICT",
        "AUDIT-SCORE" if test == "TEST07" else "AUDIT-LENGTH",
    }
    run = folder(project, scenario, test)
    assert_each_row_once(run, test)
    text = (run / AUDITS[test].verdict_file.value).read_text()
    assert "TEST FAIL" in text.splitlines()
    assert "TEST PASS" not in text


def test_a_scenario_with_an_engine_of_its_own(project: ScriptedProject, standin_data: Path) -> None:
    own = {"Interactive": {"target_qps": 3000, "engine": {"kind": "scripted", "answer_tokens": 8, "slots": 512}}}
    write(project, QUICK, scenarios=RATES | own)
    argv = ("run_harness", "--test_run", "--legs=performance,accuracy", "--scenarios=Server,Interactive")
    ended = project.run(*argv, data=standin_data)
    assert ended.err.count("\nrestarting the scripted engine") == 1
    assert "restarting the scripted engine of SCRIPTED for Interactive: engine.slots 512 in place of None" in ended.err
    assert ended.err.count("the scripted engine that runs is used") == 2
    kept = records(project)
    assert kept["Interactive/performance#1"].engine.slots == 512
    assert kept["Interactive/performance#1"].fingerprint == kept["Interactive/accuracy#1"].fingerprint


# -- resumed -----------------------------------------------------------------------------------------------------------

SHORT = ("run_harness", "--test_run", "--scenarios=Offline", "--legs=performance,accuracy,TEST07", "--resume")


def end_in_audit(project: ScriptedProject, data: Path, attempt: int, sign: signal.Signals) -> Ended:
    """Starts the legs and ends the harness while LoadGen runs the audit that never ends."""
    process = project.start(*SHORT, data=data)
    log = folder(project, "Offline", "TEST07", attempt) / "logs/mlperf_log_detail.txt"
    wait_until(lambda: log.exists() and log.stat().st_size > 0, "LoadGen's log", 90)
    process.send_signal(sign)
    return end_of(process)


def test_a_resumed_command_runs_what_is_not_done(project: ScriptedProject, standin_data: Path) -> None:
    """The first is killed, the second told to end: neither the third nor the second runs again what was done."""
    write(project, QUICK | {"faults": {"TEST07": {"hang": [3]}}})
    end_in_audit(project, standin_data, 1, signal.SIGKILL)
    before = {leg: (folder(project, "Offline", leg) / "run.json").read_bytes() for leg in ("performance", "accuracy")}
    for attempt in (2, 3):
        table = project.run("status", data=standin_data).out
        row = next(line.split() for line in table.splitlines() if line.split()[:1] == ["Offline"])
        assert "interrupted" in row
        assert "missing" in row
        ended = end_in_audit(project, standin_data, attempt, signal.SIGINT)
        assert ended.code == 130, ended.err
        assert ended.err.count("done already (attempt 1, ") == 2
        assert {leg: (folder(project, "Offline", leg) / "run.json").read_bytes() for leg in before} == before
    kept = records(project)
    audits = [f"Offline/TEST07#{attempt}" for attempt in (1, 2, 3)]
    assert sorted(kept) == [*audits, "Offline/accuracy#1", "Offline/performance#1"]
    assert {kept[name].state for name in audits} == {State.INTERRUPTED}


def test_a_run_that_was_killed_before_its_verdict_is_judged_later(project: ScriptedProject, standin_data: Path) -> None:
    """What a crash between LoadGen's end and the verdict leaves is made from a finished run."""
    argv = ("run_audit_test07", "--scenarios=Offline", "--test_run", "--resume")
    assert project.run(*argv, data=standin_data).code == 1
    run = folder(project, "Offline", "TEST07")
    whole = json.loads((run / "run.json").read_text())
    lost = ("verdict", "audit", "accuracy", "counts", "ended_at", "note")
    cut = {**whole, "state": "running", "hashes": {}, "failures": [], "comparisons": [], **dict.fromkeys(lost)}
    (run / "run.json").write_text(json.dumps(cut))
    (run / "verify_accuracy.txt").unlink()
    ended = project.run(*argv, data=standin_data)
    assert ended.code == 1, ended.err
    assert "was killed before it was judged" in ended.err
    assert "its logs are judged now" in ended.err
    assert "starting the" not in ended.err
    again = json.loads((run / "run.json").read_text())
    assert {key: value for key, value in again.items() if key != "ended_at"} == {
        key: value for key, value in whole.items() if key != "ended_at"
    }
    assert sorted(records(project)) == ["Offline/TEST07#1"]
    assert "done already (attempt 1, INVALID" in ended.err


def test_a_changed_configuration_is_not_resumed(project: ScriptedProject, standin_data: Path) -> None:
    argv = ("run_harness", "--test_run", "--scenarios=Offline", "--legs=performance", "--resume")
    project.run(*argv, data=standin_data)
    write(project, QUICK, seed=1)
    ended = project.run(*argv, data=standin_data)
    assert "done already" not in ended.err
    assert sorted(records(project)) == ["Offline/performance#1", "Offline/performance#2"]
