from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from harness.benchmarks.qwen3_6_27b import standin
from harness.benchmarks.qwen3_6_27b.bfcl.table import NAME as QUESTIONS
from harness.benchmarks.qwen3_6_27b.dataset import TrajectorySet, read
from harness.benchmarks.qwen3_6_27b.inline import Issued, score
from harness.benchmarks.qwen3_6_27b.standin import make_dataset
from harness.benchmarks.qwen3_6_27b.store import Library, prepare
from harness.errors import ConfigError, MissingError
from tests.benchmarks.qwen3_6_27b.made import RULES

FILE = RULES.performance_data.value.file


def made(folder: Path, seed: int = 0, rows: int | None = None) -> TrajectorySet:
    make_dataset(folder, seed=seed, rules=RULES, rows=rows)
    return read(folder, RULES)


def test_it_is_read_as_the_real_one_is(tmp_path: Path) -> None:
    found = made(tmp_path / "x")
    assert (len(found.trajectories), found.stand_in, found.whole, found.unread) == (3, True, False, ())
    assert all(turn.recorded is not None for each in found.trajectories for turn in each.turns)
    assert any(len(turn.said) > 1 for each in found.trajectories for turn in each.turns)
    assert any(turn.said[0]["content"] == "" for each in found.trajectories for turn in each.turns)
    assert all(turn.delay_ns > 0 for each in found.trajectories for turn in each.turns[1:])
    about = json.loads((tmp_path / "x" / "STAND_IN.json").read_text())
    assert (about["seed"], about["rows"]) == (0, {"trajectories": 3, "bfcl": RULES.datasets["accuracy"].value})
    assert list(about["sha256"]) == [FILE, QUESTIONS]


def test_its_recorded_answers_score_one_and_some_turns_nothing(tmp_path: Path) -> None:
    found = made(tmp_path / "x", rows=6)
    issued = [
        Issued(each, place, turn.recorded) for each in found.trajectories for place, turn in enumerate(each.turns)
    ]
    whole = score(issued)
    assert (whole.score, whole.missing) == (1.0, 0)
    assert 0 < whole.scored < whole.issued == found.turns


def test_a_library_is_made_of_it(tmp_path: Path) -> None:
    library = Library(made(tmp_path / "x"), repeats=2)
    assert len(prepare(library, tmp_path / "x", lambda _: None)) == library.chats == 2 * library.source.turns


def test_fewer_are_the_first_and_seeds_make_others(tmp_path: Path) -> None:
    many = made(tmp_path / "many", rows=20).trajectories
    assert len({each.id for each in many}) == 20
    assert made(tmp_path / "few", rows=2).trajectories == many[:2]
    assert made(tmp_path / "other", seed=1, rows=2).trajectories != many[:2]


def test_it_is_made_once_and_again_when_it_is_another(tmp_path: Path) -> None:
    folder = tmp_path / "x"
    assert make_dataset(folder, seed=0, rules=RULES).made
    assert not make_dataset(folder, seed=0, rules=RULES).made
    assert make_dataset(folder, seed=0, rules=RULES, rows=4).made
    (folder / FILE).write_text("damaged")
    assert make_dataset(folder, seed=0, rules=RULES, rows=4).made


@pytest.mark.parametrize("rows", [0, -1])
def test_rows_that_are_none(tmp_path: Path, rows: int) -> None:
    with pytest.raises(ConfigError, match=f"a data set of {rows} rows"):
        make_dataset(tmp_path / "x", seed=0, rules=RULES, rows=rows)


def test_real_data_and_places_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text("")
    with pytest.raises(ConfigError, match="holds something that is no stand-in"):
        make_dataset(tmp_path, seed=0, rules=RULES)
    with pytest.raises(MissingError, match="cannot write the stand-in data set"):
        make_dataset(tmp_path / FILE / "below", seed=0, rules=RULES)


def test_the_version_grows_when_the_data_change(tmp_path: Path) -> None:
    made(tmp_path / "x", rows=12)
    text = (tmp_path / "x" / FILE).read_bytes().partition(b"\n")[2]
    digest = hashlib.sha256(text).hexdigest()
    assert (standin.VERSION, digest) == (2, "3aee5ee1951c37346d189b6bfc95d66e4b44ae1062da2c92a21157964685437b")
