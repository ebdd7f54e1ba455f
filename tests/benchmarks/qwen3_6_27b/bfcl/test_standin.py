from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from harness.benchmarks.qwen3_6_27b.bfcl import requests, standin, table
from harness.benchmarks.qwen3_6_27b.bfcl.environment import Environment
from harness.benchmarks.qwen3_6_27b.bfcl.score import score
from harness.benchmarks.qwen3_6_27b.bfcl.scripted import replies, words
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
    assert standin.write(folder, RULES, seed=3).rows == {"bfcl": RULES.datasets["accuracy"].value}
    return table.read(folder, RULES)


def test_it_is_a_stand_in_with_rows_of_every_kind_as_many_as_the_round_s(made: Table) -> None:
    assert made.stand_in
    assert made.whole
    assert [row.subset for row in made.rows[:24]] == [*SUBSETS, *SUBSETS]
    counts = Counter(row.category for row in made.rows)
    assert counts == {name: each.samples for name, each in RULES.accuracy_subsets.value.items()}
    assert {len(row.tools) for row in made.rows if row.subset == "multiple"} == {3}
    assert {len(row.truth or []) for row in made.rows if row.subset == "parallel_multiple"} == {2}
    assert len({row.messages[0]["content"] for row in made.rows if row.wants_calls}) > 600


def test_it_is_the_same_for_a_seed_and_fewer_rows_are_the_first(tmp_path: Path, made: Table) -> None:
    def again(name: str, seed: int, rows: int | None) -> Table:
        (tmp_path / name).mkdir()
        standin.write(tmp_path / name, RULES, seed=seed, rows=rows)
        return table.read(tmp_path / name, RULES)

    assert again("same", 3, None).sha256 == made.sha256
    few = again("few", 3, 20)
    assert (few.rows, few.whole) == (made.rows[:20], False)
    assert again("other", 4, 20).rows != few.rows


def test_it_makes_chats(made: Table, tmp_path: Path) -> None:
    assert len(BodyStore.write(tmp_path / "chats", requests.bodies(made))) == len(made)


@pytest.mark.parametrize("shares", [EVERYTHING_RIGHT, {"non_live": 0.5, "live": 0.25, "hallucination": 0.9}])
def test_the_stated_shares_come_out_to_the_row(made: Table, environment: Environment, shares: dict[str, float]) -> None:
    found = score(enumerate(replies(made, shares, seed=1, answer_tokens=8)), made, RULES, environment)
    for subset in found.score.subsets:
        assert subset.correct == round(shares[subset.name] * subset.samples)
        assert subset.failed == 0


def test_what_no_share_speaks_of_gets_text(made: Table) -> None:
    for shares, questions in (({}, made), ({"live": 1.0}, made), ({}, replace(made, stand_in=False))):
        found = replies(questions, shares, seed=1, answer_tokens=8)
        others = [reply for reply, row in zip(found, made.rows, strict=True) if row.category not in shares]
        assert {json.dumps({"content": words(8)}).encode()} == set(others)
    assert len(words(8)) == 32


@pytest.mark.skipif(not bfcl_python().is_file(), reason=f"no environment of bfcl-eval: {BFCL_PYTHON.name}")
def test_the_published_checker_says_the_same(made: Table) -> None:
    shares = {"non_live": 0.5, "live": 0.25, "hallucination": 0.9}
    real = Environment.named(RULES.accuracy_data.value)
    found = score(enumerate(replies(made, shares, seed=1, answer_tokens=8)), made, RULES, real)
    assert all(each.correct == round(shares[each.name] * each.samples) for each in found.score.subsets)
    assert (
        score(enumerate(replies(made, EVERYTHING_RIGHT, seed=1, answer_tokens=8)), made, RULES, real).score.value == 100
    )


@pytest.mark.parametrize("shares", [{"simple_java": 0.5}, {"live": 1.5}, {"live": -0.1}])
def test_what_is_no_share(made: Table, shares: dict[str, float]) -> None:
    with pytest.raises(UnknownName if "live" not in shares else ConfigError):
        replies(made, shares, seed=0, answer_tokens=8)


def test_nobody_makes_up_right_answers_to_real_questions(made: Table) -> None:
    with pytest.raises(ConfigError, match="cannot be made up"):
        replies(replace(made, stand_in=False), EVERYTHING_RIGHT, seed=0, answer_tokens=8)
