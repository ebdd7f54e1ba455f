"""The times of answers, by their definition."""

from __future__ import annotations

import numpy as np
import pytest

from harness.ledger.sample_times import AnswerTimes, at_share
from harness.ledger.samples import NONE, Int64, SampleState


def columns(rows: list[tuple[int, int, int, int, int]]) -> dict[str, Int64]:
    """State, issued, first token, done, tokens."""
    names = ("state", "issued_ns", "first_token_ns", "done_ns", "answer_tokens")
    return dict(zip(names, np.array(rows, np.int64).reshape(-1, 5).T, strict=True))


A, F, OUT = SampleState.ANSWERED, SampleState.FAILED, SampleState.OUTSTANDING


def test_times_by_their_definition() -> None:
    times = AnswerTimes.of(
        columns(
            [
                (A, 10, 40, 100, 4),
                (F, 10, NONE, NONE, NONE),
                (A, 20, 20, 120, 1),
                (A, 30, NONE, 130, 7),
                (A, 40, 60, 140, NONE),
                (OUT, 50, 70, NONE, NONE),
            ]
        )
    )
    assert len(times) == 4
    assert times.latency_ns.tolist() == [90, 100, 100, 100]
    assert times.ttft_ns.tolist() == [30, 0, 20], "of those whose first token was told"
    assert times.tpot_ns.tolist() == [20], "of two counted tokens and more"
    assert times.tpot_done_ns.tolist() == [100]
    assert times.span_s == pytest.approx(130e-9)
    assert times.streamed
    assert not times.disordered


@pytest.mark.parametrize(
    ("row", "disordered"),
    [
        ((A, 10, 5, 20, 2), 1),
        ((A, 10, 30, 20, 2), 1),
        ((A, 10, NONE, 9, 2), 1),
        ((A, NONE, 5, 20, 2), 1),
        ((A, 10, NONE, NONE, 2), 1),
        ((A, 10, 10, 10, 2), 0),
        ((F, 10, 30, 20, 2), 0),
    ],
)
def test_times_that_do_not_rise_are_counted(row: tuple[int, int, int, int, int], disordered: int) -> None:
    assert AnswerTimes.of(columns([row])).disordered == disordered


def test_answers_that_came_whole_have_no_first_token_of_their_own() -> None:
    assert not AnswerTimes.of(columns([(A, 0, 9, 9, 3), (A, 0, NONE, 9, 3)])).streamed
    assert AnswerTimes.of(columns([(A, 0, 9, 9, 3), (A, 0, 8, 9, 3)])).streamed


def test_nothing_answered_takes_no_time() -> None:
    times = AnswerTimes.of(columns([]))
    assert (len(times), times.span_s, times.streamed) == (0, 0.0, False)


def test_columns_are_of_one_length() -> None:
    one, two = np.zeros(1, np.int64), np.zeros(2, np.int64)
    with pytest.raises(ValueError, match="several lengths"):
        AnswerTimes(one, one, two, one)


@pytest.mark.parametrize(
    ("share", "value"), [(0, 0), (0.5, 50), (0.99, 99), (0.991, 99), (0.9999, 99), (1, 99), (0.57, 56)]
)
def test_percentiles_are_loadgens(share: float, value: float) -> None:
    """Of 100 values; 100 * 0.57 is below 57 in floating point, and LoadGen cuts it down just so."""
    assert at_share(np.arange(100), share) == value
