"""The figures of a report of the endpoints client: its own histograms and percentiles. It tells no single values."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final

from harness.logs import Document, LogError
from harness.report.book.content import Figure, Limit, Unit
from harness.report.book.distributions import Named, of_percentiles
from harness.report.book.limits import Limits

_NS_PER_MS: Final = 1e6
_ABOUT: Final = "the endpoints client's own histogram and percentiles (result_summary.json)"
_NO_TIMES: Final = "the client's report tells no times of single samples"


@dataclass(frozen=True, slots=True)
class _Series:
    """One series of the client's: its name there, the figure that is made of it, and what its values are divided by."""

    name: str
    named: Named
    per_unit: float


def _series(name: str, key: str, title: str, unit: Unit, per_unit: float = 1.0) -> _Series:
    return _Series(name, Named(key, title, unit, about=_ABOUT), per_unit)


_SERIES: Final = (
    _series("latency", "latency", "Latency", "ms", _NS_PER_MS),
    _series("ttft", "ttft", "Time to first token", "ms", _NS_PER_MS),
    _series("tpot", "tpot", "Time per output token", "ms", _NS_PER_MS),
    _series("input_sequence_lengths", "input_tokens", "Input tokens", "tokens"),
    _series("output_sequence_lengths", "output_tokens", "Output tokens", "tokens"),
)
_OVER_TIME: Final = (
    Named("throughput", "Answers a second", "samples/s"),
    Named("concurrency", "Under way at once", "samples"),
)


def client_figures(summary: Document, limits: Limits) -> tuple[Figure, ...]:
    """Latency, TTFT, TPOT in ms and lengths in tokens, from a ``result_summary.json``; Missing with the reason where a
    series is absent or not as the client writes it. What counts against limits are its early-stopping estimates, which
    ``about`` tells; what went on over the time of the run it does not tell, which is said too.
    """
    completed = _completed(summary)
    held_to = {"latency": limits.latency, "ttft": limits.ttft, "tpot": limits.tpot}
    distributions = (_figure(summary, one, held_to.get(one.name), completed) for one in _SERIES)
    return (*distributions, *(named.missing(_NO_TIMES) for named in _OVER_TIME))


def no_client_figures(why: str) -> tuple[Figure, ...]:
    """The same of a report that cannot be read."""
    return tuple(named.missing(why) for named in (*(one.named for one in _SERIES), *_OVER_TIME))


def _completed(summary: Document) -> int:
    try:
        return summary.integer("n_samples_completed") or 0
    except LogError:
        return 0


def _figure(summary: Document, one: _Series, limit: Limit | None, completed: int) -> Figure:
    try:
        series = summary.child(one.name)
        if series is None:
            return one.named.missing(f"the client's report has no {one.name}")
        return _of(series, replace(one, named=replace(one.named, limit=limit)), completed)
    except LogError as error:
        return one.named.missing(error.what)


def _of(series: Document, one: _Series, completed: int) -> Figure:
    told = {"0": series.number("min"), "100": series.number("max"), **_percentiles(series)}
    least, most, mean = told["0"], told["100"], series.number("avg")
    if least is None or most is None or mean is None:
        return one.named.missing(f"the client's report has no values of {one.name}")
    # The client's percentiles are of a histogram: they may lie a little outside of the values.
    within = {float(name): min(max(value, least), most) for name, value in told.items() if value is not None}
    edges, counts = _histogram(series)
    estimates = _estimates(series, one.per_unit)
    return of_percentiles(
        replace(one.named, about=f"{one.named.about}{estimates}"),
        {percent: value / one.per_unit for percent, value in within.items()},
        sum(counts) or completed,
        mean / one.per_unit,
        edges=tuple(edge / one.per_unit for edge in edges),
        counts=counts,
        log=bool(edges),
    )


def _percentiles(series: Document) -> dict[str, float | None]:
    told = series.child("percentiles")
    return {} if told is None else {name: told.number(name) for name in told.data if _is_number(name)}


def _estimates(series: Document, per_unit: float) -> str:
    told = series.child("early_stopping_percentiles")
    if told is None:
        return ""
    found = sorted((float(name), told.number(name)) for name in told.data if _is_number(name))
    known = [f"p{percent:g} {value / per_unit:,.2f}" for percent, value in found if value is not None]
    return f"; early-stopping estimates: {', '.join(known) or 'none, too few samples'}"


def _histogram(series: Document) -> tuple[tuple[float, ...], tuple[int, ...]]:
    """Edges and counts, without empty bins at the end; nothing where they are no histogram."""
    buckets, counts = series.value("histogram.buckets"), series.value("histogram.counts")
    if not isinstance(buckets, list) or not isinstance(counts, list) or len(buckets) != len(counts):
        return (), ()
    if not all(map(_is_pair, buckets)) or not all(type(count) is int and count >= 0 for count in counts):
        return (), ()
    filled = max((at + 1 for at, count in enumerate(counts) if count), default=0)
    edges = (*(low for low, _ in buckets[:filled]), *(high for _, high in buckets[:filled][-1:]))
    if any(one >= other for one, other in pairwise(edges)):
        return (), ()
    return edges, tuple(counts[:filled])


def _is_pair(bucket: object) -> bool:
    return isinstance(bucket, list) and len(bucket) == 2 and all(_is_finite(end) for end in bucket)


def _is_finite(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _is_number(name: str) -> bool:
    try:
        return 0 <= float(name) <= 100
    except ValueError:
        return False
