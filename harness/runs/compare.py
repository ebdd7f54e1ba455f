"""LoadGen's figures beside those of our own samples. LoadGen's are the ones reported; ours must not tell another
story.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from harness.ledger.record import Comparison
from harness.ledger.sample_times import AnswerTimes, Values, at_share
from harness.ledger.samples import Int64

COUNTS = ("result_query_count",)
"""Figures that must be equal to the last digit (Offline's one query is many samples, so its count is not ours)."""

_PERCENTILES = ((50, "50.00"), (99, "99.00"))


def compare(columns: Mapping[str, Int64], logged: Mapping[str, object]) -> list[Comparison]:
    """Each figure that both have. ``logged`` maps the detail log's keys to their values."""
    ours = _ours(AnswerTimes.of(columns))
    if logged.get("effective_scenario") == "Server":
        ours["result_query_count"] = float(len(columns["state"]))
    return [
        Comparison(figure=key, loadgen=float(told), harness=own, ratio=own / told)
        for key, own in ours.items()
        if isinstance(told := logged.get(key), int | float) and told > 0
    ]


def _ours(answers: AnswerTimes) -> dict[str, float]:
    if not len(answers):
        return {}
    figures = _rates(answers)
    figures |= _percentiles("result_{}_percentile_latency_ns", answers.latency_ns)
    if answers.begun.all():
        figures |= _percentiles("result_first_token_{}_percentile_latency_ns", answers.ttft_ns)
        if len(answers.tpot_ns):
            figures |= _percentiles("result_time_per_output_token_{}_percentile_ns", answers.tpot_ns)
    return figures


def _rates(answers: AnswerTimes) -> dict[str, float]:
    seconds, figures = answers.span_s, {}
    if seconds:
        for key in ("result_samples_per_second", "result_completed_samples_per_sec"):
            figures[key] = len(answers) / seconds
    if seconds and answers.counted.all():
        for key in ("result_tokens_per_second", "result_completed_tokens_per_second"):
            figures[key] = float(answers.tokens.sum()) / seconds
    return figures


def _percentiles(key: str, values: Values) -> dict[str, float]:
    ordered = np.sort(values)
    return {key.format(name): at_share(ordered, percent / 100) for percent, name in _PERCENTILES}
