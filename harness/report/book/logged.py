"""The figures that LoadGen's own log holds: percentiles, and no single value. What a packaged tree has of a run."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from harness.logs import DetailLog, LogError
from harness.logs.values import shown
from harness.report.book.content import Figure, Limit
from harness.report.book.distributions import Named, of_percentiles
from harness.report.book.limits import Limits

_NS_PER_MS: Final = 1e6
_ABOUT: Final = "LoadGen's own percentiles; its log holds no single values, so there is no histogram"
_LONGEST: Final = 400
_KEPT: Final = ("loadgen_version", "result_", "early_stopping_", "generated_", "effective_target_qps")
_SERIES: Final = (
    ("latency", "Latency", r"result_(\d+\.\d+)_percentile_latency_ns", "result_{}_latency_ns"),
    (
        "ttft",
        "Time to first token",
        r"result_first_token_(\d+\.\d+)_percentile_latency_ns",
        "result_first_token_{}_latency_ns",
    ),
    (
        "tpot",
        "Time per output token",
        r"result_time_per_output_token_(\d+\.\d+)_percentile_ns",
        "result_time_to_output_token_{}",
    ),
)
"""Key, title, LoadGen's key of a percentile, and that of the least, the mean and the greatest value."""


def logged_figures(detail: DetailLog, limits: Limits) -> tuple[Figure, ...]:
    """Latency, TTFT and TPOT by the percentiles of a detail log, in ms; Missing with the reason where it has none."""
    return tuple(_figures(detail, limits))


def logged_facts(detail: DetailLog) -> tuple[tuple[str, str], ...]:
    """What LoadGen says of the run: version, results, early stopping, and how often it warned and erred."""
    kept = {key: value for key, value in detail.values.items() if key.startswith(_KEPT)}
    return (
        *((key, shown(value, _LONGEST).strip('"').strip()) for key, value in kept.items()),
        *((f"reason for INVALID {at}", reason) for at, reason in enumerate(detail.invalid_reasons, 1)),
        ("warnings", f"{detail.warning_count:,}"),
        ("errors", f"{detail.error_count:,}"),
    )


def _figures(detail: DetailLog, limits: Limits) -> Iterator[Figure]:
    held_to: dict[str, Limit | None] = {"latency": limits.latency, "ttft": limits.ttft, "tpot": limits.tpot}
    for key, title, pattern, whole in _SERIES:
        named = Named(key, title, "ms", held_to[key], _ABOUT)
        try:
            yield _figure(named, detail, re.compile(pattern), whole)
        except LogError as error:
            yield named.missing(error.what)


def _figure(named: Named, detail: DetailLog, pattern: re.Pattern[str], whole: str) -> Figure:
    found = {float(match[1]): detail.number(key) for key in detail.values if (match := pattern.fullmatch(key))}
    least, mean, most = (detail.number(whole.format(name)) for name in ("min", "mean", "max"))
    if not found or least is None or mean is None or most is None:
        return named.missing(f"LoadGen logs none of {named.title.lower()} in this leg")
    told = {0.0: least, **{percent: value for percent, value in found.items() if value is not None}, 100.0: most}
    percentiles = {percent: value / _NS_PER_MS for percent, value in told.items()}
    count = detail.issued_samples or 0
    return of_percentiles(named, percentiles, count, mean / _NS_PER_MS)
