from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from harness.benchmarks.base import Score, SubsetScore
from harness.benchmarks.scores import table
from harness.report.book.accuracy_texts import scores_of, subsets_of
from harness.report.book.content import Subset
from harness.rules import load

ROUND = load("v6.1")
REFERENCE = """Per-Dataset Breakdown:
Dataset                    Correct    Total  Repeats      Score   Accuracy
--------------------------------------------------------------------------
aime25                         195      240        8      24.38     81.25%
gpqa_diamond                   742      990        5     148.40     74.95%
==========================================================================
Printing for submission_checker:
'exact_match': 83.043
"""


def test_the_table_of_the_references_evaluator() -> None:
    assert subsets_of(REFERENCE) == (
        Subset("aime25", 240, 195, 45, 0, 0, None),
        Subset("gpqa_diamond", 990, 742, 248, 0, 0, None),
    )


def test_the_table_of_this_harness() -> None:
    subset = SubsetScore("aime25", 8, correct=5, wrong=2, failed=1, unscored=2, output_tokens=38)
    score = Score("exact_match", None, (subset,), "us", stand_in=False, whole=True)
    assert subsets_of("\n".join(table(score))) == (Subset("aime25", 10, 5, 2, 1, 2, 4.22),)
    assert subsets_of("aime25 10 8 5 2 1 1 4.25") == ()  # they do not add up
    assert subsets_of("aime25 10 8 5 2 1 2 -") == (Subset("aime25", 10, 5, 2, 1, 2, None),)


def test_more_right_answers_than_samples_are_no_table() -> None:
    assert subsets_of("aime25 241 240 8 24.38 81.25%") == ()


def test_figures_by_the_rounds_keys() -> None:
    rules = ROUND.benchmark("gpt-oss-120b")
    assert scores_of(REFERENCE, rules, rules.accuracy_target) == {"exact_match": 83.043}
    assert scores_of("no number", rules, rules.accuracy_target) == {}
    agent = ROUND.benchmark("qwen3.6-27b")
    text = "mAP=86.1\nnormalized_single_turn_score: 87.2\nnormalized_single_turn_score: 85.5\n"
    target = agent.target("SingleStream")
    assert scores_of(text, agent, target) == {target.value.key: 86.1, "normalized_single_turn_score": 85.5}


@given(
    st.text() | st.lists(st.sampled_from(["aime25", "1", "240", "8", "2.5", "3%", "-", "\n", "x" * 40])).map(" ".join)
)
def test_any_text_has_subsets_that_add_up(text: str) -> None:
    for subset in subsets_of(text):
        assert subset.correct + subset.wrong + subset.failed + subset.unscored == subset.samples
    rules = ROUND.benchmark("gpt-oss-120b")
    scores_of(text, rules, rules.accuracy_target)
