"""The number of a run of the endpoints client that is published, as the official checker computes it."""

from __future__ import annotations

from harness.gate.endpoints_facts import EndpointsFacts
from harness.gate.metric import ResultMetric


class NoMetric(Exception):
    """A report without the metric. The message is what a finding says."""


_NS_PER_S = 1_000_000_000
_RATE = "qps"


def endpoints_metric(facts: EndpointsFacts) -> ResultMetric:
    """The scenario's metric in the units that it really has, with the label of the official table where that differs.

    NoMetric where it is absent or not above 0, LogError where it is no number; for tokens a second the samples a second
    must be there too, which the official checker reads before.
    """
    ruled = facts.scenario_rules.endpoints_metric
    if ruled is None:
        raise NoMetric("no metric of this scenario in the endpoints layout")
    metric = ruled.value
    value: float | None
    if isinstance(metric.key, tuple):
        key, value = " / ".join(metric.key), samples_per_second(facts)
    elif metric.key == _RATE:
        key, value = metric.key, samples_per_second(facts, given=True)
    else:
        key, value = metric.key, facts.log.number(metric.key)
        if metric.divide_by == 1:  # a rate of tokens
            samples_per_second(facts, given=True)
    if value is None or not value > 0:
        raise NoMetric(f"{key} is {value}")
    units = metric.units if metric.units == metric.labelled else f"{metric.units} (labelled {metric.labelled})"
    return ResultMetric(key, value / metric.divide_by, units)


def samples_per_second(facts: EndpointsFacts, *, given: bool = False) -> float:
    """Samples issued over the measured duration, or with ``given`` the report's own rate where it has one."""
    if given:
        rate, kind = facts.number("qps"), facts.log.text(facts.key("scenario"))
        if rate is not None:
            return float(rate)
        if kind is None or facts.layout.scenario_of_type.value.get(kind.lower()) == "Offline":
            raise NoMetric(f"no qps, and type {kind}")
    issued, duration_ns = facts.number("issued"), facts.number("duration_ns")
    if not issued or not duration_ns:
        raise NoMetric(f"{issued} samples in {duration_ns} ns")
    return issued / (duration_ns / _NS_PER_S)
