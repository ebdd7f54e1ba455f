from __future__ import annotations

from pathlib import Path

import pytest

from harness.benchmarks.base import Made
from harness.benchmarks.gpt_oss_120b.benchmark import GptOss120b
from harness.cli import make_dataset
from harness.errors import ConfigError, UnknownName


@pytest.mark.parametrize(("option", "near"), [("--benchmark=gpt-oss-20b", "gpt-oss-120b"), ("--round=v6.11", "v6.1")])
def test_a_name_that_is_not_known(tmp_path: Path, option: str, near: str) -> None:
    with pytest.raises(UnknownName) as caught:
        make_dataset.run([option, f"--data_dir={tmp_path}"])
    assert caught.value.mend == f"did you mean {near!r}?"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("made", "word"), [(True, "made"), (False, "is there already")])
def test_what_it_says(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, made: bool, word: str
) -> None:
    asked = []

    def make(self: GptOss120b, data_dir: Path, *, seed: int, rows: int | None = None) -> Made:
        asked.append((data_dir, seed))
        return Made(folder=data_dir / "[gpt]", seed=seed, rows={}, sha256={}, made=made)

    monkeypatch.setattr(GptOss120b, "make_dataset", make)
    assert make_dataset.run([f"--data_dir={tmp_path}", "--seed=3"]) == 0
    assert asked == [(tmp_path, 3)]
    out = capsys.readouterr().out
    assert f"stand-in data set {word}: {tmp_path}/[gpt]" in out
    assert "never submittable" in out


@pytest.mark.harmony
def test_it_is_made_once(tmp_path: Path, capsys: pytest.CaptureFixture[str], standin_data: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in standin_data.rglob("*")}
    assert make_dataset.run([f"--data_dir={standin_data}"]) == 0
    assert "is there already" in capsys.readouterr().out
    assert {path: path.stat().st_mtime_ns for path in standin_data.rglob("*")} == before


def test_rows_of_a_benchmark_that_can_be_shorter(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--benchmark=qwen3-vl-235b-a22b", "--rows=5", f"--data_dir={tmp_path}"]
    assert make_dataset.run(options) == 0
    assert f"stand-in data set made: {tmp_path}/qwen3-vl-235b-a22b" in capsys.readouterr().out
    assert make_dataset.run(options) == 0
    assert "is there already" in capsys.readouterr().out


def test_rows_of_a_benchmark_that_cannot(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="a stand-in of 5 rows"):
        make_dataset.run(["--rows=5", f"--data_dir={tmp_path}"])
    assert list(tmp_path.iterdir()) == []


def test_trajectories_and_questions(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--benchmark=qwen3.6-27b", f"--data_dir={tmp_path}"]
    assert make_dataset.run(options) == 0
    assert f"stand-in data set made: {tmp_path}/qwen3.6-27b" in capsys.readouterr().out
    assert make_dataset.run([*options, "--rows=5"]) == 0
    text = (tmp_path / "qwen3.6-27b" / "agentic_coding_2.5h.jsonl").read_text()
    assert text.count('"turn":1,') == 5
    assert len((tmp_path / "qwen3.6-27b" / "bfcl_v4_single_turn.jsonl").read_text().splitlines()) == 5
    with pytest.raises(UnknownName, match=r"unknown benchmark 'qwen3\.6-27b'"):
        make_dataset.run([*options, "--round=v6.0"])
