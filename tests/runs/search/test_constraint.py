"""Whether a short run keeps the limits."""

from __future__ import annotations

import pytest

from harness.rules import early_stopping
from harness.runs.search.constraint import Judged, Outcome, judge
from tests.runs.search.made import TOKENS, measured, reading

FULL_S = 600.0


@pytest.mark.parametrize(
    ("over", "outcome", "leans"),
    [
        (0, Outcome.FITS, True),
        (early_stopping.allowed_over(2000, 0.99), Outcome.FITS, True),
        (early_stopping.allowed_over(2000, 0.99) + 1, Outcome.UNDECIDED, True),
        (20, Outcome.UNDECIDED, True),
        (21, Outcome.UNDECIDED, False),
        (31, Outcome.UNDECIDED, False),
        (32, Outcome.FAILS, False),
        (2000, Outcome.FAILS, False),
    ],
)
def test_a_count_is_judged_as_early_stopping_judges_it(over: int, outcome: Outcome, leans: bool) -> None:
    """Of 2000 queries 10 may be over; 32 are too many for a share of one in a hundred in 99 of 100 such runs."""
    judged = judge(reading(measured(over=over)), FULL_S)
    assert (judged.outcome, judged.leans_to_pass) == (outcome, leans)
    if over:
        assert str(over) in judged.why or outcome is Outcome.FITS


def test_a_burst_counts_as_one() -> None:
    """Sixty late queries that waited in one queue say no more than one would."""
    assert judge(reading(measured(over=60)), FULL_S).outcome is Outcome.FAILS
    assert judge(reading(measured(over=60, bursts=1)), FULL_S).outcome is Outcome.UNDECIDED
    assert judge(reading(measured(over=60, bursts=40)), FULL_S).outcome is Outcome.FAILS


def test_the_worst_limit_decides() -> None:
    judged = judge(reading(measured(), measured(over=100, limit=TOKENS)), FULL_S)
    assert judged.outcome is Outcome.FAILS
    assert "100 of 2000 queries over the limit of TPOT" in judged.why


def test_too_few_queries_to_tell() -> None:
    judged = judge(reading(measured(queries=458)), FULL_S)
    assert (judged.outcome, judged.leans_to_pass) == (Outcome.UNDECIDED, True)
    assert judge(reading(measured(queries=459)), FULL_S).outcome is Outcome.FITS


@pytest.mark.parametrize(
    ("answered", "full_s", "outcome"),
    [
        (9.0, 600.0, Outcome.FAILS),  # 66 s later after 600 s
        (9.7, 600.0, Outcome.UNDECIDED),  # by 1.3 sigmas
        (9.9, 600.0, Outcome.FITS),
        (9.0, 20.0, Outcome.FITS),  # 2.2 s and the 0.3 s there are: within the limit
    ],
)
def test_a_queue_that_grows_is_judged_by_where_it_would_be(answered: float, full_s: float, outcome: Outcome) -> None:
    judged = judge(reading(rate=10.0, answered=answered), full_s)
    assert judged.outcome is outcome
    if outcome is Outcome.UNDECIDED:
        assert not judged.leans_to_pass
        assert "chance" in judged.why


def test_failed_samples_are_no_answers_in_time() -> None:
    judged = judge(reading(failed=3), FULL_S)
    assert (judged.outcome, judged.why) == (Outcome.FAILS, "3 of 3000 samples failed")


def test_an_outcome_leans_to_itself() -> None:
    with pytest.raises(ValueError, match="leans the other way"):
        Judged(Outcome.FITS, False, "")
