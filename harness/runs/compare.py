"""LoadGen's figures beside those of our own samples. LoadGen's are the ones reported; ours must not tell another story.

LoadGen counts a Server query's latency from when it was scheduled, we from when it was handed over, so ours are a
little shorter (some tens of microseconds).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from harness.ledger.record import Comparison
from harness.ledger.samples import Int64, SampleState

COUNTS = ("result_query_count",)
"""Figures that must be equal to the last digit (Offline's one query is many samples, so its count is not ours)."""

_PERCENTILES = ((50, "50.00"), (99, "99.00"))


def compare(columns: Mapping[str, Int64], logged: Mapping[str, object]) -> list[Comparison]:
    """Each figure that both have. ``logged`` maps the detail log's keys to their values."""
    ours = _ours(columns)
    if logged.get("effective_scenario") == "Server":
        ours["result_query_count"] = float(len(columns["state"]))
    return [
        Comparison(figure=key, loadgen=float(told), harness=own, ratio=own / told)
        for key, own in ours.items()
        if isinstance(told := logged.get(key), int | float) and told > 0
    ]


def _ours(columns: Mapping[str, Int64]) -> dict[str, float]:
    answered = columns["state"] == SampleState.ANSWERED
    if not answered.any():
        return {}
    issued, done = columns["issued_ns"][answered], columns["done_ns"][answered]
    first, tokens = columns["first_token_ns"][answered], columns["answer_tokens"][answered]
    figures = {}
    latency = done - issued
    seconds = float(done.max() - issued.min()) / 1e9
    figures["result_samples_per_second"] = len(done) / seconds
    figures["result_tokens_per_second"] = float(tokens.sum()) / seconds
    figures["result_completed_samples_per_sec"] = len(done) / seconds
    figures["result_completed_tokens_per_second"] = float(tokens.sum()) / seconds
    for percent, name in _PERCENTILES:
        figures[f"result_{name}_percentile_latency_ns"] = _percentile(latency, percent)
    if (first >= 0).all():
        ttft = first - issued
        tpot = (done - first) / np.maximum(tokens - 1, 1)
        for percent, name in _PERCENTILES:
            figures[f"result_first_token_{name}_percentile_latency_ns"] = _percentile(ttft, percent)
            figures[f"result_time_per_output_token_{name}_percentile_ns"] = _percentile(tpot, percent)
    return figures


def _percentile(values: npt.NDArray[Any], percent: float) -> float:
    """As LoadGen takes it: the value at that share of the sorted list, no interpolation."""
    ordered = np.sort(values)
    return float(ordered[min(int(len(ordered) * percent / 100), len(ordered) - 1)])
