from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.benchmarks.qwen3_6_27b.bfcl.figures import Figures
from harness.benchmarks.qwen3_6_27b.bfcl.subsets import SUBSETS


def of(**subsets: tuple[int, int]) -> Figures:
    """The figures of so many right ones of so many, by subset."""
    return Figures.of((name, number < right) for name, (right, total) in subsets.items() for number in range(total))


def test_the_simple_subsets_are_one_in_their_category() -> None:
    figures = of(simple_python=(3, 4), simple_java=(1, 2), simple_javascript=(1, 4), multiple=(1, 1))
    assert figures.categories == {"non_live": 75.0}  # ((75 + 50 + 25) / 3 + 100) / 2
    assert figures.overall == 54.55  # 6 of 11
    assert figures.normalised == 75.0
    assert figures.subsets == {"multiple": 100, "simple_java": 50, "simple_javascript": 25, "simple_python": 75}
    assert figures.samples == 11


def test_live_is_weighted_by_samples_and_hallucination_is_not() -> None:
    figures = of(live_simple=(0, 1), live_multiple=(3, 3), irrelevance=(0, 1), live_irrelevance=(3, 3))
    assert figures.categories == {"live": 75.0, "hallucination": 50.0}
    assert figures.normalised == 62.5


def test_figures_under_the_references_names() -> None:
    figures = of(irrelevance=(2, 3))
    assert figures.as_json() == {
        "overall_accuracy": 66.67,
        "normalized_single_turn_score": 66.67,
        "category_scores": {"hallucination": 66.67},
        "subset_scores": {"irrelevance": 66.67},
        "total_samples": 3,
    }


def test_nothing_makes_no_score() -> None:
    with pytest.raises(ValueError, match="no sample"):
        Figures.of([])


@given(st.lists(st.tuples(st.sampled_from(SUBSETS), st.booleans()), min_size=1))
def test_figures_are_percentages(verdicts: list[tuple[str, bool]]) -> None:
    figures = Figures.of(verdicts)
    right = [right for _, right in verdicts]
    assert figures.overall == round(100 * sum(right) / len(right), 2)
    for value in (figures.normalised, *figures.categories.values(), *figures.subsets.values()):
        assert 0 <= value <= 100
    if all(right):
        assert figures.normalised == figures.overall == 100
