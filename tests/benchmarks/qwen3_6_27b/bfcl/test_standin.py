from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from harness.benchmarks.qwen3_6_27b.bfcl import requests, standin, table
from harness.benchmarks.qwen3_6_27b.bfcl.environment import Environment
from harness.benchmarks.qwen3_6_27b.bfcl.score import score
from harness.benchmarks.qwen3_6_27b.bfcl.scripted import replies
from harness.benchmarks.qwen3_6_27b.bfcl.subsets import SUBSETS
from harness.benchmarks.qwen3_6_27b.bfcl.table import Table
from harness.engines.bodies import BodyStore
from harness.env import BFCL_PYTHON, bfcl_python
from harness.errors import ConfigError, UnknownName
from tests.benchmarks.qwen3_6_27b.bfcl.made import RULES

EVERYTHING_RIGHT = {"non_live": 1.0, "live": 1.0, "hallucination": 1.0}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Table:
    folder = tmp_path_factory.mktemp("standin")
    standin.write(folder, seed=3, rows=10)
    return table.read(folder, RULES)


def test_it_is_a_stand_in_with_rows_of_every_subset(made: Table) -> None:
    assert made.stand_in
    assert [row.subset for row in made.rows] == [subset for subset in SUBSETS for _ in range(10)]
    assert {len(row.tools) for row in made.rows if row.subset == "multiple"} == {3}
    assert {len(row.truth or []) for row in made.rows if row.subset == "parallel_multiple"} == {2}
    assert len({row.messages[0]["content"] for row in made.rows if row.wants_calls}) > 80


def test_it_is_the_same_for_a_seed_and_fewer_rows_are_the_first(tmp_path: Path, made: Table) -> None:
    (tmp_path / "again").mkdir()
    standin.write(tmp_path / "again", seed=3, rows=10)
    assert table.read(tmp_path / "again", RULES).sha256 == made.sha256
    assert set(map(repr, standin.made(3, 2))) < set(map(repr, made.rows))
    assert [row.messages for row in standin.made(4, 10)] != [row.messages for row in made.rows]


def test_it_makes_chats(made: Table, tmp_path: Path) -> None:
    assert len(BodyStore.write(tmp_path / "chats", requests.bodies(made))) == len(made)


@pytest.mark.parametrize("shares", [EVERYTHING_RIGHT, {"non_live": 0.5, "live": 0.25, "hallucination": 0.9}, {}])
def test_the_stated_shares_come_out_to_the_row(made: Table, environment: Environment, shares: dict[str, float]) -> None:
    found = score(enumerate(replies(made, shares, seed=1)), made, RULES, environment)
    for subset in found.score.subsets:
        assert subset.correct == round(shares.get(subset.name, 0) * subset.samples)
        assert subset.failed == 0


@pytest.mark.skipif(not bfcl_python().is_file(), reason=f"no environment of bfcl-eval: {BFCL_PYTHON.name}")
def test_the_published_checker_says_the_same(made: Table) -> None:
    shares = {"non_live": 0.5, "live": 0.25, "hallucination": 0.9}
    real = Environment.named(RULES.accuracy_data.value)
    found = score(enumerate(replies(made, shares, seed=1)), made, RULES, real)
    assert {each.name: each.correct / each.samples for each in found.score.subsets} == pytest.approx(shares)
    assert score(enumerate(replies(made, EVERYTHING_RIGHT, seed=1)), made, RULES, real).score.value == 100


@pytest.mark.parametrize("shares", [{"simple_java": 0.5}, {"live": 1.5}, {"live": -0.1}])
def test_what_is_no_share(made: Table, shares: dict[str, float]) -> None:
    with pytest.raises(UnknownName if "live" not in shares else ConfigError):
        replies(made, shares, seed=0)


def test_nobody_makes_up_right_answers_to_real_questions(made: Table) -> None:
    with pytest.raises(ConfigError, match="cannot be made up"):
        replies(replace(made, stand_in=False), EVERYTHING_RIGHT, seed=0)
