from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.benchmarks.gpt_oss_120b import vocab
from harness.benchmarks.gpt_oss_120b.answers import program
from harness.benchmarks.gpt_oss_120b.code_questions import solution, wrong_solution
from harness.benchmarks.gpt_oss_120b.score import score
from harness.benchmarks.gpt_oss_120b.scripted import scripted_answers
from harness.benchmarks.scripts import ScriptedAnswers
from harness.errors import ConfigError, DatasetError, UnknownName
from tests.benchmarks.gpt_oss_120b.made import dataset

pytestmark = pytest.mark.harmony

ROWS = [
    *(("aime25", str(i)) for i in (0, 7, 70, 999) * 10),
    *(("gpqa_diamond", letter) for letter in "ABCD" * 15),
    *(("livecodebench_v6", f"q{i}") for i in range(9)),
    ("summarization", "It was so."),
]


@settings(max_examples=30, deadline=None)
@given(st.floats(0, 1), st.floats(0, 1), st.integers(0, 99))
def test_the_share_comes_out_to_the_row(aime: float, gpqa: float, seed: int) -> None:
    data = dataset(ROWS)
    shares = {"aime25": aime, "gpqa_diamond": gpqa}
    made = scripted_answers(data, shares, seed=seed, answer_tokens=16)
    found = score(((row, made[row]) for row in range(len(made))), data, key="k", repeats={})
    assert found.failed == 0
    correct = {subset.name: (subset.correct, subset.wrong, subset.unscored) for subset in found.subsets}
    assert correct["aime25"] == (round(aime * 40), 40 - round(aime * 40), 0)
    assert correct["gpqa_diamond"] == (round(gpqa * 60), 60 - round(gpqa * 60), 0)
    assert correct["livecodebench_v6"] == (0, 0, 9)


def test_which_rows_are_right_is_drawn_by_the_seed() -> None:
    def made(seed: int) -> ScriptedAnswers:
        return scripted_answers(dataset(ROWS), {"aime25": 0.5}, seed=seed, answer_tokens=4)

    assert np.array_equal(made(1).tokens, made(1).tokens)
    assert not np.array_equal(made(1).tokens, made(2).tokens)


def test_answers_have_the_shape_of_harmony() -> None:
    data = dataset(ROWS)
    made = scripted_answers(data, {"aime25": 1.0}, seed=0, answer_tokens=16)
    text = vocab.decode(made[0])
    assert isinstance(text, str)
    assert text.startswith("<|channel|>analysis<|message|>")
    assert "<|end|><|start|>assistant<|channel|>final<|message|>" in text


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_a_program_stands_in_a_fenced_block_of_the_final_part(share: float) -> None:
    data = dataset([("livecodebench_v6", "standin_7_pairs_5_60")] * 2)
    made = scripted_answers(data, {"livecodebench_v6": share}, seed=0, answer_tokens=4)
    wanted = solution("standin_7_pairs_5_60") if share else wrong_solution("standin_7_pairs_5_60")
    for row in range(2):
        text = vocab.decode(made[row])
        assert isinstance(text, str)
        assert program(text) == wanted


@pytest.mark.parametrize("tokens", [0, 1, 2, 16, 500])
def test_rows_of_no_share_have_the_stated_length(tokens: int) -> None:
    made = scripted_answers(dataset([("summarization", "x")] * 3), {}, seed=0, answer_tokens=tokens)
    assert [len(made[row]) for row in range(3)] == [tokens] * 3


def test_shares_that_cannot_be_meant() -> None:
    data = dataset(ROWS)
    with pytest.raises(UnknownName, match=r"(?s)'aime24'.*'aime25'"):
        scripted_answers(data, {"aime24": 0.5}, seed=0, answer_tokens=4)
    with pytest.raises(ConfigError, match="nobody grades it"):
        scripted_answers(data, {"summarization": 0.5}, seed=0, answer_tokens=4)
    with pytest.raises(ConfigError, match=r"1\.5 is not a share"):
        scripted_answers(data, {"aime25": 1.5}, seed=0, answer_tokens=4)
    with pytest.raises(ConfigError, match="-1 tokens"):
        scripted_answers(data, {}, seed=0, answer_tokens=-1)


@pytest.mark.parametrize(
    "row",
    [
        ("aime25", "seven"),
        ("aime25", None),
        ("gpqa_diamond", "E"),
        ("gpqa_diamond", ""),
        ("livecodebench_v6", "abc301_a"),
    ],
)
def test_a_ground_truth_that_is_no_answer(row: tuple[str, str | None]) -> None:
    with pytest.raises(DatasetError, match="row 0 of gpt-oss-120b/accuracy has the ground truth"):
        scripted_answers(dataset([row]), {row[0]: 1.0}, seed=0, answer_tokens=4)


def test_the_file_has_the_arrays_that_the_scripted_engine_reads(tmp_path: Path) -> None:
    made = scripted_answers(dataset(ROWS), {"aime25": 0.5}, seed=0, answer_tokens=4)
    made.write(tmp_path / "answers.npz")
    with np.load(tmp_path / "answers.npz") as arrays:
        assert sorted(arrays.files) == ["ends", "tokens"]
        assert arrays["tokens"].dtype == np.int32
        assert arrays["ends"].dtype == np.int64
        assert np.array_equal(arrays["tokens"], made.tokens)
        assert np.array_equal(arrays["ends"], made.ends)
