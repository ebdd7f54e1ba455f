from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.benchmarks.base import Answer, Score, SubsetScore
from harness.benchmarks.gpt_oss_120b import vocab
from harness.benchmarks.gpt_oss_120b.judge import Ending, Judge, Limits, Submission, TestsFolder, Trial
from harness.benchmarks.gpt_oss_120b.score import accuracy_text, score
from harness.errors import RunBroke
from tests.benchmarks.gpt_oss_120b.made import dataset

REPEATS = {"aime25": 8, "gpqa_diamond": 5, "livecodebench_v6": 3}
REAL = Path(__file__).parents[4] / "shared" / "data" / "real_v6.0" / "closed"
# What the submission checker looks for; it searches each line.
METRIC_LINE = re.compile(r"'exact_match':\s([\d.]+)")


def answers(texts: Sequence[str]) -> list[Answer]:
    return [(row, np.array(vocab.encode(text), np.int32)) for row, text in enumerate(texts)]


ROWS = [
    ("aime25", "7"),
    ("aime25", "7"),
    ("gpqa_diamond", "B"),
    ("gpqa_diamond", "B"),
    ("gpqa_diamond", "B"),
    ("livecodebench_v6", "q"),
]
TEXTS = [r"\boxed{7}", r"\boxed{8}", "Answer: B", "Answer: A", "", "print"]


@pytest.mark.harmony
def test_each_row_is_in_exactly_one_state() -> None:
    found = score(answers(TEXTS), dataset(ROWS), key="exact_match", repeats=REPEATS, failed={1, 4})
    aime, gpqa, code = found.subsets
    assert (aime.name, aime.correct, aime.wrong, aime.failed, aime.unscored) == ("aime25", 1, 0, 1, 0)
    assert (gpqa.correct, gpqa.wrong, gpqa.failed, gpqa.unscored) == (1, 1, 1, 0)
    assert (code.correct, code.wrong, code.failed, code.unscored) == (0, 0, 0, 1)
    assert (found.samples, found.failed, found.unscored, found.value) == (6, 2, 1, None)


@pytest.mark.harmony
def test_a_failed_row_is_failed_whatever_was_logged_for_it() -> None:
    log = answers([r"\boxed{7}", r"\boxed{7}"])
    found = score(log, dataset([("aime25", "7")] * 2), key="k", repeats=REPEATS, failed={0})
    assert (found.subsets[0].correct, found.subsets[0].failed) == (1, 1)
    assert found.subsets[0].output_tokens == len(log[1][1])


@pytest.mark.harmony
@pytest.mark.parametrize("ids", [[], [-1, -1], [5, vocab.VOCAB_SIZE]])
@pytest.mark.parametrize("subset", ["aime25", "livecodebench_v6"])
def test_what_is_no_text_is_no_answer(ids: list[int], subset: str) -> None:
    log = [(0, np.array(ids, np.int32))]
    found = score(log, dataset([(subset, "7")]), key="k", repeats=REPEATS)
    assert (found.failed, found.value, found.subsets[0].mean_output_tokens) == (1, None, None)


@pytest.mark.harmony
def test_mean_output_tokens_are_those_of_the_answers() -> None:
    log = [(0, np.full(10, 5, np.int32)), (1, np.full(20, 5, np.int32)), (2, np.full(99, 5, np.int32))]
    found = score(log, dataset([("livecodebench_v6", "q")] * 3), key="k", repeats=REPEATS, failed={2})
    assert found.subsets[0].mean_output_tokens == 15


@pytest.mark.harmony
@settings(max_examples=40, deadline=None)
@given(st.permutations(range(6)))
def test_the_order_of_the_log_does_not_matter(order: list[int]) -> None:
    log = answers(TEXTS)
    data = dataset(ROWS)
    wanted = score(log, data, key="k", repeats=REPEATS)
    assert score([log[i] for i in order], data, key="k", repeats=REPEATS) == wanted


@pytest.mark.harmony
@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([0, 1, 1], "row 1 is answered twice"),
        ([0, 3], "an answer to row 3"),
        ([0, -1], "an answer to row -1"),
        ([1], r"2 of 3 rows have no answer: 0, 2"),
        ([], r"3 of 3 rows have no answer: 0, 1, 2"),
    ],
)
def test_rows_that_are_missing_doubled_or_unknown(rows: list[int], said: str) -> None:
    ids = np.array([5, 6], np.int32)
    with pytest.raises(RunBroke, match=rf"(?s){said}.*where: log\.json"):
        score([(row, ids) for row in rows], dataset([("aime25", "7")] * 3), key="k", repeats={}, where="log.json")


def test_many_missing_rows_are_counted_and_a_few_named() -> None:
    with pytest.raises(RunBroke, match=r"100 of 100 rows have no answer: 0, 1, 2, 3, 4, \.\.\."):
        score([], dataset([("aime25", "7")] * 100), key="k", repeats={})


class Told(Judge):
    """A judge that was told how programs come out."""

    endings: dict[str, Ending]

    @classmethod
    def of(cls, endings: dict[str, Ending]) -> Told:
        cls.endings = endings
        return cls(TestsFolder(Path()), Limits(test_s=1))

    def judge(self, submissions: Collection[Submission]) -> dict[Submission, Trial]:
        return {s: Trial(self.endings[s.code], 1, f"{s.code} because") for s in submissions}


CODE = [("livecodebench_v6", "p")] * 7
PROGRAMS = [
    *("```python\nright\n```", "```python\nwrong\n```", "```python\nloop\n```", "```python\nstuck\n```"),
    *("no program", "", "```python\nright\n```"),
]
ENDINGS = {
    "right": Ending.PASSED,
    "wrong": Ending.WRONG_ANSWER,
    "loop": Ending.TOO_LONG,
    "stuck": Ending.NOT_JUDGED,
}


@pytest.mark.harmony
def test_a_program_that_was_not_judged_is_neither_wrong_nor_failed() -> None:
    found = score(
        answers(PROGRAMS), dataset(CODE), key="exact_match", repeats=REPEATS, failed={6}, judge=Told.of(ENDINGS)
    )
    (code,) = found.subsets
    assert (code.correct, code.wrong, code.failed, code.unscored) == (1, 3, 2, 1)
    assert found.value is None
    assert found.notes == ("1 programs are unscored: stuck because",)
    assert "1 programs are unscored: stuck because\n" in accuracy_text(found)
    assert "exact_match" not in accuracy_text(found)


@pytest.mark.harmony
def test_with_all_three_subsets_scored_there_is_a_value_and_the_line_of_the_metric() -> None:
    rows, texts = [*ROWS[:5], *CODE[:3]], [*TEXTS[:4], "Answer: A", *PROGRAMS[:3]]
    found = score(answers(texts), dataset(rows), key="exact_match", repeats=REPEATS, judge=Told.of(ENDINGS))
    assert found.value == pytest.approx((1 / 8 + 1 / 5 + 1 / 3) / (2 / 8 + 3 / 5 + 3 / 3) * 100)
    assert len(METRIC_LINE.findall(accuracy_text(found))) == 1
    tokens = [len(ids) for _, ids in answers(texts)]
    assert found.subsets[2].mean_output_tokens == sum(tokens[5:]) / 3


@pytest.mark.harmony
def test_without_a_judge_programs_are_unscored_and_it_says_why() -> None:
    found = score(answers(PROGRAMS[:5]), dataset(CODE[:5]), key="k", repeats=REPEATS, judge="no tests here")
    assert (found.subsets[0].unscored, found.subsets[0].wrong) == (5, 0)
    assert "LiveCodeBench is unscored: no tests here" in accuracy_text(found)


@pytest.mark.harmony
def test_a_program_without_a_problem_is_unscored() -> None:
    found = score(answers(PROGRAMS[:1]), dataset([("livecodebench_v6", None)]), key="k", repeats={}, judge=Told.of({}))
    assert found.unscored == 1


def full(aime: int, gpqa: int, code: int) -> Score:
    """A score with these rows right of 240, 990 and 3,165, the value taken from grading such rows."""
    rows, texts = [], []
    for subset, truth, right, total in (("aime25", "7", aime, 240), ("gpqa_diamond", "B", gpqa, 990)):
        rows += [(subset, truth)] * total
        good, bad = (r"\boxed{7}", r"\boxed{8}") if truth == "7" else ("B", "C")
        texts += [good] * right + [bad] * (total - right)
    rows += [("livecodebench_v6", "p")] * 3165
    texts += ["```python\nright\n```"] * code + ["```python\nwrong\n```"] * (3165 - code)
    endings = {"right": Ending.PASSED, "wrong": Ending.WRONG_ANSWER}
    return score(answers(texts), dataset(rows), key="exact_match", repeats=REPEATS, judge=Told.of(endings))


@pytest.mark.harmony
def test_the_value_is_that_of_a_published_result() -> None:
    # CoreWeave, v6.0, closed, gpt-oss-120b Offline: 200/8 + 747/5 + 2705/3 of 1283.
    found = full(200, 747, 2705)
    assert found.value is not None
    assert f"{found.value:.3f}" == "83.871"
    assert accuracy_text(found).splitlines()[-1] == "'exact_match': 83.871"


@pytest.mark.harmony
def test_the_text_without_a_value_has_no_line_of_the_metric() -> None:
    found = score(answers(TEXTS), dataset(ROWS, stand_in=True), key="exact_match", repeats=REPEATS, failed={4})
    text = accuracy_text(found)
    lines = text.splitlines()
    assert lines[0] == "Scored by mlperf-inference-harness, not by the reference's evaluator."
    assert "stand-in" in lines[1]
    assert lines[-2:] == ["failed: 1", "unscored: 1"]
    assert "exact_match" not in text
    assert text.endswith("\n")
    table = {line.split()[0]: line.split()[1:7] for line in lines[3:6]}
    assert table["gpqa_diamond"] == ["3", "5", "1", "1", "1", "0"]
    assert table["livecodebench_v6"] == ["1", "3", "0", "0", "0", "1"]


def test_the_line_of_the_metric_is_the_one_the_checker_finds() -> None:
    subset = SubsetScore("aime25", 8, correct=3, wrong=1, failed=0, unscored=0, output_tokens=8)
    text = accuracy_text(Score("exact_match", 83.13, (subset,), "us", stand_in=False))
    assert METRIC_LINE.findall(text) == ["83.130"]
    assert "stand-in" not in text


@pytest.mark.harmony
def test_the_first_rows_have_no_value_though_all_are_graded() -> None:
    head = dataset(ROWS).head(4)
    found = score(answers(TEXTS[:4]), head, key="exact_match", repeats=REPEATS)
    assert (found.samples, found.failed, found.unscored) == (4, 0, 0)
    assert found.value is None
    text = accuracy_text(found)
    assert "Only 4 rows of the data set were asked" in text
    assert "exact_match" not in text


@pytest.mark.harmony
def test_failures_may_be_found_out_while_the_log_is_read() -> None:
    failed: set[int] = set()

    def log() -> Iterator[Answer]:
        for row, ids in answers([r"\boxed{7}"] * 3):
            if row == 1:
                failed.add(row)
            yield row, ids

    found = score(log(), dataset([("aime25", "7")] * 3), key="k", repeats=REPEATS, failed=failed)
    assert (found.subsets[0].correct, found.failed) == (2, 1)


def test_a_score_of_a_part_has_no_value() -> None:
    subset = SubsetScore("aime25", 8, correct=3, wrong=0, failed=0, unscored=1, output_tokens=8)
    with pytest.raises(ValueError, match="1 unscored"):
        Score("exact_match", 75.0, (subset,), "us", stand_in=False)


@pytest.mark.shared
@pytest.mark.harmony
@pytest.mark.skipif(not REAL.exists(), reason="the shared data folder is not beside the repository")
def test_published_heads_of_logs_decode() -> None:
    """The first answer of a published log, as far as truncation left it, begins with the channel token.

    At temperature 1 even the channel's name may be misspelled: one of them begins ``<|channel|>#analysis``.
    """
    logs = sorted(REAL.glob("*/results/*/gpt-oss-120b/*/accuracy/mlperf_log_accuracy.json"))
    assert logs
    for log in logs:
        head = re.search(r'"data" : "((?:[0-9A-F]{8})+)', log.read_text(encoding="utf-8"))
        assert head is not None
        text = vocab.decode(np.frombuffer(bytes.fromhex(head[1]), "<i4"))
        assert isinstance(text, str)
        assert text.startswith("<|channel|>")
