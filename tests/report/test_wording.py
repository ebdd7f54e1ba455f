"""Figures as text, and what must stand beside them."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from harness.report import wording
from tests.report.page import made


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (0.012345, "0.0123"),
        (0.5, "0.5"),
        (1, "1"),
        (12.345, "12.35"),
        (123.45, "123.5"),
        (400, "400"),
        (1234567.8, "1,234,568"),
        (-12.5, "-12.50"),
        (math.inf, "—"),
        (math.nan, "—"),
    ],
)
def test_numbers_are_short_and_thousands_apart(value: float, text: str) -> None:
    assert wording.number(value) == text


@pytest.mark.parametrize(("value", "text"), [(1234.0, "1,234"), (1234.5678, "1,234.568"), (0.25, "0.250")])
def test_exact_values_have_three_digits_behind_the_point(value: float, text: str) -> None:
    assert wording.exact(value) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(9.314, "9.31 s"), (59.999, "1 min 00 s"), (612.4, "10 min 12 s"), (3725, "1 h 02 min"), (3599.9, "1 h 00 min")],
)
def test_durations(seconds: float, text: str) -> None:
    assert wording.duration(seconds) == text


@pytest.mark.parametrize(
    ("told", "text"),
    [
        (None, "—"),
        ("2026-02-03T04:05:06.789+00:00", "2026-02-03 04:05:06 UTC"),
        ("2026-02-03T04:05:06Z", "2026-02-03 04:05:06 UTC"),
        ("2026-02-03T04:05:06.5+01:00", "2026-02-03 04:05:06+01:00"),
        ("yesterday", "yesterday"),
    ],
)
def test_moments(told: str | None, text: str) -> None:
    assert wording.moment(told) == text


def test_what_nobody_verified_says_so_and_open_results_say_open() -> None:
    assert wording.caution(None) == "not verified by MLCommons Association"
    assert wording.caution(made.row()) == "not verified by MLCommons Association"
    assert wording.caution(made.open_row()) == "MLPerf Open · not verified by MLCommons Association"
    assert wording.caution(made.open_row(verified="MLCommons")) == "MLPerf Open"
    assert wording.caution(made.row(verified="MLCommons")) == ""


def test_a_run_is_of_the_row_that_names_it() -> None:
    book = made.book()
    assert wording.row_of(book, book.runs[0]) == book.rows[0]
    assert wording.row_of(book, book.runs[3]) is None


def test_long_times_are_read_in_seconds() -> None:
    assert wording.scale("ms", 9_999) == (1, "ms")
    assert wording.scale("ms", 10_000) == (1000, "s")
    assert wording.scale("tokens", 1e9) == (1, "tokens")


@pytest.mark.parametrize("text", [wording.number, wording.exact, wording.result])
def test_values_of_no_length_that_people_read(text: Callable[[float], str]) -> None:
    assert [text(value) for value in (math.nan, math.inf, -math.inf)] == [wording.NO_VALUE] * 3
    assert text(1e308) == "1e+308"
    assert text(-2e20) == "-2e+20"
