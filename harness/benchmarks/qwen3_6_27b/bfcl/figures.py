"""What the verdicts come to, calculated and rounded as the reference does, so that the digits agree.

Source: mlcommons/endpoints evaluation/bfcl_v4_scorer.py (its breakdown).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from harness.benchmarks.qwen3_6_27b.bfcl.subsets import CATEGORIES, LIVE, NON_LIVE, SIMPLE

OVERALL = "overall_accuracy"
NORMALISED = "normalized_single_turn_score"


@dataclass(frozen=True, slots=True)
class Figures:
    """All in percent with two digits after the point; ``categories`` and ``subsets`` by name.

    ``overall`` is the mean over all samples, ``normalised`` the mean of the categories.
    """

    overall: float
    normalised: float
    categories: Mapping[str, float]
    subsets: Mapping[str, float]
    samples: int

    @classmethod
    def of(cls, verdicts: Iterable[tuple[str, bool]]) -> Figures:
        """From the subset of each sample and whether it is right. ValueError where there is none."""
        by_subset: dict[str, list[bool]] = {}
        for subset, right in verdicts:
            by_subset.setdefault(subset, []).append(right)
        if not by_subset:
            raise ValueError("no sample, and so no score")
        everything = [right for rights in by_subset.values() for right in rights]
        categories = {
            name: _category(name, [subset for subset in subsets if subset in by_subset], by_subset)
            for name, subsets in CATEGORIES.items()
            if any(subset in by_subset for subset in subsets)
        }
        return cls(
            overall=_percent(_mean(everything)),
            normalised=_percent(_mean(list(categories.values()))),
            categories={name: _percent(score) for name, score in categories.items()},
            subsets={name: _percent(_mean(by_subset[name])) for name in sorted(by_subset)},
            samples=len(everything),
        )

    def by_key(self) -> dict[str, float]:
        """The two figures that the round sets targets for, by their names there."""
        return {OVERALL: self.overall, NORMALISED: self.normalised}

    def as_json(self) -> dict[str, object]:
        """The figures under the reference's names."""
        return {
            **self.by_key(),
            "category_scores": dict(self.categories),
            "subset_scores": dict(self.subsets),
            "total_samples": self.samples,
        }


def _category(name: str, present: Sequence[str], by_subset: Mapping[str, Sequence[bool]]) -> float:
    """Of live the mean over samples; of the others that over subsets, in which the simple ones of non_live are one."""
    means = {subset: _mean(by_subset[subset]) for subset in present}
    if name == LIVE:
        weighted = sum(means[subset] * len(by_subset[subset]) for subset in present)
        return weighted / sum(len(by_subset[subset]) for subset in present)
    if name != NON_LIVE:
        return _mean(list(means.values()))
    simple = [means[subset] for subset in SIMPLE if subset in means]
    others = [mean for subset, mean in means.items() if subset not in SIMPLE]
    return _mean(([_mean(simple)] if simple else []) + others)


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values))


def _percent(fraction: float) -> float:
    return round(fraction * 100, 2)
