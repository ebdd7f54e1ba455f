"""``fetch_dataset`` for the recorded trajectories: what the verb adds to what is tested of its parts."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness import rules
from harness.benchmarks.base import file_sha256
from harness.benchmarks.qwen3_6_27b import fetch
from harness.benchmarks.qwen3_6_27b.files import NAME
from harness.cli import fetch_dataset, make_dataset
from harness.env import BFCL_PYTHON
from harness.errors import ConfigError, DatasetError
from harness.rules import RulePack
from tests.benchmarks.qwen3_6_27b.bfcl.made import made_environment
from tests.benchmarks.qwen3_6_27b.made import PACK, RULES, demo, write


@pytest.fixture
def published(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file that is the round's."""
    path = write(tmp_path / "copy.jsonl", demo())
    changes = {"sha256": file_sha256(path), "trajectories": 1, "turns": 2}
    data = RULES.performance_data.model_copy(update={"value": RULES.performance_data.value.model_copy(update=changes)})
    own = RULES.model_copy(update={"performance_data": data})
    pack = PACK.model_copy(update={"benchmarks": {NAME: own}})

    def load(name: str) -> RulePack:
        return pack

    monkeypatch.setattr(rules, "load", load)
    monkeypatch.setenv(BFCL_PYTHON.name, str(tmp_path / "no python"))
    return path


def run(data_dir: Path, *more: str) -> int:
    return fetch_dataset.run([f"--benchmark={NAME}", f"--data_dir={data_dir}", *more])


def test_a_copy_is_taken_then_verified(published: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path, f"--adopt={published}") == 0
    place = tmp_path / NAME / RULES.performance_data.value.file
    assert f"1 trajectories of 2 turns: {place}" in capsys.readouterr().out
    assert run(tmp_path, "--verify") == 0
    out = capsys.readouterr().out
    assert "BFCL's questions: they are not there yet" in out
    assert "complete" not in out
    place.write_text(place.read_text().replace("Question", "Answer"))
    with pytest.raises(DatasetError, match="others than the round's"):
        run(tmp_path, "--verify")


def test_the_questions_are_made_where_their_package_is(
    published: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path, f"--adopt={published}") == 0
    assert "the environment of bfcl-eval is not there" in capsys.readouterr().out
    monkeypatch.setenv(BFCL_PYTHON.name, str(made_environment(tmp_path / "venv").python))
    for _ in range(2):
        assert run(tmp_path, "--verify") == 0
        assert "complete" not in capsys.readouterr().out
    assert run(tmp_path, f"--adopt={published}") == run(tmp_path, "--verify") == 0
    out = capsys.readouterr().out
    assert out.count("questions of BFCL: ") == 2
    assert f"the data set is complete: {tmp_path / NAME}" in out


def test_it_is_fetched_from_where_it_is_published(
    published: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetch, "fetch", lambda folder, url, data: fetch.adopt(published, folder, data))
    assert run(tmp_path) == 0
    assert run(tmp_path, "--verify") == 0


def test_verify_asks_nobody(published: Path, tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="the trajectories are missing"):
        run(tmp_path, "--verify")


@pytest.mark.parametrize("more", [(), ("--verify",), ("--adopt=x",)])
def test_a_stand_in_is_left_alone(tmp_path: Path, more: tuple[str, ...]) -> None:
    make_dataset.run([f"--benchmark={NAME}", f"--data_dir={tmp_path}"])
    with pytest.raises(ConfigError, match="holds a stand-in"):
        run(tmp_path, *more)


def test_revisions_are_another_s(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="--revision is for qwen3-vl-235b-a22b"):
        run(tmp_path, "--revision=x")
