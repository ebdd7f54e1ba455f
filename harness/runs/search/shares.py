"""How the share of answers over a limit goes with the rate, from all runs together.

Its logarithm is about linear in that of the rate. What is over a limit comes in bursts, so a run counts as much as it
has bursts, not queries.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

_MOST: Final = 0.3
"""A larger share is that of a queue that overran: it goes by how long the run was."""
_OF_A_BURST: Final = 2.0
"""Variance of a burst's length beside its mean's square, and one of their number: bursts are about geometric."""


@dataclass(frozen=True, slots=True)
class Point:
    """A run at a rate: the share of its queries over a limit, and in how many bursts they came."""

    rate: float
    share: float
    bursts: int

    @property
    def tells(self) -> bool:
        """Whether it says anything of the line."""
        return self.bursts > 0 and 0 < self.share < _MOST


@dataclass(frozen=True, slots=True)
class Estimate:
    """A rate, and its standard error as a share of it."""

    rate: float
    error: float


@dataclass(frozen=True, slots=True)
class Line:
    """The logarithm of the share over that of the rate, through ``(rate, share)`` with a ``slope`` above 0.

    ``weight`` are the bursts of all points, ``spread`` how far they lie apart, each as often as it has bursts.
    """

    rate: float
    share: float
    slope: float
    weight: float
    spread: float

    @property
    def slope_error(self) -> float:
        """The standard error of the slope, as a share of it."""
        return math.sqrt(_OF_A_BURST / self.spread) / self.slope

    def at(self, share: float) -> Estimate:
        """The rate at which a share would be over."""
        ahead = math.log(share / self.share) / self.slope
        error = math.sqrt(_OF_A_BURST * (1 / self.weight + ahead**2 / self.spread)) / self.slope
        return Estimate(self.rate * math.exp(ahead), error)


def line(points: Iterable[Point]) -> Line | None:
    """The line that fits; None where fewer than two rates tell, or the share falls with the rate."""
    told = [point for point in points if point.tells]
    weight = float(sum(point.bursts for point in told))
    if not weight:
        return None
    x = _mean([math.log(p.rate) for p in told], told, weight)
    y = _mean([math.log(p.share) for p in told], told, weight)
    spread = sum(p.bursts * (math.log(p.rate) - x) ** 2 for p in told)
    rise = sum(p.bursts * (math.log(p.rate) - x) * (math.log(p.share) - y) for p in told)
    if spread <= 0 or rise <= 0:
        return None
    return Line(math.exp(x), math.exp(y), rise / spread, weight, spread)


def _mean(values: Sequence[float], points: Sequence[Point], weight: float) -> float:
    return sum(value * point.bursts for value, point in zip(values, points, strict=True)) / weight
