"""What is told over time adds up to what there was."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.ledger.sample_times import at_share
from harness.ledger.samples import NONE
from harness.report.book.content import Limit
from harness.report.book.distributions import Named
from harness.report.book.timeline import MAX_SPANS, Spans, percentile_lines, rate_line, spans_for, under_way_line

LIMIT = Limit(99.0, 5.0, inclusive=False, source="a rule")
NAMED = Named("x", "X", "ms", LIMIT, "of answers")
S = 10**9

runs = st.lists(
    st.tuples(st.integers(0, 10**12), st.integers(0, 10**11), st.integers(0, 5000)), min_size=1, max_size=300
)


def arrays(run: list[tuple[int, int, int]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    issued, took, tokens = np.array(run, np.int64).T
    return issued + 5 * S, issued + took + 5 * S, tokens


@given(runs, st.integers(1, 50))
def test_rates_add_up(run: list[tuple[int, int, int]], each: int) -> None:
    issued, done, tokens = arrays(run)
    spans = spans_for(len(done), int(issued.min()), int(done.max()), each=each)
    assert 10 <= spans.count <= MAX_SPANS
    line, of_tokens = rate_line(NAMED, done, spans), rate_line(NAMED, done, spans, tokens)
    assert sum(line.values) * spans.length_s == pytest.approx(len(done))
    assert sum(of_tokens.values) * spans.length_s == pytest.approx(tokens.sum())
    assert len(line.values) == len(line.starts_s) == spans.count and line.starts_s[0] == 0


@given(runs)
def test_what_was_under_way_adds_up_to_all_latencies(run: list[tuple[int, int, int]]) -> None:
    issued, done, _ = arrays(run)
    spans = spans_for(len(done), int(issued.min()), int(done.max()))
    line = under_way_line(NAMED, issued, done, spans)
    total = (done - issued).sum()
    assert sum(line.values) * spans.length_ns == pytest.approx(total, rel=1e-6, abs=spans.length_ns * 1e-3)
    assert min(line.values) >= 0 and max(line.values) <= len(done) + 1e-6


@given(runs)
def test_percentiles_are_of_the_answers_that_ended_in_each_span(run: list[tuple[int, int, int]]) -> None:
    issued, done, _ = arrays(run)
    spans = Spans.over(int(issued.min()), int(done.max()), 10)
    latency = done - issued
    within = spans.of(done)
    for line, share in zip(percentile_lines(NAMED, done, latency, spans, per_unit=1e6), (0.5, 0.99), strict=True):
        filled = np.unique(within)
        assert line.starts_s == pytest.approx(filled * spans.length_s)
        assert list(line.values) == [at_share(np.sort(latency[within == at]), share) / 1e6 for at in filled]


def test_samples_under_way_by_hand() -> None:
    """One of 0 to 4 s, one of 1 to 3, and one that begins at 2 and never ends; spans of a second."""
    issued, done = np.array([0, 1 * S, 2 * S]), np.array([4 * S, 3 * S, NONE])
    line = under_way_line(NAMED, issued, done, Spans.over(0, 4 * S, 4))
    assert line.values == pytest.approx([1, 2, 3, 2])
    assert line.starts_s == (0, 1, 2, 3) and line.span_s == 1


def test_a_run_of_one_moment_has_a_millisecond() -> None:
    line = rate_line(NAMED, np.array([7, 7]), spans_for(2, 7, 7))
    assert line.values[0] == pytest.approx(2 / 1e-4)
    assert sum(line.values) * line.span_s == pytest.approx(2)


def test_no_values_have_no_lines() -> None:
    nothing = np.zeros(0, np.int64)
    assert percentile_lines(NAMED, nothing, nothing, Spans.over(0, S, 3), per_unit=1) == []


def test_names_of_percentiles() -> None:
    lines = percentile_lines(NAMED, np.array([1]), np.array([1]), Spans.over(0, S, 3), per_unit=1)
    assert [(line.key, line.title, line.unit, line.about) for line in lines] == [
        ("x_p50", "X, p50", "ms", "of answers"),
        ("x_p99", "X, p99", "ms", "of answers"),
    ]
    assert [line.limit for line in lines] == [None, LIMIT]


def test_no_spans_are_refused() -> None:
    with pytest.raises(ValueError, match="no spans"):
        Spans(0, 1.0, 0)
