from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.cli import compare
from harness.cli.main import main
from harness.ledger.record import Result
from tests.report.book.made import made_run

ONE, TWO = "BOX/gpt-oss-120b/Server/performance#1", "BOX/gpt-oss-120b/Server/performance#2"


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two attempts of one leg, the second slower by a fifth."""
    monkeypatch.chdir(tmp_path)
    root = tmp_path / "results"
    for value in (1000.0, 800.0):
        result = Result(key="result_completed_tokens_per_second", value=value, units="Tokens/s")
        made_run(root, 200, not_submittable=[], result=result)
    return root


def test_two_attempts_have_details(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert compare.run([ONE, TWO]) == 0
    out = capsys.readouterr().out
    assert "-20.00 %" in out and "worse" in out
    assert "Server: percentiles" in out and "Time to first token, p99" in out
    assert "not verified by MLCommons Association" in out


@pytest.mark.parametrize(("percent", "code"), [("5", 1), ("25", 0)])
def test_what_is_worse_by_more_ends_with_one(
    results: Path, capsys: pytest.CaptureFixture[str], percent: str, code: int
) -> None:
    assert compare.run([ONE, TWO, f"--fail_below={percent}"]) == code
    assert ("worse: BOX/gpt-oss-120b/Server: -20.00 %" in capsys.readouterr().err) is bool(code)
    assert compare.run([TWO, ONE, f"--fail_below={percent}"]) == 0


def test_json_is_all_there_is_on_standard_output(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert compare.run([ONE, TWO, "--json", "--fail_below", "5", "--results_dir", str(results)]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["exit_code"] == 1
    assert found["regressions"] == ["BOX/gpt-oss-120b/Server: -20.00 %"]
    assert found["rows"][0]["judgement"] == "worse"


@pytest.mark.parametrize("percent", ["-1", "nan", "inf", "ten"])
def test_a_percentage_is_a_number_from_0_up(results: Path, percent: str) -> None:
    with pytest.raises(SystemExit) as caught:
        compare.run([ONE, TWO, f"--fail_below={percent}"])
    assert caught.value.code == 2


def test_bad_input_is_told_without_a_traceback(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", str(results), str(results)]) == 2
    assert main(["compare", str(results), str(results / "none")]) == 2
    assert main(["compare", ONE, TWO.replace("#2", "#7")]) == 2
    err = capsys.readouterr().err
    assert "the two are the same" in err and "no such folder" in err and "unknown run" in err
    assert "Traceback" not in err


def test_a_record_that_cannot_be_read_is_a_note(
    results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made_run(tmp_path / "after", 50)
    broken = tmp_path / "after/BOX/gpt-oss-120b/Offline/performance/attempt_01"
    broken.mkdir(parents=True)
    (broken / "run.json").write_text("{")
    assert compare.run([str(results), str(tmp_path / "after"), "--details"]) == 0
    assert "not a readable run record" in capsys.readouterr().out
