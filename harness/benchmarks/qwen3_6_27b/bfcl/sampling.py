"""Which rows of BFCL are asked: the first of each subset, as many as the round says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

from harness.benchmarks.qwen3_6_27b.bfcl.subsets import CATEGORY_OF, SUBSETS
from harness.rules.benchmark import BfclSampling

T = TypeVar("T")


def count(total: int, percent: int, floor: int) -> int:
    """How many rows of a subset are asked: all where there are at most ``floor``, else the share, at least one."""
    return total if total <= floor else max(1, total * percent // 100)


def sample(rows: Mapping[str, Sequence[T]], rule: BfclSampling) -> list[T]:
    """The rows that are asked, subset by subset in the order of their names. KeyError where a subset is not there."""
    asked: list[T] = []
    for subset in SUBSETS:
        percent = rule.category_sample_pct[CATEGORY_OF[subset]]
        asked += rows[subset][: count(len(rows[subset]), percent, rule.subset_floor)]
    return asked
