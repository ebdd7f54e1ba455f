from __future__ import annotations

from pathlib import Path

import pytest

from harness.cli import status
from harness.ledger import ResultsStore, State, write_record
from harness.ledger.record import Verdict
from harness.ledger.store import LedgerError
from tests.harness_process import ScriptedProject
from tests.ledger.made_records import add, finished, record


@pytest.fixture
def results(tmp_path: Path) -> Path:
    store = ResultsStore(tmp_path / "results [old]")
    add(store)
    add(store, "Server", verdict=Verdict(valid=False, loadgen="INVALID", findings=[]))
    run_id, folder = store.new_attempt("BOX", "gpt-oss-120b", "Server", "accuracy")
    write_record(folder, record(run_id, state=State.BROKEN, note="the engine [/red] went away"))
    return store.root


@pytest.fixture(autouse=True)
def _no_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def runs_of(out: str) -> list[list[str]]:
    """The lines of the table of runs; before it stands the one of legs."""
    lines = [line.split()[:4] for line in out.splitlines() if line.split()[:1] in (["Offline"], ["Server"])]
    return [words for words in lines if words[2:3] == ["1"]]


def shown(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    assert status.run(list(argv)) == 0
    return capsys.readouterr().out


def test_the_runs_there_are(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = shown(capsys, f"--results_dir={results}")
    assert "gpt-oss-120b on BOX" in out
    assert runs_of(out) == [
        ["Offline", "performance", "1", "VALID"],
        ["Server", "accuracy", "1", "broken"],
        ["Server", "performance", "1", "INVALID"],
    ]
    assert "12.50 Tokens/s" in out
    assert "the engine [/red] went away" in out
    assert "not submittable (3 runs): stand-in data set" in out
    assert str(results) in out
    assert "not verified by MLCommons" in out


@pytest.mark.parametrize(
    ("option", "lines"),
    [("--scenarios=Offline", 1), ("--scenarios=Server", 2), ("--systems=BOX", 3), ("--benchmarks=gpt-oss-120b,x", 3)],
)
def test_those_that_are_asked_for(results: Path, capsys: pytest.CaptureFixture[str], option: str, lines: int) -> None:
    out = shown(capsys, f"--results_dir={results}", option)
    assert len(runs_of(out)) == lines


def test_no_runs(results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "none of the 3 runs in" in shown(capsys, f"--results_dir={results}", "--systems=CRATE")
    assert f"no runs in {tmp_path}/[none]" in shown(capsys, f"--results_dir={tmp_path}/[none]")


def test_a_record_that_cannot_be_read_is_named_after_the_others(
    results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = next(results.rglob("run.json"))
    path.write_text("{")
    with pytest.raises(LedgerError) as caught:
        status.run([f"--results_dir={results}"])
    assert caught.value.where == str(path)
    out = capsys.readouterr().out
    assert len(runs_of(out)) == 2


def test_where_legs_stand_in_a_project(
    scripted_project: ScriptedProject, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(scripted_project.folder)
    run_id, folder = ResultsStore(scripted_project.results).new_attempt("SCRIPTED", "gpt-oss-120b", "Server", "TEST07")
    write_record(folder, finished(run_id))
    out = shown(capsys)
    assert "gpt-oss-120b on SCRIPTED" in out
    rows = [line.split() for line in out.splitlines() if line.split()[:1] in (["Offline"], ["Server"])]
    assert rows[:2] == [["Offline", *["missing"] * 4], ["Server", "missing", "missing", "stale", "missing"]]
    assert "stale, changed since: " in out
