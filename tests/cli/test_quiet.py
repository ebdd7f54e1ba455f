"""Verbs that take long tell nothing with --quiet but errors and what they came to."""

from __future__ import annotations

import importlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from harness.cli import run_harness
from harness.cli.main import VERBS, main
from harness.events import LegProgress, LegStarted, Note
from harness.ledger import RunRecord
from harness.ledger.record import Verdict
from harness.runs.plan import PlannedLeg
from tests.cli.test_run_harness import run_id
from tests.ledger.made_records import finished

LONG = [
    "run_harness",
    "run_audit_test07",
    "run_audit_test09",
    "find_target_qps",
    "make_dataset",
    "fetch_dataset",
    "run_llm_server",
    "check_gpu",
    "submission",
    "check_submission",
    "report",
]


@pytest.mark.parametrize("verb", [verb for verb in LONG if verb in VERBS])
def test_every_long_verb_can_be_quiet(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        importlib.import_module(f"harness.cli.{verb}").run(["--help"])
    assert ended.value.code == 0
    assert "--quiet" in capsys.readouterr().out


@pytest.mark.parametrize("quiet", [False, True])
def test_runs_are_told_or_not(
    scripted_project: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], quiet: bool
) -> None:
    def run_legs(legs: Sequence[PlannedLeg], **given: Any) -> list[RunRecord]:
        tell = given["observer"]
        tell(Note("a note"))
        tell(LegStarted("a leg", "a folder", 60.0))
        tell(LegProgress("a leg", 1.0, 4, 2, 0))
        return [finished(run_id(leg), verdict=Verdict(valid=True, loadgen="VALID", findings=[])) for leg in legs]

    monkeypatch.chdir(scripted_project.folder)
    monkeypatch.setattr(run_harness, "run_legs", run_legs)
    assert main(["run_harness", "--test_run", *(["--quiet"] if quiet else [])]) == 0
    said = capsys.readouterr()
    assert "VALID" in said.out
    if quiet:
        assert said.err == ""
    else:
        assert all(text in said.err for text in ("a note", "a leg: started", "0:01 of about 1:00, 2 of 4 issued"))


def test_errors_are_told_all_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check_submission", f"--input={tmp_path / 'nowhere'}", "--quiet"]) == 2
    assert "no such folder" in capsys.readouterr().err


def test_what_a_check_found_is_told_all_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = tmp_path / "found.json"
    (tmp_path / "tree").mkdir()
    assert main(["check_submission", f"--input={tmp_path / 'tree'}", "--quiet", f"--json={found}"]) == 1
    said = capsys.readouterr()
    assert said.err == ""
    assert said.out
    assert json.loads(found.read_text())["findings"]
