"""The number of a run that is published: LoadGen's own, by the key that the round names."""

from __future__ import annotations

from dataclasses import dataclass

from harness.logs import DetailLog, LogError
from harness.rules import ScenarioRules

# Samples a second beside the metric, by LoadGen's scenario: tokens/s over samples/s is the mean answer length.
# The official checker reads them first, and breaks where they are no number.
_SAMPLE_RATES = {"Offline": "result_samples_per_second", "Server": "result_completed_samples_per_sec"}


@dataclass(frozen=True, slots=True)
class ResultMetric:
    """The published value: the log's key, the value, its units."""

    key: str
    value: float
    units: str


def sample_rate_key(rules: ScenarioRules) -> str | None:
    """LoadGen's key of samples a second in a scenario; None where it logs none."""
    return _SAMPLE_RATES.get(rules.loadgen_scenario.value)


def result_metric(detail: DetailLog, rules: ScenarioRules) -> ResultMetric:
    """The scenario's metric from the detail log. LogError where it, or samples a second beside it, is absent or no
    number, and where the metric is not above 0.
    """
    metric = rules.metric.value
    if (rate := sample_rate_key(rules)) is not None:
        _number(detail, rate, rules)
    value = _number(detail, metric.key, rules)
    if not value > 0:
        raise LogError(f"{metric.key} is {value}", detail.path, detail.lines.get(metric.key), expected="above 0")
    return ResultMetric(metric.key, value / metric.divide_by, metric.units)


def _number(detail: DetailLog, key: str, rules: ScenarioRules) -> int | float:
    value = detail.number(key)
    if value is None:
        raise LogError(f"no {key}", detail.path, expected=f"a performance log of {rules.loadgen_scenario.value}")
    return value


def mean_answer_tokens(detail: DetailLog, rules: ScenarioRules) -> float | None:
    """Tokens an answer had in the mean, from LoadGen's own two rates; None where the log lacks one of them."""
    tokens, samples = (detail.number(key) for key in (rules.metric.value.key, sample_rate_key(rules) or ""))
    if tokens is None or samples is None or not samples > 0:
        return None
    return tokens / samples
