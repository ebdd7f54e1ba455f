from __future__ import annotations

from pathlib import Path

import pytest

from harness.benchmarks.base import file_sha256
from harness.benchmarks.qwen3_6_27b.dataset import read, read_file
from harness.benchmarks.qwen3_6_27b.files import STAND_IN_KEY
from harness.errors import DatasetError
from harness.rules import TrajectoryRules
from tests.benchmarks.qwen3_6_27b.made import RULES, demo, lines, write

FILE = RULES.performance_data.value.file
MARK = {"_type": "dataset_metadata", STAND_IN_KEY: {"seed": 0}}


def rules(path: Path, trajectories: int = 1, turns: int = 2) -> TrajectoryRules:
    """The round's, but for the file: that of the path."""
    changes = {"sha256": file_sha256(path), "trajectories": trajectories, "turns": turns}
    data = RULES.performance_data.model_copy(update={"value": RULES.performance_data.value.model_copy(update=changes)})
    return RULES.model_copy(update={"performance_data": data})


def test_the_round_s_own_file(tmp_path: Path) -> None:
    path = write(tmp_path / FILE, demo())
    found = read(tmp_path, rules(path))
    assert (len(found.trajectories), found.turns) == (1, 2)
    assert (found.stand_in, found.whole, found.unread) == (False, True, ())
    assert (found.file.path, found.file.sha256) == (path, file_sha256(path))


def test_another_file_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / FILE, demo())
    with pytest.raises(DatasetError, match="others than the round's: sha256") as caught:
        read(tmp_path, RULES)
    assert caught.value.expected == RULES.performance_data.value.sha256
    assert caught.value.where == str(path)


@pytest.mark.parametrize("counts", [(1, 3), (2, 2)])
def test_other_counts_than_the_round_s(tmp_path: Path, counts: tuple[int, int]) -> None:
    path = write(tmp_path / FILE, demo())
    with pytest.raises(DatasetError, match="there are 1 trajectories of 2 turns in all"):
        read(tmp_path, rules(path, *counts))


def test_a_file_that_is_missing(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="the trajectories are missing") as caught:
        read(tmp_path, RULES)
    assert caught.value.mend and "make fetch_dataset" in caught.value.mend


def test_a_stand_in_needs_no_hash_and_says_so(tmp_path: Path) -> None:
    write(tmp_path / FILE, [MARK, *demo("a"), *demo("b")])
    found = read(tmp_path, RULES)
    assert (found.stand_in, found.whole, len(found.trajectories)) == (True, False, 2)


def test_the_first_trajectories_alone(tmp_path: Path) -> None:
    found = read_file(write(tmp_path / "x.jsonl", [*demo("a"), *demo("b")]))
    assert found.whole
    head = found.head(1)
    assert ([each.id for each in head.trajectories], head.whole, head.file) == (["a"], False, found.file)
    assert found.head(2).whole
    for wrong in (0, 3):
        with pytest.raises(ValueError, match=f"the first {wrong} of 2"):
            found.head(wrong)


def test_a_row_that_is_wrong_is_named(tmp_path: Path) -> None:
    path = tmp_path / FILE
    path.write_text(lines(demo()) + '{"conversation_id": "x"}\n')
    with pytest.raises(DatasetError, match="turn is absent") as caught:
        read(tmp_path, RULES)
    assert caught.value.where == f"{path}, line 5, conversation 'x'"
