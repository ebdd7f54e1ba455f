"""How the share over a limit goes with the rate."""

from __future__ import annotations

import math

import numpy as np
import pytest

from harness.runs.search.shares import Point, line


def at(rate: float, share: float, bursts: int = 100) -> Point:
    return Point(rate, share, bursts)


def test_a_line_through_two_points() -> None:
    """Ten times the share over a doubling of the rate: one in a hundred is half way."""
    fit = line([at(100, 0.00316227766), at(200, 0.0316227766)])
    assert fit is not None
    assert fit.slope == pytest.approx(math.log(10) / math.log(2))
    assert fit.at(0.01).rate == pytest.approx(100 * math.sqrt(2))
    assert fit.at(0.01).error < fit.at(0.1).error


def test_points_count_by_their_bursts() -> None:
    few, many = at(150, 0.001, 1), at(150, 0.01, 1000)
    fit = line([at(100, 0.001, 1000), at(200, 0.1, 1000), few, many])
    assert fit is not None
    assert fit.at(0.01).rate == pytest.approx(145, rel=0.05)


def test_the_error_is_what_repeated_fits_scatter_by() -> None:
    """Bursts by Poisson's law, each of a geometric length, on a line of slope twenty."""
    generator = np.random.default_rng(3)
    rates, errors = [], []
    for _ in range(400):
        points = []
        for rate in (95.0, 100.0, 105.0):
            share = 0.01 * (rate / 100) ** 20
            bursts = int(generator.poisson(20_000 * share / 4))
            late = int(generator.geometric(0.25, size=bursts).sum())
            points.append(at(rate, late / 20_000, bursts))
        fit = line(points)
        assert fit is not None
        rates.append(fit.at(0.01).rate)
        errors.append(fit.at(0.01).error)
    assert np.median(rates) == pytest.approx(100, rel=0.002)
    assert np.std(rates) / 100 == pytest.approx(np.median(errors), rel=0.3)


@pytest.mark.parametrize(
    "points",
    [
        [],
        [at(100, 0.01)],
        [at(100, 0.01), at(100, 0.02)],
        [at(100, 0.02), at(110, 0.01)],
        [at(100, 0.0, 0), at(110, 0.01)],
        [at(100, 0.01), at(110, 0.5)],
    ],
    ids=["none", "one", "one rate", "falling", "nothing over", "an overrun queue"],
)
def test_what_tells_nothing(points: list[Point]) -> None:
    assert line(points) is None
