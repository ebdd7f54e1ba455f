"""The number of a run that is published: LoadGen's own, by the key that the round names."""

from __future__ import annotations

import math
from dataclasses import dataclass

from harness.logs import DetailLog, LogError
from harness.rules import ScenarioRules

# Samples a second beside the metric, by LoadGen's scenario: tokens/s over samples/s is the mean answer length.
_SAMPLE_RATES = {"Offline": "result_samples_per_second", "Server": "result_completed_samples_per_sec"}


@dataclass(frozen=True, slots=True)
class ResultMetric:
    """The published value: the detail log's key, the value, its units."""

    key: str
    value: float
    units: str


def result_metric(detail: DetailLog, rules: ScenarioRules) -> ResultMetric:
    """The scenario's metric from the detail log. LogError where it is absent, or no number above 0."""
    metric = rules.metric.value
    value = detail.number(metric.key)
    if value is None:
        raise LogError(f"no {metric.key}", detail.path, expected=f"a performance log of {rules.loadgen_scenario.value}")
    if not 0 < value < math.inf:
        raise LogError(f"{metric.key} is {value}", detail.path, detail.lines.get(metric.key), expected="above 0")
    return ResultMetric(metric.key, float(value), metric.units)


def mean_answer_tokens(detail: DetailLog, rules: ScenarioRules) -> float | None:
    """Tokens an answer had in the mean, from LoadGen's own two rates; None where the log lacks one of them."""
    tokens = detail.number(rules.metric.value.key)
    samples = detail.number(_SAMPLE_RATES.get(rules.loadgen_scenario.value, ""))
    if tokens is None or samples is None or not samples > 0:
        return None
    return tokens / samples
