"""LoadGen's early stopping: how many queries it takes to believe a percentile, and how many of them may be over it.

A run of ``queries`` with ``over`` of them over the limit passes where so few would be over by chance in at most 1 % of
runs whose true share within the limit is only ``percentile``: the sum of a binomial distribution's lower tail. The
tail is summed here as LoadGen sums it (loadgen/early_stopping.cc: a regularized beta function by a hypergeometric
series that ends at the same tolerance), so that both say the same number, also where it is close.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final, TypeVar

Number = TypeVar("Number", int, float)

CONFIDENCE: Final = 0.99
"""How sure LoadGen wants to be; a constant of its program, in no configuration (loadgen/results.cc:158)."""
TOLERANCE: Final = 0.0
"""How far below the percentile the share may truly be (loadgen/results.cc:159)."""
_SERIES_END: Final = 1.0 / (1 << 33)
"""The term at which LoadGen ends the series (loadgen/early_stopping.cc, hypergeometric_2F1_A1)."""
_TOO_NEAR: Final = 1e-4
"""A share over the limit that is so near to what the percentile leaves needs more than 10^10 queries at p99."""


def passes(queries: int, over: int, percentile: float, confidence: float = CONFIDENCE) -> bool:
    """Whether early stopping is met by ``queries`` of which ``over`` are over the limit.

    Args:
        queries: how many were issued, at least 0.
        over: how many of them took longer than the limit, at least 0.
        percentile: the share that has to be within it, over 0 and below 1 (0.99 for a p99).
        confidence: how sure to be; LoadGen's is 0.99.

    Raises:
        ValueError: a number out of its range.

    """
    _in_range(queries, over, percentile, confidence)
    share = percentile - TOLERANCE
    within = queries - over
    # As many over as the share leaves, or more: half of all such runs have fewer, and no series need say so.
    if within <= 0 or within < over * share / (1 - share):
        return False
    return _chance(within, over, share) < 1 - confidence


def min_queries(over: int, percentile: float, confidence: float = CONFIDENCE) -> int:
    """The fewest queries with which early stopping is met while ``over`` of them are over the limit.

    Arguments and errors as of :func:`passes`; 459 for none at p99, 662 for one.
    """
    _in_range(0, over, percentile, confidence)
    enough = over + 1
    while not passes(enough, over, percentile, confidence):
        enough *= 2
    return _first(over, enough, lambda queries: passes(queries, over, percentile, confidence))


def allowed_over(queries: int, percentile: float, confidence: float = CONFIDENCE) -> int:
    """The most of ``queries`` that may be over the limit with early stopping still met; -1 where not even none may.

    Arguments and errors as of :func:`passes`.
    """
    _in_range(queries, 0, percentile, confidence)
    return _first(-1, queries, lambda over: not passes(queries, over, percentile, confidence)) - 1


def min_queries_at_share(share_over: float, percentile: float, confidence: float = CONFIDENCE) -> int | None:
    """How many queries a run needs to meet early stopping with this share of them over the limit, whole queries up.

    Args:
        share_over: the share over the limit, 0 to 1.
        percentile: as of :func:`passes`.
        confidence: as of :func:`passes`.

    Returns:
        The number; None where no number is enough, or none that a run could have: the share is what the percentile
        leaves, or more, or nearer to it than one part in ten thousand.

    Raises:
        ValueError: a number out of its range.

    """
    _in_range(0, 0, percentile, confidence)
    if not 0 <= share_over <= 1:
        raise ValueError(f"share over the limit {share_over}, which is not of 0 to 1")
    for few in (0, 1):
        if share_over * (least := min_queries(few, percentile, confidence)) <= few:
            return least
    if share_over >= (1 - percentile + TOLERANCE) * (1 - _TOO_NEAR):
        return None

    def enough(over: int) -> bool:
        """With the most queries of which so many are over."""
        return passes(_most(over, share_over), over, percentile, confidence)

    high = 1
    while not enough(high):
        high *= 2
    over = _first(0, high, enough)
    return max(min_queries(over, percentile, confidence), _most(over - 1, share_over) + 1)


def estimate(sorted_values: Sequence[Number], percentile: float, confidence: float = CONFIDENCE) -> Number | None:
    """LoadGen's early-stopping estimate of a percentile, as it makes it for SingleStream and MultiStream.

    Args:
        sorted_values: all values of the run, the smallest first.
        percentile: which one, over 0 and below 1.
        confidence: how sure to be; LoadGen's is 0.99.

    Returns:
        The largest value after so many have been left out as may be over; None where they are too few for one.

    """
    allowed = allowed_over(len(sorted_values), percentile, confidence)
    return sorted_values[len(sorted_values) - allowed] if allowed >= 1 else None


def _most(over: int, share: float) -> int:
    # 8 / 0.008 is a little less than 1000: a rounding error is no query.
    return math.floor(round(over / share, 6))


def _first(low: int, high: int, holds: Callable[[int], bool]) -> int:
    """The first number above ``low`` for which ``holds``, as it does from there on; ``high + 1`` where none does."""
    while low < high:
        middle = (low + high + 1) // 2
        if holds(middle):
            high = middle - 1
        else:
            low = middle
    return low + 1


def _chance(within: int, over: int, share: float) -> float:
    """How often ``over`` or fewer are over the limit where each is within it with probability ``share``."""
    log_beta = math.lgamma(within) + math.lgamma(1 + over) - math.lgamma(within + 1 + over)
    log_head = within * math.log(share) + over * math.log1p(-share) - log_beta
    return math.exp(log_head) / within * _series(over, 1 + within, share / (1 - share))


def _series(over: int, c: int, odds: float) -> float:
    term = total = 1.0
    for i in range(over):
        term *= (over - i) * odds / (c + i)
        total += term
        if term <= _SERIES_END:
            break
    return total


def _in_range(queries: int, over: int, percentile: float, confidence: float) -> None:
    for name, number in (("queries", queries), ("over the limit", over)):
        if number < 0:
            raise ValueError(f"{name}: {number}, below 0")
    for name, share in (("percentile", percentile), ("confidence", confidence)):
        if not 0 < share < 1:
            raise ValueError(f"{name} {share}, which is not between 0 and 1")
