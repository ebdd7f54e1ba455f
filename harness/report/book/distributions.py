"""Values to how they lie: a histogram and quantiles, however many the values are; and the same of percentiles alone."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from harness.ledger.sample_times import Float64, Values, at_share
from harness.report.book.content import Distribution, Limit, Missing, Unit

MAX_QUANTILES: Final = 300
MAX_BINS: Final = 120
_FEWEST_BINS: Final = 12
_LOG_SPREAD: Final = 30
"""From so many times the least value on a linear scale would show little but its last bins."""
_EXACT: Final = 2**53
"""Up to here every whole number is a float."""
_WIDTH_OF_ONE: Final = 0.01
"""Of the value, where all values are one."""
_SHARES: Final = tuple(
    float(share)
    for share in np.unique(
        np.round(
            np.concatenate(
                [np.linspace(0, 0.9, 91), np.linspace(0.9, 0.99, 91), np.linspace(0.99, 0.999, 64), [0.9995, 0.9999, 1]]
            ),
            9,
        )
    )
)
"""Shares at which many values are told: limits are of percentiles near 1, so that is where they are densest."""
_NAMED: Final = (0.5, 0.9, 0.99)


@dataclass(frozen=True, slots=True)
class Named:
    """What a figure is called, in which unit, what it is held against, and what is to be known of it."""

    key: str
    title: str
    unit: Unit
    limit: Limit | None = None
    about: str = ""

    def missing(self, why: str) -> Missing:
        """The figure that there is not."""
        return Missing(self.key, self.title, why)


def distribution(named: Named, values: Values, *, per_unit: float = 1.0, whole: bool = False) -> Distribution:
    """How values lie, 1-D and at least one. They are divided by ``per_unit``: 1e6 makes ms of nanoseconds.

    ``whole`` ones (tokens) have bins of whole numbers. ValueError of no values, or where one is not finite.
    """
    if not len(values):
        raise ValueError(f"{named.key}: no values")
    ordered: Float64 = np.sort(values) / per_unit
    if not (math.isfinite(ordered[0]) and math.isfinite(ordered[-1])):
        raise ValueError(f"{named.key}: a value that is not finite")
    edges, log = _edges(float(ordered[0]), float(ordered[-1]), _bins(len(ordered)), whole=whole)
    p50, p90, p99 = (at_share(ordered, share) for share in _NAMED)
    return Distribution(
        key=named.key,
        title=named.title,
        unit=named.unit,
        count=len(ordered),
        mean=min(max(float(ordered.mean()), float(ordered[0])), float(ordered[-1])),  # sums round
        p50=p50,
        p90=p90,
        p99=p99,
        max=float(ordered[-1]),
        quantiles=_quantiles(ordered),
        edges=tuple(edges.tolist()),
        counts=tuple(_counts(ordered, edges).tolist()),
        log=log,
        limit=named.limit,
        about=named.about,
    )


def of_percentiles(
    named: Named,
    percentiles: Mapping[float, float],
    count: int,
    mean: float,
    *,
    edges: Sequence[float] = (),
    counts: Sequence[int] = (),
    log: bool = False,
) -> Distribution | Missing:
    """How values lie of which somebody else tells percentiles (0 to 100: their value), in ``named.unit``, and possibly
    a histogram. 50, 90 and 99 must be among them; Missing says so, and where they do not rise. 0 and 100 are the ends.
    """
    told = sorted((percent / 100, value) for percent, value in percentiles.items())
    known = dict(told)
    if lacking := [f"{100 * share:g}" for share in _NAMED if share not in known]:
        return named.missing(f"there is no percentile {', '.join(lacking)}")
    if any(one > other for (_, one), (_, other) in itertools.pairwise(told)):
        return named.missing("the percentiles that are told do not rise")
    if not all(math.isfinite(value) for value in (*known.values(), mean)):
        return named.missing("a percentile that is told is no number")
    if count < 1 or (counts and sum(counts) != count):
        return named.missing(f"{count} values, and a histogram of {sum(counts)}")
    p50, p90, p99 = (known[share] for share in _NAMED)
    return Distribution(
        key=named.key,
        title=named.title,
        unit=named.unit,
        count=count,
        mean=mean,
        p50=p50,
        p90=p90,
        p99=p99,
        max=told[-1][1],
        quantiles=tuple(told),
        edges=tuple(edges),
        counts=tuple(counts),
        log=log,
        limit=named.limit,
        about=named.about,
    )


def _quantiles(ordered: Float64) -> tuple[tuple[float, float], ...]:
    """Few values all, of many those that tell most."""
    count = len(ordered)
    if count >= MAX_QUANTILES:
        return tuple((share, at_share(ordered, share)) for share in _SHARES)
    return (*((at / count, value) for at, value in enumerate(ordered.tolist())), (1.0, float(ordered[-1])))


def _bins(count: int) -> int:
    """As many as have some values each."""
    return min(max(2 * math.isqrt(count), _FEWEST_BINS), MAX_BINS)


def _edges(least: float, most: float, bins: int, *, whole: bool) -> tuple[Float64, bool]:
    """The bins' edges, and whether they are logarithmic. The first is the least value, none is above the last."""
    log = least > 0 and most >= _LOG_SPREAD * least
    if whole and most < _EXACT:
        return _whole_edges(int(least), int(most), bins, log=log), log
    if least == most:
        return np.array([least, most + (abs(most) * _WIDTH_OF_ONE or 1.0)]), False
    edges = np.geomspace(least, most, bins + 1) if log else np.linspace(least, most, bins + 1)
    edges = np.clip(edges, least, most)  # geometric ones round
    edges[0], edges[-1] = least, most
    return np.unique(edges), log


def _whole_edges(least: int, most: int, bins: int, *, log: bool) -> Float64:
    """Of whole numbers: a bin holds those from its edge up to the next, which is not in it."""
    beyond = most + 1
    if log:
        return np.unique(np.floor(np.geomspace(least, beyond, bins + 1) + 0.5))
    width = -(-(beyond - least) // bins)
    return np.arange(least, beyond + width, width, dtype=np.float64)


def _counts(ordered: Float64, edges: Float64) -> Values:
    """How many of sorted values lie from each edge up to the next; the last edge is in the last bin."""
    inner = np.searchsorted(ordered, edges[1:-1], side="left")
    return np.diff(inner, prepend=0, append=len(ordered))
