"""Histograms and quantiles say of values what the values are."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from harness.ledger.sample_times import at_share
from harness.report.book.content import Distribution, Limit, Missing
from harness.report.book.distributions import MAX_BINS, MAX_QUANTILES, Named, distribution, of_percentiles

NAMED = Named("latency", "Latency", "ms", Limit(99.0, 5.0, inclusive=False, source="a rule"), "of answers")
floats = st.floats(min_value=-1e15, max_value=1e15, allow_nan=False, width=64)
times = st.integers(min_value=0, max_value=2**53)


def check(made: Distribution, values: list[float]) -> None:
    """What holds of any distribution of these values."""
    ordered = sorted(values)
    assert made.count == sum(made.counts) == len(values)
    assert len(made.quantiles) <= MAX_QUANTILES + 1
    assert len(made.counts) <= MAX_BINS
    assert made.quantiles[0] == (0.0, ordered[0])
    assert made.quantiles[-1] == (1.0, ordered[-1])
    assert made.max == ordered[-1]
    assert made.edges[0] == ordered[0] and made.edges[-1] >= ordered[-1]
    assert all(one < other for one, other in pairwise(made.edges))
    assert all(value in set(ordered) for _, value in made.quantiles)
    assert made.p50 <= made.p90 <= made.p99 <= made.max
    assert ordered[0] <= made.mean <= ordered[-1]
    for at, count in enumerate(made.counts):
        last = at == len(made.counts) - 1
        inside = [made.edges[at] <= v < made.edges[at + 1] or (last and v == made.edges[-1]) for v in values]
        assert sum(inside) == count


@given(st.lists(floats, min_size=1, max_size=700))
@example([0.1] * 10)
@example([0.0])
@example([-1.0, 1e-300, 1e15])
@example([1.0, math.nextafter(1.0, 2.0)])
@example([5e-324, 1.0])
def test_of_any_numbers(values: list[float]) -> None:
    check(distribution(NAMED, np.array(values)), values)


@given(st.lists(times, min_size=1, max_size=700))
def test_of_times_in_another_unit(values: list[int]) -> None:
    check(distribution(NAMED, np.array(values, np.int64), per_unit=1e6), [value / 1e6 for value in values])


@given(st.lists(st.integers(min_value=0, max_value=200_000), min_size=1, max_size=700))
@example([7, 7, 7])
@example([0])
def test_of_whole_numbers(values: list[int]) -> None:
    made = distribution(NAMED, np.array(values, np.int64), whole=True)
    check(made, [float(value) for value in values])
    assert all(edge == int(edge) for edge in made.edges)
    assert made.edges[-1] > max(values)


def test_many_values_are_told_densest_at_the_tail() -> None:
    values = np.random.default_rng(1).permutation(np.arange(100_000))
    made = distribution(NAMED, values)
    shares = [share for share, _ in made.quantiles]
    assert {0.5, 0.9, 0.99, 0.999, 1.0} <= set(shares)
    assert sum(share >= 0.9 for share in shares) > len(shares) / 2
    for share, value in made.quantiles:
        assert value == at_share(np.arange(100_000), share)
    assert (made.p50, made.p90, made.p99) == (50_000, 90_000, 99_000)


def test_few_values_are_all_there() -> None:
    made = distribution(NAMED, np.array([3.0, 1.0, 2.0]))
    assert made.quantiles == ((0.0, 1.0), (1 / 3, 2.0), (2 / 3, 3.0), (1.0, 3.0))
    assert (made.title, made.unit, made.limit, made.about) == ("Latency", "ms", NAMED.limit, "of answers")


@pytest.mark.parametrize(
    ("values", "log"), [([1.0, 29.0], False), ([1.0, 30.0], True), ([0.0, 30.0], False), ([-1.0, 500.0], False)]
)
def test_a_wide_spread_is_logarithmic(values: list[float], log: bool) -> None:
    made = distribution(NAMED, np.array(values))
    assert made.log is log
    steps = [b / a if log else b - a for a, b in pairwise(made.edges)]
    assert max(steps) == pytest.approx(min(steps))


def test_no_values_and_values_that_are_none_are_refused() -> None:
    with pytest.raises(ValueError, match="no values"):
        distribution(NAMED, np.array([]))
    with pytest.raises(ValueError, match="not finite"):
        distribution(NAMED, np.array([1.0, math.nan]))


PERCENTILES = {0.0: 1.0, 50.0: 2.0, 90.0: 3.0, 99.0: 4.0, 99.9: 4.0, 100.0: 9.0}


def test_percentiles_alone_make_a_line_and_no_histogram() -> None:
    made = of_percentiles(NAMED, PERCENTILES, 10, 2.5)
    assert isinstance(made, Distribution)
    assert made.quantiles[-1] == (1.0, 9.0) and made.max == 9.0 and (made.p50, made.p90, made.p99) == (2.0, 3.0, 4.0)
    assert (made.edges, made.counts, made.limit) == ((), (), NAMED.limit)


def test_percentiles_with_a_histogram() -> None:
    made = of_percentiles(NAMED, PERCENTILES, 3, 2.5, edges=(1, 5, 9), counts=(2, 1), log=True)
    assert isinstance(made, Distribution)
    assert made.counts == (2, 1) and made.log


@pytest.mark.parametrize(
    ("percentiles", "count", "mean", "counts", "why"),
    [
        ({50.0: 1.0}, 1, 1.0, (), "no percentile 90, 99"),
        ({**PERCENTILES, 95.0: 2.0}, 1, 1.0, (), "do not rise"),
        ({**PERCENTILES, 100.0: math.inf}, 1, 1.0, (), "no number"),
        (PERCENTILES, 1, math.nan, (), "no number"),
        (PERCENTILES, 0, 1.0, (), "0 values"),
        (PERCENTILES, 4, 1.0, (1, 2), "4 values, and a histogram of 3"),
    ],
)
def test_percentiles_that_are_none_are_said_to_be(
    percentiles: dict[float, float], count: int, mean: float, counts: tuple[int, ...], why: str
) -> None:
    made = of_percentiles(NAMED, percentiles, count, mean, counts=counts, edges=range(len(counts) + 1))
    assert isinstance(made, Missing)
    assert why in made.why and made.key == "latency"
