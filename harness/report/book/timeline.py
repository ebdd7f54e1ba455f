"""How a run went over its time: throughput, samples under way, and latencies by when answers ended.

Time is cut into equal spans, few enough that each has some answers in it. All sums over a run of n samples take O(n),
percentiles one sort.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from harness.ledger.sample_times import Float64, Mask, Values, at_share
from harness.ledger.samples import NONE, Int64
from harness.report.book.content import TimeLine
from harness.report.book.distributions import Named

MAX_SPANS: Final = 400
_MIN_SPANS: Final = 10
_ANSWERS_A_SPAN: Final = 20
ANSWERS_A_PERCENTILE: Final = 200
"""A 99th percentile of fewer is the largest value."""
_SHORTEST_NS: Final = 1_000_000
"""What a run lasts at least: one whose samples all have one time is no rate."""
_NS_PER_S: Final = 1e9
_PERCENTILES: Final = (50.0, 99.0)


@dataclass(frozen=True, slots=True)
class Spans:
    """A run's time cut into ``count`` equal spans, from ``begins_ns``; what ends with the run is in the last."""

    begins_ns: int
    length_ns: float
    count: int

    def __post_init__(self) -> None:
        if self.count < 1 or self.length_ns <= 0:
            raise ValueError("no spans")

    @classmethod
    def over(cls, begins_ns: int, ends_ns: int, count: int) -> Spans:
        """That many spans over a time, which is a millisecond at least."""
        return cls(begins_ns, max(ends_ns - begins_ns, _SHORTEST_NS) / count, count)

    @property
    def length_s(self) -> float:
        """Seconds of each."""
        return self.length_ns / _NS_PER_S

    def starts_s(self, which: Mask | None = None) -> tuple[float, ...]:
        """When each begins, seconds from the run's start."""
        starts = np.arange(self.count) * self.length_s
        return tuple((starts if which is None else starts[which]).tolist())

    def of(self, times_ns: Int64) -> Int64:
        """Which span each time is in; what lies outside counts for the first or the last."""
        places = (times_ns - self.begins_ns) / self.length_ns
        found: Int64 = np.clip(places, 0, self.count - 1).astype(np.int64)
        return found


def spans_for(answers: int, begins_ns: int, ends_ns: int, *, each: int = _ANSWERS_A_SPAN) -> Spans:
    """Spans of a run: as many as have ``each`` answers in the mean, at least ten and at most 400."""
    return Spans.over(begins_ns, ends_ns, min(max(answers // each, _MIN_SPANS), MAX_SPANS))


def rate_line(named: Named, done_ns: Int64, spans: Spans, amounts: Int64 | None = None) -> TimeLine:
    """What was done in each span a second: answers, or their ``amounts`` (tokens), all of it when an answer ended."""
    done = np.bincount(spans.of(done_ns), weights=amounts, minlength=spans.count)
    return _line(named, spans, done / spans.length_s)


def under_way_line(named: Named, begun_ns: Int64, ended_ns: Int64, spans: Spans) -> TimeLine:
    """How many were under way in each span, in the mean. ``ended_ns`` is NONE of those that never ended: they count to
    the end of the last span.
    """
    ended = ended_ns[ended_ns != NONE]
    before = _time_since(begun_ns, spans) - _time_since(ended, spans)
    return _line(named, spans, np.maximum(np.diff(before) / spans.length_ns, 0.0))


def percentile_lines(named: Named, done_ns: Int64, values: Values, spans: Spans, *, per_unit: float) -> list[TimeLine]:
    """The 50th and the 99th percentile of the values whose answers ended in each span that has any. The keys and titles
    are the given with ``_p50`` and ``, p50``, and so on; the limit goes with its percentile.
    """
    within = spans.of(done_ns)
    in_each = np.bincount(within, minlength=spans.count)
    filled = in_each > 0
    split = np.split(_by_span(within, values), np.cumsum(in_each[filled])[:-1])
    return [
        TimeLine(
            key=f"{named.key}_p{percent:g}",
            title=f"{named.title}, p{percent:g}",
            unit=named.unit,
            span_s=spans.length_s,
            starts_s=spans.starts_s(filled),
            values=tuple(at_share(part, percent / 100) / per_unit for part in split),
            about=named.about,
            limit=named.limit if named.limit is not None and named.limit.percentile == percent else None,
        )
        for percent in _PERCENTILES
        if len(values)
    ]


def _by_span(within: Int64, values: Values) -> Values:
    """The values by their spans, and in each span by size."""
    by_size = np.argsort(values)
    # Spans are few: numpy sorts 16-bit integers by counting, which keeps the order by size and takes no time.
    by_span = np.argsort(within[by_size].astype(np.uint16), kind="stable")
    found: Values = values[by_size][by_span]
    return found


def _time_since(times_ns: Int64, spans: Spans) -> Float64:
    """At each edge of the spans, for all times before it the time since, summed: float64 (spans + 1,)."""
    within = spans.of(times_ns)
    since = (times_ns - spans.begins_ns).astype(np.float64)
    count = np.concatenate([[0], np.cumsum(np.bincount(within, minlength=spans.count))])
    total = np.concatenate([[0.0], np.cumsum(np.bincount(within, weights=since, minlength=spans.count))])
    edges = np.arange(spans.count + 1) * spans.length_ns
    found: Float64 = count * edges - total
    return found


def _line(named: Named, spans: Spans, values: Float64) -> TimeLine:
    return TimeLine(
        key=named.key,
        title=named.title,
        unit=named.unit,
        span_s=spans.length_s,
        starts_s=spans.starts_s(),
        values=tuple(values.tolist()),
        about=named.about,
    )
