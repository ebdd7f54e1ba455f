"""``run_harness`` up to where legs start; the legs themselves are tested end to end."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from harness.benchmarks.gpt_oss_120b.judge.settings import JudgeSettings, current
from harness.cli import run_audit_test07, run_audit_test09, run_harness
from harness.errors import ConfigError, MissingError, UnknownName
from harness.ledger import RunId, RunRecord
from harness.ledger.record import Verdict
from harness.runs.plan import PlannedLeg
from tests.harness_process import ROOT, ScriptedProject
from tests.ledger.made_records import finished


class Runner:
    """Stands for ``run_legs``: keeps what it was asked, and returns a finished record a leg."""

    def __init__(self, *, valid: bool) -> None:
        self.valid = valid
        self.legs: list[PlannedLeg] = []
        self.given: dict[str, Any] = {}

    def __call__(self, legs: Sequence[PlannedLeg], **given: Any) -> list[RunRecord]:
        self.legs, self.given = list(legs), given
        verdict = Verdict(valid=self.valid, loadgen="VALID", findings=[])
        return [finished(run_id(leg), verdict=verdict) for leg in legs]


def run_id(leg: PlannedLeg) -> RunId:
    return RunId(system=leg.system, benchmark=leg.benchmark, scenario=leg.scenario, leg=leg.leg, attempt=1)


@pytest.fixture
def _in_project(scripted_project: ScriptedProject, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(scripted_project.folder)
    monkeypatch.delenv("HARNESS_DATA_DIR", raising=False)


pytestmark = pytest.mark.usefixtures("_in_project")


@pytest.mark.parametrize(("valid", "code"), [(True, 0), (False, 1)])
def test_the_exit_code_is_the_verdict(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], valid: bool, code: int
) -> None:
    runner = Runner(valid=valid)
    monkeypatch.setattr(run_harness, "run_legs", runner)
    assert run_harness.run(["--test_run"]) == code
    assert len(runner.legs) == 4
    out = capsys.readouterr().out
    assert ("VALID" if valid else "INVALID") in out.split()
    assert "not verified by MLCommons" in out


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ([], JudgeSettings("namespaces", None)),
        (["--judge-sandbox=none", "--judge-workers=3"], JudgeSettings("none", 3)),
    ],
)
def test_options_say_how_programs_are_judged(
    monkeypatch: pytest.MonkeyPatch, options: list[str], wanted: JudgeSettings
) -> None:
    seen: list[JudgeSettings] = []

    def runner(legs: Sequence[PlannedLeg], **given: Any) -> list[RunRecord]:
        seen.append(current())
        return Runner(valid=True)(legs, **given)

    monkeypatch.setattr(run_harness, "run_legs", runner)
    run_harness.run(["--test_run", *options])
    assert seen == [wanted]
    assert current() == JudgeSettings()


@pytest.mark.parametrize("option", ["--judge-sandbox=docker", "--judge-workers=0", "--judge-workers=many"])
def test_ways_to_judge_that_there_are_not(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        run_harness.run([option])
    assert ended.value.code == 2
    assert option.split("=")[0] in capsys.readouterr().err


def test_options_choose_the_legs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    runner = Runner(valid=True)
    monkeypatch.setattr(run_harness, "run_legs", runner)
    argv = [
        "--systems=SCRIPTED",
        "--benchmarks= gpt-oss-120b ,",
        "--scenarios=Server,Offline",
        "--test_mode=AccuracyOnly",
        f"--data_dir={tmp_path}/data",
        "--results_dir=kept",
    ]
    run_harness.run(argv)
    assert [(leg.scenario, leg.leg) for leg in runner.legs] == [("Offline", "accuracy"), ("Server", "accuracy")]
    assert not any(leg.test_run for leg in runner.legs)
    assert runner.given["data_dir"] == tmp_path / "data"
    assert runner.given["store"].root == Path.cwd() / "kept"
    assert runner.given["command"] == ["python", "-m", "harness", "run_harness", *argv]


def test_the_data_folder_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    runner = Runner(valid=True)
    monkeypatch.setattr(run_harness, "run_legs", runner)
    run_harness.run([])
    assert runner.given["data_dir"] == Path.cwd() / "build" / "data"
    monkeypatch.setenv("HARNESS_DATA_DIR", "/somewhere")
    run_harness.run([])
    assert runner.given["data_dir"] == Path("/somewhere")


@pytest.mark.parametrize(
    ("option", "near"),
    [
        ("--systems=SCRIPT", "SCRIPTED"),
        ("--benchmarks=gpt-oss", "gpt-oss-120b"),
        ("--scenarios=Servers", "Server"),
        ("--test_mode=Accuracy", "AccuracyOnly"),
        ("--legs=TEST7", "TEST07"),
        ("--round=v6.2", "v6.1"),
    ],
)
def test_a_name_that_is_not_known(option: str, near: str) -> None:
    with pytest.raises(UnknownName) as caught:
        run_harness.run([option])
    assert caught.value.mend == f"did you mean {near!r}?"


@pytest.mark.parametrize(
    "option", ["--systems=", "--scenarios=,", "--test_mode= , ", "--benchmarks=", "--results_dir="]
)
def test_a_variable_that_was_not_set_is_not_all_there_are(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], option: str
) -> None:
    runner = Runner(valid=True)
    monkeypatch.setattr(run_harness, "run_legs", runner)
    with pytest.raises(SystemExit) as ended:
        run_harness.run([option])
    assert ended.value.code == 2
    assert option.partition("=")[0] in capsys.readouterr().err
    assert runner.legs == []


def test_the_home_folder_that_a_shell_leaves_alone(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    runner = Runner(valid=True)
    monkeypatch.setattr(run_harness, "run_legs", runner)
    monkeypatch.setenv("HOME", str(tmp_path))
    run_harness.run(["--results_dir=~/kept", "--data_dir=~/data"])
    assert runner.given["store"].root == tmp_path / "kept"
    assert runner.given["data_dir"] == tmp_path / "data"
    with pytest.raises(SystemExit):
        run_harness.run(["--results_dir=~no-such-user-here/kept"])
    assert "no-such-user-here" in capsys.readouterr().err


def test_a_folder_that_is_no_project(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match="no systems/ folder"):
        run_harness.run([])


def test_a_data_set_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(MissingError) as caught:
        run_harness.run([f"--data_dir={tmp_path}/none"])
    assert caught.value.mend
    assert not list(Path.cwd().glob("results/*/*/*/*/attempt_*"))


AUDITED = ["performance", "accuracy", "TEST07", "TEST09"]


@pytest.fixture
def _audited(scripted_project: ScriptedProject) -> None:
    shutil.copytree(ROOT / "compliance", scripted_project.folder / "compliance")


@pytest.mark.usefixtures("_audited")
def test_legs_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    runner = Runner(valid=True)
    monkeypatch.setattr(run_harness, "run_legs", runner)
    run_harness.run(["--legs=TEST09, performance,accuracy,TEST07", "--scenarios=Offline", "--resume"])
    assert [leg.leg for leg in runner.legs] == AUDITED
    assert runner.given["resume"] is True


@pytest.mark.usefixtures("_audited")
@pytest.mark.parametrize(("module", "test"), [(run_audit_test07, "TEST07"), (run_audit_test09, "TEST09")])
@pytest.mark.parametrize(("valid", "code"), [(True, 0), (False, 1)])
def test_an_audit_is_a_verb(monkeypatch: pytest.MonkeyPatch, module: Any, test: str, valid: bool, code: int) -> None:
    runner = Runner(valid=valid)
    monkeypatch.setattr(run_harness, "run_legs", runner)
    assert module.run(["--scenarios=Server"]) == code
    assert [(leg.scenario, leg.leg) for leg in runner.legs] == [("Server", test)]
    assert runner.given["resume"] is False
    assert runner.given["command"][3:] == [f"run_audit_{test.lower()}", "--scenarios=Server"]


@pytest.mark.parametrize(
    "argv", [["--legs=TEST07", "--test_mode=AccuracyOnly"], ["--legs="], ["--legs"], ["--threshold=1"]]
)
def test_options_that_make_no_sense(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        run_harness.run(argv)
    assert ended.value.code == 2
    assert argv[0].partition("=")[0] in capsys.readouterr().err


def test_no_option_of_an_audit_moves_a_threshold(capsys: pytest.CaptureFixture[str]) -> None:
    for module in (run_audit_test07, run_audit_test09):
        for option in ("--threshold=1", "--legs=accuracy", "--min-output-tokens=1", "--audit-config=x"):
            with pytest.raises(SystemExit) as ended:
                module.run([option])
            assert ended.value.code == 2
    assert "unrecognized arguments" in capsys.readouterr().err
