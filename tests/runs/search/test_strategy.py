"""Which rate is asked next, and how a search ends."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.runs.search.constraint import Judged, Outcome
from harness.runs.search.steps import (
    AskFull,
    AskProbe,
    Confirmed,
    Found,
    NoneFound,
    Settings,
    Told,
    lowered_to,
    nearest,
)
from harness.runs.search.strategy import Search
from tests.runs.search.made import measured, reading, told


def after(*probes: Told, guess: float = 100.0, **changes: float) -> Search:
    """A search that was told these probes."""
    return Search(guess, Settings(**changes), probes)


def asked(search: Search) -> float:
    step = search.step()
    assert isinstance(step, AskProbe), step
    return step.rate


def test_the_first_probe_is_the_guess() -> None:
    assert after(guess=71.3).step() == AskProbe(71.3, "first guess")
    for guess in (0.0, -1.0, math.nan, math.inf):
        with pytest.raises(ValueError, match="first guess"):
            Search(guess)


def test_it_looks_for_the_end_that_lacks_in_growing_steps() -> None:
    up = [told(100, "pass")]
    for expected in (125, 187.5, 375, 750):
        assert asked(after(*up)) == pytest.approx(expected)
        up.append(told(expected, "pass"))
    down = [told(100, "fail", over=100)]
    for expected in (80, 40, 10):
        assert asked(after(*down)) == pytest.approx(expected)
        down.append(told(expected, "fail", over=100))


def test_what_a_growing_queue_answered_is_the_capacity() -> None:
    """Below it first, then just above it: whether more can be answered."""
    overrun = told(200, "fail", over=2000, answered=80)
    assert asked(after(overrun)) == pytest.approx(80 * 0.97)
    assert asked(after(overrun, told(77.6, "fail", over=100))) == pytest.approx(80 * 0.9)
    assert asked(after(overrun, told(77.6, "pass"))) == pytest.approx(79.6)
    assert asked(after(overrun, told(77.6, "pass"), told(79.6, "pass"))) == pytest.approx(80.8)
    done = after(overrun, told(77.6, "pass"), told(79.6, "pass"), told(80.8, "pass", answered=80))
    assert done.step() == AskFull(lowered_to(80 * 0.995), "full run to confirm")


def test_an_engine_that_answers_less_for_being_overrun_is_asked_for_more() -> None:
    thrashing = told(200, "fail", over=2000, answered=80)
    more = after(thrashing, told(77.6, "pass"), told(79.6, "pass"), told(80.8, "pass"))
    assert more.capacity is None
    assert asked(more) == nearest(math.sqrt(80.8 * 200))


def test_a_queue_that_is_worked_off_shows_no_capacity() -> None:
    """After a stall, more is answered than comes."""
    thrashing = told(200, "fail", over=2000, answered=80)
    worked_off = told(80.8, "pass", answered=84)
    assert after(thrashing, told(77.6, "pass"), told(79.6, "pass"), worked_off).capacity == 80


def test_between_two_shares_it_goes_where_the_share_is_just_within() -> None:
    """The share goes from 2 in 1000 to 50 in 1000: one in a hundred is half way."""
    search = after(told(100, "pass", over=4), told(120, "fail", over=100))
    assert asked(search) == nearest(math.sqrt(100 * 120))
    assert asked(after(told(100, "pass", over=2), told(120, "fail", over=400))) == pytest.approx(108.5, rel=0.02)
    assert asked(after(told(100, "pass"), told(144, "fail", over=400))) == 120.0


def test_rates_are_asked_for_as_they_will_come() -> None:
    """LoadGen's arrivals are the same for each rate, only scaled: 2 % too many come here."""
    probe = Told(100.0, Judged(Outcome.FITS, True, ""), reading(rate=102.0))
    assert asked(after(probe)) == pytest.approx(125.0)


def test_the_lowest_certain_failure_and_the_highest_pass_below_it_are_the_bracket() -> None:
    search = after(told(100, "pass"), told(110, "fail", over=100), told(120, "pass"), told(90, "pass"))
    assert search.high is not None and search.high.rate == 110
    assert search.low is not None and search.low.rate == 100
    leaning = after(
        told(100, "pass"), told(110, "undecided fail", over=25), told(120, "pass"), told(150, "fail", over=99)
    )
    assert leaning.high is not None and leaning.high.rate == 150  # what only leans to fail gives way to a pass above


def test_it_ends_where_the_bracket_is_narrow_or_the_probes_are_used_up() -> None:
    narrow = after(told(100, "pass"), told(100.9, "fail", over=100))
    assert narrow.step() == AskFull(99.5, "full run to confirm")
    wide = after(told(100, "pass"), told(150, "fail", over=1500), max_probes=2)
    assert wide.step() == AskFull(99.5, "full run to confirm")
    found = wide.confirmed(Confirmed(99.5, valid=True)).step()
    assert found == Found(99.5, ("after 2 probes the bracket is still 50.0% wide",))
    none = after(told(100, "fail", over=100), told(80, "fail", over=90), max_probes=2).step()
    assert none == NoneFound("no probe of 2 kept the limits: at 80 samples/s it was fail")
    only = after(told(100, "pass"), max_probes=1).confirmed(Confirmed(99.5, valid=True)).step()
    assert only == Found(99.5, ("no rate that fails was probed: a higher one may do as well",))


def test_most_answers_late_at_any_rate_ends_it_early() -> None:
    early = after(told(100, "fail", over=2000), told(25, "fail", over=1100))
    assert isinstance(early.step(), NoneFound)
    assert isinstance(after(told(100, "fail", over=2000), told(26, "fail", over=1100)).step(), AskProbe)
    assert isinstance(after(told(100, "fail", over=2000), told(25, "fail", over=900)).step(), AskProbe)
    overrun = after(told(100, "fail", over=2000, answered=10), told(25, "fail", over=1100, answered=10))
    assert isinstance(overrun.step(), AskProbe)


def test_a_full_run_that_is_invalid_lowers_the_rate_three_times_at_most() -> None:
    search = after(told(100, "pass"), told(100.9, "fail", over=100))
    rates = []
    while isinstance(step := search.step(), AskFull):
        rates.append(step.rate)
        search = search.confirmed(Confirmed(step.rate, valid=False, why="late"))
    assert rates == [99.5, 98.5, 97.51, 96.53]
    assert isinstance(step, NoneFound)
    assert step.why == "full runs at 99.5, 98.5, 97.51, 96.53 samples/s are INVALID, the last: late"


def test_a_full_run_that_says_more_lowers_it_by_more() -> None:
    search = after(told(100, "pass"), told(100.9, "fail", over=100))
    overrun = Confirmed(99.5, valid=False, reading=reading(measured(over=900), rate=99.5, answered=90))
    assert search.confirmed(overrun).step() == AskFull(
        lowered_to(90 * 0.995), "lowered: the full run before was INVALID"
    )
    shares = after(told(95, "pass", over=5), told(101, "fail", over=100), max_probes=2)
    late = Confirmed(99.5, valid=False, reading=reading(measured(over=60), rate=99.5))
    step = shares.confirmed(late).step()
    assert isinstance(step, AskFull)
    assert 96 < step.rate < 98  # three times too many are late, and the share is threefold within 2.2 %


def test_what_no_rate_mends_ends_it() -> None:
    search = after(told(100, "pass"), max_probes=1)
    end = search.confirmed(Confirmed(99.5, valid=False, mendable=False, why="RUN-FAILED")).step()
    assert end == NoneFound("the full run at 99.5 samples/s is INVALID whatever the rate: RUN-FAILED")


def test_settings_that_cannot_be() -> None:
    for changes in ({"tolerance": 0}, {"safety": 1}, {"step": 0}, {"max_probes": 0}, {"lowered_at_most": -1}):
        with pytest.raises(ValueError, match=r"shares|counts"):
            Settings(**changes)


@given(st.floats(1e-3, 1e7))
def test_a_rate_is_lowered_to_four_digits(rate: float) -> None:
    low = lowered_to(rate)
    assert 0.999 * rate < low <= rate * (1 + 1e-12)
    assert low == float(f"{low:.4g}")


@given(
    limit=st.floats(0.05, 5000),
    guess=st.floats(0.05, 5000),
    noise=st.lists(st.floats(-0.03, 0.03), min_size=10, max_size=10),
    overload=st.booleans(),
)
@settings(max_examples=300, deadline=None)
def test_every_search_ends_and_never_asks_more_than_it_may(
    limit: float, guess: float, noise: list[float], overload: bool
) -> None:
    """Whatever probes say: noisy outcomes about a limit far from the guess or near it."""
    search = Search(guess)
    for _ in range(100):
        step = search.step()
        if isinstance(step, AskProbe):
            assert len(search.probes) < 10
            assert 0 < step.rate < math.inf
            fits = step.rate <= limit * (1 + noise[len(search.probes)])
            answered = min(step.rate, limit) if overload else None
            search = search.told(
                told(step.rate, "pass" if fits else "fail", over=0 if fits else 300, answered=answered)
            )
        elif isinstance(step, AskFull):
            search = search.confirmed(Confirmed(step.rate, valid=step.rate <= limit, why="late"))
        else:
            break
    assert len(search.full) <= 4
    if isinstance(step, Found):
        assert step.rate <= limit
    else:
        assert isinstance(step, NoneFound) and step.why
