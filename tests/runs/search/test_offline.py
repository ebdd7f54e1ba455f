"""The rate to expect of Offline."""

from __future__ import annotations

import math

import numpy as np
import pytest

from harness.runs.search.offline import (
    OfflineRun,
    OfflineSearch,
    OfflineSettings,
    OfflineTold,
    Pace,
    pace,
    raised,
)
from harness.runs.search.steps import AskFull, AskProbe, Found, NoneFound
from tests.runs.search.made import columns

MEANT_S = 120.0


def told(asked: float, answered: float, seconds: float = MEANT_S, failed: int = 0) -> OfflineTold:
    return OfflineTold(asked, Pace(answered, seconds, failed), MEANT_S)


def test_one_probe_and_the_full_run() -> None:
    search = OfflineSearch(70.2)
    assert search.step() == AskProbe(70.2, "first guess")
    search = search.told(told(70.2, 71.3))
    assert search.step() == AskFull(raised(71.3 * 1.02), "full run to confirm")
    assert search.confirmed(OfflineRun(72.73, valid=True)).step() == Found(72.73)


def test_a_probe_that_was_too_short_is_made_again_by_what_it_answered() -> None:
    search = OfflineSearch(1.0)
    for asked, answered, seconds in ((1.0, 50.0, 3.0), (50.0, 64.0, 59.0)):
        search = search.told(told(asked, answered, seconds))
        assert search.step() == AskProbe(answered, "the probe before was too short: by what it answered")
    assert isinstance(search.told(told(64.0, 71.0, 1.0)).step(), AskFull)  # the third is the last


def test_a_full_run_that_ends_too_early_raises_the_rate() -> None:
    search = OfflineSearch(70.0).told(told(70, 70))
    rates = []
    while isinstance(step := search.step(), AskFull):
        rates.append(step.rate)
        search = search.confirmed(OfflineRun(step.rate, valid=False, why="too short", pace=Pace(60, 550)))
    assert rates == [71.4, 72.83, 74.29, 75.78]
    assert isinstance(step, NoneFound)
    assert "the last: too short" in step.why
    faster = OfflineSearch(70.0).told(told(70, 70)).confirmed(OfflineRun(71.4, valid=False, pace=Pace(90, 500)))
    assert faster.step() == AskFull(91.8, "raised: the full run was too short")


@pytest.mark.parametrize(
    ("probe", "why"),
    [
        (told(70, 70, failed=2), "2 samples failed: a rate mends nothing of that"),
        (told(70, 0.0, 240.0), "nothing was answered within 240 s"),
    ],
)
def test_what_no_rate_mends(probe: OfflineTold, why: str) -> None:
    assert OfflineSearch(70).told(probe).step() == NoneFound(why)
    full = (
        OfflineSearch(70).told(told(70, 70)).confirmed(OfflineRun(71.4, valid=False, mendable=False, why="RUN-FAILED"))
    )
    assert full.step() == NoneFound("the full run at 71.4 samples/s is INVALID whatever the rate: RUN-FAILED")


def test_the_pace_is_that_of_the_middle() -> None:
    """Ten a second after a slow beginning, and a tail of one that takes long."""
    done = np.concatenate([np.arange(20) / 2, 10 + np.arange(260) / 10, 36 + np.arange(20)])
    found = pace(columns(np.zeros(300), done, 0.0))
    assert found.answered == pytest.approx(10, rel=0.02)
    assert found.seconds == pytest.approx(55, rel=0.02)
    assert found.failed == 0


def test_a_pace_of_little_or_nothing() -> None:
    cut = columns(np.zeros(10), np.arange(10) + 1.0, 0.0, outstanding=list(range(1, 9)), failed=[9])
    assert pace(cut) == Pace(0.0, 0.0, 1)
    assert pace(columns(np.zeros(2), np.array([1.0, 1.0]), 0.0)).answered == pytest.approx(2.0)


def test_numbers_that_cannot_be() -> None:
    for guess in (0.0, math.inf, math.nan):
        with pytest.raises(ValueError, match="first guess"):
            OfflineSearch(guess)
    for changes in ({"headroom": -0.1}, {"step": 0}, {"max_probes": 0}, {"raised_at_most": -1}):
        with pytest.raises(ValueError, match=r"shares|counts"):
            OfflineSettings(**changes)
    assert [raised(rate) for rate in (71.321, 71.32, 9999.5, 0.012341)] == [71.33, 71.32, 10000, 0.01235]
