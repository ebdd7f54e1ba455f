"""``check_submission --profile``: its options, what it prints and writes, its exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.cli.check_submission import run
from harness.errors import ConfigError, DatasetError, UnknownName
from harness.gate.profile_rules import STALE
from harness.logs import LogError
from tests.gate import made_endpoints as made
from tests.gate.made_profile import NAME, make_report

OWN = ["--profile", NAME, "--input"]


@pytest.fixture
def report(tmp_path: Path) -> Path:
    return make_report(tmp_path / "report")


@pytest.fixture
def regions(tmp_path: Path) -> list[str]:
    """Three further reports of which only SWE-bench is read."""
    folders = [make_report(tmp_path / name) for name in ("b", "c", "d")]
    for folder in folders:
        (folder / "events.jsonl").unlink()
    return [word for folder in folders for word in ("--region", str(folder))]


def test_a_report_that_nothing_rejects(
    report: Path, regions: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "out" / "found.json"
    assert run([*OWN, str(report), *regions, "--json", str(target)]) == 0
    printed = capsys.readouterr().out
    assert "inline_percent               64\n" in printed
    assert f"profile {NAME}: review (0 reject, 2 review, 1 note)" in printed
    assert "since 2026-08-20" in printed
    assert "13 of 1226 came after the measured part; --tokenizer counts them" in printed
    written = json.loads(target.read_text())
    assert (written["profile"], written["verdict"], written["exit_code"]) == (NAME, "review", 0)
    assert written["figures"]["swe_bench_mean"] == 80.0
    assert {finding["rule"] for finding in written["findings"]} >= {STALE.id, "EP-PROFILE-OSL"}


def test_a_report_that_is_rejected(report: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made.change_data(report / "config.yaml", "datasets/0/agentic_inference/enable_salt", False)
    assert run([*OWN, str(report)]) == 1
    assert "EP-PROFILE-SETTINGS" in capsys.readouterr().out


def test_annotations(report: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*OWN, str(report), "--format", "github"]) == 0
    assert f"::warning file={report}/config.yaml,title=EP-PROFILE-STALE" in capsys.readouterr().out


def test_a_data_set_of_ones_own_is_counted(report: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [
        {"conversation_id": "a", "turn": 1, "role": "user", "system": "s", "content": "go"},
        {"conversation_id": "a", "turn": 2, "role": "assistant", "content": "done"},
    ]
    dataset = tmp_path / "own.jsonl"
    dataset.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    assert run([*OWN, str(report), "--dataset", str(dataset)]) == 1
    assert "a data set of 1 trajectories" in capsys.readouterr().out
    dataset.write_text("{}\n")
    with pytest.raises(DatasetError):
        run([*OWN, str(report), "--dataset", str(dataset)])


def test_unknown_profiles_and_reports_that_are_not_there(report: Path, tmp_path: Path) -> None:
    with pytest.raises(UnknownName, match="agentic"):
        run(["--profile", "agentic", "--input", str(report)])
    with pytest.raises(ConfigError, match="no such folder"):
        run([*OWN, str(tmp_path / "none")])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--dataset", "x"], "--dataset is for --profile"),
        (["--tokenizer", "x"], "--tokenizer is for --profile"),
        (["--region", "x"], "--region is for --profile"),
    ],
)
def test_options_of_profiles_alone(report: Path, words: list[str], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        run(["--input", str(report), *words])


@pytest.mark.parametrize("option", ["--submitter", "--originals", "--report-dir"])
def test_options_of_trees_alone(report: Path, tmp_path: Path, option: str) -> None:
    with pytest.raises(ConfigError, match=f"{option} is for trees"):
        run([*OWN, str(report), option, str(tmp_path)])


def test_what_is_asked_for_and_cannot_be(report: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no report of another region: no such folder"):
        run([*OWN, str(report), "--region", str(tmp_path / "none")])
    (tmp_path / "empty").mkdir()
    with pytest.raises(ConfigError, match="a report without a figure of SWE-bench"):
        run([*OWN, str(report), "--region", str(tmp_path / "empty")])
    (report / "events.jsonl").write_text("[]\n")
    with pytest.raises(LogError, match="no event"):
        run([*OWN, str(report)])
    (report / "events.jsonl").unlink()
    with pytest.raises(ConfigError, match=r"no events\.jsonl"):
        run([*OWN, str(report), "--tokenizer", str(tmp_path)])


def test_an_empty_folder_is_a_report_of_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "empty").mkdir()
    assert run([*OWN, str(tmp_path / "empty")]) == 1
    printed = capsys.readouterr().out
    assert "EP-PROFILE-FILES" in printed
    assert "inline_percent               not told" in printed


@pytest.mark.torch
def test_a_tokenizer_counts_all_turns(report: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from tests.benchmarks.made_tokenizer import make_tokenizer

    target = tmp_path / "found.json"
    folder = make_tokenizer(tmp_path / "tokenizer")
    assert run([*OWN, str(report), "--tokenizer", str(folder), "--json", str(target)]) == 0
    mean = json.loads(target.read_text())["figures"]["mean_output_tokens_all"]
    assert mean == pytest.approx((1 + 6) / 2)
    assert "tokens over all turns" in capsys.readouterr().out
    with pytest.raises(ConfigError, match="no tokenizer that can be read"):
        run([*OWN, str(report), "--tokenizer", str(tmp_path / "none")])
