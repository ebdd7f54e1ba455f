from __future__ import annotations

import pytest

from harness.benchmarks.qwen3_6_27b.bfcl.sampling import count, sample
from harness.benchmarks.qwen3_6_27b.bfcl.subsets import CATEGORY_OF, SUBSETS
from harness.rules.benchmark import BfclSampling
from tests.benchmarks.qwen3_6_27b.bfcl.made import RULES

RULE = BfclSampling(category_sample_pct={"non_live": 50, "live": 10, "hallucination": 1}, subset_floor=3)
PUBLISHED = {
    "simple_python": 400, "simple_java": 100, "simple_javascript": 50, "multiple": 200, "parallel": 200,
    "parallel_multiple": 200, "live_simple": 258, "live_multiple": 1053, "live_parallel": 16,
    "live_parallel_multiple": 24, "irrelevance": 240, "live_irrelevance": 884,
}  # fmt: skip
"""Rows of each subset in bfcl-eval 2026.3.23."""


@pytest.mark.parametrize(
    ("total", "percent", "floor", "wanted"),
    [(400, 62, 25, 248), (50, 62, 25, 31), (258, 10, 25, 25), (1053, 10, 25, 105), (24, 10, 25, 24), (26, 1, 25, 1)],
)
def test_a_subset_is_asked_in_part_but_for_a_small_one(total: int, percent: int, floor: int, wanted: int) -> None:
    assert count(total, percent, floor) == wanted


def test_the_first_rows_are_asked_in_the_order_of_the_subsets_names() -> None:
    rows = {subset: [f"{subset}_{i}" for i in range(10 if subset.startswith("live") else 4)] for subset in SUBSETS}
    asked = sample(rows, RULE)
    assert asked[0] == "irrelevance_0"
    assert asked[-2:] == ["simple_python_0", "simple_python_1"]
    assert sum(each.startswith("live_multiple_") for each in asked) == 1


def test_the_rounds_sampling_asks_what_the_round_counts() -> None:
    rows = {subset: [subset] * total for subset, total in PUBLISHED.items()}
    asked = sample(rows, RULES.accuracy_sampling.value)
    assert len(asked) == RULES.datasets["accuracy"].value
    for category, wanted in RULES.accuracy_subsets.value.items():
        assert sum(CATEGORY_OF[subset] == category for subset in asked) == wanted.samples


def test_a_subset_that_is_not_there_is_no_empty_one() -> None:
    with pytest.raises(KeyError):
        sample({"irrelevance": []}, RULE)
