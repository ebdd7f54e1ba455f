from __future__ import annotations

from harness.clients.rates import Pace, Rates

S = 10**9


def test_rates_are_those_of_the_last_seconds() -> None:
    rates = Rates(0)
    for second in range(1, 31):
        pace = rates.pace(second * S, 100 * min(second, 20), 1000 * second)
    assert pace == Pace(0.0, 1000.0)


def test_the_first_seconds_are_all_there_is() -> None:
    rates = Rates(0)
    assert rates.pace(0, 5) == Pace(None, None)
    assert rates.pace(2 * S, 10) == Pace(5.0, None)


def test_there_is_no_rate_before_anything_was_answered() -> None:
    assert Rates(0).pace(5 * S, 0, 0) == Pace(None, None)


def test_a_look_that_comes_late_still_has_a_window() -> None:
    rates = Rates(0)
    rates.pace(S, 10)
    assert rates.pace(100 * S, 109) == Pace(1.0, None)
