"""Checks of what LoadGen measured: its verdict, how long the run was, latencies, the metric and the answers' length.

Offline lasts until its last completion (``result_max_latency_ns`` of its one query), Server until its last issued query
was scheduled (LoadGen's own measure; the wall clock goes on until the last answer), SingleStream until its last query
was answered (queries over LoadGen's rate of them).
"""

from __future__ import annotations

from collections.abc import Iterator

from harness.gate import run_rules as R  # noqa: N812 - a namespace of constants
from harness.gate.findings import Finding, Severity
from harness.gate.metric import mean_answer_tokens, result_metric
from harness.gate.run_facts import RunFacts
from harness.logs import LogError

_NS_PER_MS = 1_000_000
LOGGED_DIGITS = 1e-5  # LoadGen logs rates with six digits
_CLOCK_SLACK = 0.01  # a wall clock that is being corrected
_CLOCK_SLACK_NS = 50 * _NS_PER_MS
_RESULTS = {
    "SingleStream": "early_stopping_latency_ss",
    "MultiStream": "early_stopping_latency_ms",
    "Server": "result_completed_samples_per_sec",
    "Offline": "result_samples_per_second",
}
"""LoadGen's result by its scenario, which the official checker reads where a benchmark has none of its own."""
_REASONS = ("result_min_duration_met", "result_min_queries_met", "result_perf_constraints_met")


def validity(facts: RunFacts) -> Iterator[Finding]:
    """LoadGen's verdict with its reasons, and early stopping."""
    detail = facts.detail
    unmet = [key for key in _REASONS if detail.flag(key) is False]
    if detail.validity != "VALID":
        reasons = "; ".join([*detail.invalid_reasons, *(f"{key} false" for key in unmet)])
        said = f"LoadGen says {detail.validity}" + (f": {reasons}" if reasons else "")
        yield R.VALID.broken(facts.at("result_validity"), said)
    elif unmet:
        yield R.VALID.broken(facts.at(unmet[0]), f"LoadGen says VALID, and {', '.join(unmet)} false", "true")
    if facts.loadgen_scenario in facts.pack.early_stopping_scenarios.value:
        key = "early_stopping_met"
        if detail.flag(key) is not True:
            yield R.EARLY_STOPPING.broken(facts.at(key), f"{key} {detail.value(key)}")


def duration(facts: RunFacts) -> Iterator[Finding]:
    """The duration that was set, the one that was measured, and the wall clock beside it."""
    detail, expectation = facts.detail, facts.expectation
    setting, set_least = detail.number("effective_min_duration_ms"), expectation.min_duration_ms
    if setting is None or not setting >= set_least:
        place = facts.at("effective_min_duration_ms")
        yield R.DURATION_SETTING.broken(place, f"min_duration {setting} ms", f"at least {set_least} ms")
    least_ms = expectation.measured_duration_ms
    what, key, measured_ns = lasted(facts)
    if measured_ns is None:
        yield R.DURATION.broken(facts.path, f"the log does not tell {what}", f"at least {least_ms} ms")
        return
    if not measured_ns >= least_ms * _NS_PER_MS * (1 - LOGGED_DIGITS):
        yield R.DURATION.broken(facts.at(key), f"{measured_ns / 1e6:.1f} ms to {what}", f"at least {least_ms} ms")
    wall_ns = detail.wall_span_ns
    if wall_ns is None or not wall_ns >= measured_ns * (1 - _CLOCK_SLACK) - _CLOCK_SLACK_NS:
        found = "no wall clock in the log" if wall_ns is None else f"{wall_ns / 1e6:.0f} ms by the wall clock"
        yield R.CLOCK.broken(facts.at("power_end"), found, f"not less than the {measured_ns / 1e6:.0f} ms to {what}")


def lasted(facts: RunFacts) -> tuple[str, str, int | float | None]:
    """What ends the run, the key that tells it, and the nanoseconds until then."""
    detail = facts.detail
    if facts.loadgen_scenario == "Offline":
        return "the last completion", "result_max_latency_ns", detail.number("result_max_latency_ns")
    if facts.loadgen_scenario == "Server":
        return "the last scheduled query", "result_scheduled_samples_per_sec", detail.scheduled_span_ns
    if facts.loadgen_scenario == "SingleStream":
        return "the last issued query", "result_qps_with_loadgen_overhead", detail.issued_span_ns
    return "the end by the wall clock", "power_end", detail.wall_span_ns


def latencies(facts: RunFacts) -> Iterator[Finding]:
    """Latencies within the limits of the folder's scenario. The official checker takes those of LoadGen's scenario, and
    in open no others are enforced.
    """
    own, tools, detail = facts.scenario_rules, facts.tool_rules, facts.detail
    for rule, limit, enforced, key in (
        (
            R.TTFT,
            own.ttft_p99_below_ms,
            tools.ttft_p99_below_ms,
            "result_first_token_99.00_percentile_latency_ns",
        ),
        (
            R.TPOT,
            own.tpot_p99_below_ms,
            tools.tpot_p99_below_ms,
            "result_time_per_output_token_99.00_percentile_ns",
        ),
    ):
        measured = detail.number(key)
        if limit is None or (measured is not None and measured < limit.value * _NS_PER_MS):
            continue
        passes = measured is not None and (enforced is None or measured < enforced.value * _NS_PER_MS)
        severity = Severity.REVIEW if passes and not facts.strict else None
        expected = f"below {limit.value * _NS_PER_MS:.0f} ns"
        yield rule.broken(facts.at(key), f"{measured} ns", expected, severity=severity, source=limit.source)
    yield from _whole_latency(facts)


def _whole_latency(facts: RunFacts) -> Iterator[Finding]:
    limit, key = facts.scenario_rules.latency_p99_at_most_ms, "result_99.00_percentile_latency_ns"
    if limit is None:
        return
    measured = facts.detail.number(key)
    if measured is None or not measured <= limit.value * _NS_PER_MS:
        expected = f"at most {limit.value * _NS_PER_MS:.0f} ns"
        severity = None if facts.strict else Severity.REVIEW
        yield R.LATENCY.broken(facts.at(key), f"{measured} ns", expected, severity=severity, source=limit.source)


def metric(facts: RunFacts) -> Iterator[Finding]:
    """The number that is published, the rate that the official checker reads before it, and the mean answer."""
    if not facts.ruled:
        yield from _any_metric(facts)
        return
    try:
        result_metric(facts.detail, facts.scenario_rules)
    except LogError as error:
        place = facts.path if error.line is None else f"{facts.path}:{error.line}"
        yield R.METRIC.broken(place, error.what)
        return
    if facts.rules.use_token_latencies.value:
        yield from _tokens(facts)


def _any_metric(facts: RunFacts) -> Iterator[Finding]:
    key = _RESULTS.get(facts.loadgen_scenario, "")
    value = facts.detail.number(key)
    if value is None or not value > 0:
        yield R.METRIC.broken(facts.at(key), f"{key or 'result of an unknown scenario'} {value}")


def _tokens(facts: RunFacts) -> Iterator[Finding]:
    caps, window = facts.rules.output_caps, facts.expectation.mean_tokens
    mean, place = (
        mean_answer_tokens(facts.detail, facts.scenario_rules),
        facts.at(facts.scenario_rules.metric.value.key),
    )
    found = "no mean answer length in the log" if mean is None else f"{mean:.2f} tokens an answer in the mean"
    least, most = facts.rules.min_answer_tokens.value, None if caps is None else caps.performance.value
    if mean is None or not _within(mean, least, most):
        yield R.TOKENS.broken(place, found, f"{least} to {most}")
    elif window is not None and not _within(mean, window.at_least, window.at_most):
        severity = Severity.REVIEW if facts.strict else Severity.NOTE  # open may run another model
        yield R.TOKENS.broken(place, found, f"{window.at_least} to {window.at_most}", severity=severity)


def _within(mean: float, least: float, most: float | None) -> bool:
    return mean >= least * (1 - LOGGED_DIGITS) and (most is None or mean <= most * (1 + LOGGED_DIGITS))
