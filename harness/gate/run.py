"""The gate's checks of one run: the same right after a leg ends and on a tree that a stranger hands over.

What is measured is taken from what LoadGen measured: Offline lasts until its last completion
(``result_max_latency_ns`` of its one query), Server until its last issued query was scheduled (LoadGen's own measure;
the wall clock goes on until the last answer).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from harness.gate import run_rules as R  # noqa: N812 - a namespace of constants
from harness.gate.findings import Finding, Severity, ordered
from harness.gate.metric import mean_answer_tokens, result_metric
from harness.gate.run_facts import ACCURACY, MODES, PERFORMANCE, RunFacts
from harness.logs import LogError

_NS_PER_MS = 1_000_000
_LOGGED_DIGITS = 1e-5  # LoadGen logs rates with six digits
_CLOCK_SLACK = 0.01  # a wall clock that is being corrected
_CLOCK_SLACK_NS = 50 * _NS_PER_MS


Check = Callable[[RunFacts], Iterable[Finding]]


def check_run(facts: RunFacts) -> list[Finding]:
    """Everything that is wrong with one run, the worst first; an empty list is a run with nothing to say against."""
    return ordered(finding for check in _CHECKS[facts.leg] for finding in _guarded(check, facts))


def _guarded(check: Check, facts: RunFacts) -> Iterator[Finding]:
    try:
        yield from check(facts)
    except LogError as error:  # a value that is not of its type
        yield unreadable(error, facts.path)


def unreadable(error: LogError, label: str | Path) -> Finding:
    """A log that cannot be read, as a finding on ``label``."""
    path = label if error.line is None else f"{label}:{error.line}"
    return R.LOG.broken(path, error.what, error.expected)


def _log(facts: RunFacts) -> Iterator[Finding]:
    detail = facts.detail
    if detail.stray_lines:
        yield R.STRAY_LINES.broken(facts.path, f"{detail.stray_lines} lines without LoadGen's marker")
    version = detail.loadgen_version
    if version is None or version.rpartition(" @ ")[2] in ("", "NA") or " @ " not in version:
        yield R.VERSION.broken(facts.at("loadgen_version"), f"LoadGen {version}")
    for record in detail.contradictions:
        yield R.CONTRADICTION.broken(f"{facts.path}:{record.line}", f"{record}, and another value before it")
    if detail.error_count:
        place = f"{facts.path}:{detail.errors[0].line}"
        yield R.ERRORS.broken(place, f"error records: {detail.error_count}, the first: {detail.errors[0]}")
    if detail.warning_count:
        place = f"{facts.path}:{detail.warnings[0].line}"
        yield R.WARNINGS.broken(place, f"warning records: {detail.warning_count}, the first: {detail.warnings[0]}")


def _identity(facts: RunFacts) -> Iterator[Finding]:
    expected = MODES[facts.leg]
    if facts.detail.mode != expected:
        yield R.MODE.broken(facts.at("effective_test_mode"), f"mode {facts.detail.mode}", expected)
    wanted = facts.scenario_rules.loadgen_scenario.value
    if facts.detail.scenario != wanted:
        place = facts.at("effective_scenario")
        yield R.SCENARIO.broken(place, f"scenario {facts.detail.scenario}", f"{wanted} for {facts.scenario}")


def _library(facts: RunFacts) -> Iterator[Finding]:
    detail, rows = facts.detail, facts.expectation.dataset_rows
    expected = f"{rows} rows"
    if detail.reported_total_count != rows:
        found = f"a sample library of {detail.reported_total_count} rows"
        yield R.LIBRARY.broken(facts.at("qsl_reported_total_count"), found, expected)
    if detail.loaded_distinct != rows:
        yield R.LIBRARY.broken(facts.path, f"{detail.loaded_distinct} different rows loaded", expected)
    key = f"effective_{facts.leg}_sample_count"
    if detail.integer(key) != rows:
        yield R.SAMPLE_COUNT.broken(facts.at(key), f"{key} {detail.value(key)}", f"{rows}")
    issued = detail.issued_samples
    if issued is None or issued < rows:
        yield R.COVERAGE.broken(facts.at("result_query_count"), f"{issued} samples issued", f"at least {rows}")


def _counts(facts: RunFacts) -> Iterator[Finding]:
    counts = facts.counts
    if counts is None:
        return
    if counts.failed:
        yield R.FAILED.broken(facts.path, f"{counts.failed} of {counts.issued} samples failed")
    if counts.outstanding:
        yield R.OUTSTANDING.broken(facts.path, f"{counts.outstanding} of {counts.issued} samples never answered")
    if counts.answered + counts.failed + counts.outstanding != counts.issued:
        states = f"{counts.answered} answered, {counts.failed} failed, {counts.outstanding} outstanding"
        yield R.SUM.broken(facts.path, f"{states}, of {counts.issued} issued")
    issued = facts.detail.issued_samples
    if issued is not None and counts.issued != issued:
        yield R.ISSUED.broken(facts.path, f"{counts.issued} samples reached the harness", f"{issued}")


def _summary(facts: RunFacts) -> Iterator[Finding]:
    summary, detail = facts.summary, facts.detail
    if summary is None:
        return
    pairs = {
        "verdict": (summary.validity, detail.validity),
        "errors": (summary.errors, detail.error_count),
        **({} if facts.leg == ACCURACY else {"scenario": (summary.scenario, detail.scenario)}),
        **({} if facts.leg == ACCURACY else {"mode": (summary.mode, detail.mode)}),
    }
    for name, (ours, theirs) in pairs.items():
        if ours != theirs:
            yield R.SUMMARY.broken(facts.path, f"{name}: summary {ours}, detail log {theirs}")
    latency = detail.number("result_max_latency_ns")
    if latency is not None and summary.stat("Max latency (ns)") != latency:
        yield R.SUMMARY.broken(facts.path, f"the summary's maximum latency is not the detail log's {latency} ns")


def _validity(facts: RunFacts) -> Iterator[Finding]:
    detail = facts.detail
    if detail.validity != "VALID":
        reasons = "; ".join(detail.invalid_reasons)
        said = f"LoadGen says {detail.validity}" + (f": {reasons}" if reasons else "")
        yield R.VALID.broken(facts.at("result_validity"), said)
    scenario = facts.scenario_rules.loadgen_scenario.value
    if scenario in facts.pack.early_stopping_scenarios.value and detail.flag("early_stopping_met") is not True:
        yield R.EARLY_STOPPING.broken(
            facts.at("early_stopping_met"), f"early_stopping_met {detail.value('early_stopping_met')}"
        )


def _duration(facts: RunFacts) -> Iterator[Finding]:
    detail, least_ms = facts.detail, facts.expectation.min_duration_ms
    setting = detail.number("effective_min_duration_ms")
    if setting is None or not setting >= least_ms:
        place = facts.at("effective_min_duration_ms")
        yield R.DURATION_SETTING.broken(place, f"min_duration {setting} ms", f"at least {least_ms} ms")
    what, key, measured_ns = _measured(facts)
    if measured_ns is None:
        yield R.DURATION.broken(facts.path, f"the log does not tell {what}", f"at least {least_ms} ms")
        return
    if measured_ns < least_ms * _NS_PER_MS * (1 - _LOGGED_DIGITS):
        yield R.DURATION.broken(facts.at(key), f"{measured_ns / 1e6:.1f} ms to {what}", f"at least {least_ms} ms")
    wall_ns = detail.wall_span_ns
    if wall_ns is None or wall_ns < measured_ns * (1 - _CLOCK_SLACK) - _CLOCK_SLACK_NS:
        found = "no wall clock in the log" if wall_ns is None else f"{wall_ns / 1e6:.0f} ms by the wall clock"
        yield R.CLOCK.broken(facts.at("power_end"), found, f"not less than the {measured_ns / 1e6:.0f} ms to {what}")


def _measured(facts: RunFacts) -> tuple[str, str, int | float | None]:
    """What ends the run, the key that tells it, and the nanoseconds until then."""
    detail, scenario = facts.detail, facts.scenario_rules.loadgen_scenario.value
    if scenario == "Offline":
        return "the last completion", "result_max_latency_ns", detail.number("result_max_latency_ns")
    if scenario == "Server":
        return "the last scheduled query", "result_scheduled_samples_per_sec", detail.scheduled_span_ns
    return "the end by the wall clock", "power_end", detail.wall_span_ns


def _seeds(facts: RunFacts) -> Iterator[Finding]:
    seeds = facts.pack.seeds
    for name, ruled in (("qsl", seeds.qsl), ("sample_index", seeds.sample_index), ("schedule", seeds.schedule)):
        key = f"effective_{name}_rng_seed"
        if facts.detail.integer(key) != ruled.value:
            found = f"{key} {facts.detail.value(key)}"
            yield R.SEEDS.broken(facts.at(key), found, str(ruled.value), source=ruled.source)


def _settings(facts: RunFacts) -> Iterator[Finding]:
    detail = facts.detail
    if facts.rules.use_token_latencies.value and detail.flag("requested_use_token_latencies") is not True:
        key = "requested_use_token_latencies"
        yield R.TOKEN_LATENCIES.broken(facts.at(key), f"use_token_latencies {detail.value(key)}")
    for name in (
        "performance_issue_unique",
        "performance_issue_same",
        "accuracy_log_sampling_target",
        "accuracy_log_probability",
    ):
        if detail.effective(name):
            yield R.AUDIT.broken(facts.at(f"effective_{name}"), f"{name} {detail.effective(name)}")
    ends = ["max_duration_ms", "max_query_count"]
    if detail.scenario == "Server":
        ends.append("max_async_queries")  # Offline's one query makes it 1 there
    for name in ends:
        if detail.effective(name):
            yield R.LIMITS_ON_RUN.broken(facts.at(f"effective_{name}"), f"{name} {detail.effective(name)}")
    if detail.value("requested_server_coalesce_queries"):
        yield R.COALESCED.broken(facts.at("requested_server_coalesce_queries"), "server_coalesce_queries on")


def _min_queries(facts: RunFacts) -> Iterator[Finding]:
    queries = facts.detail.integer("effective_min_query_count")
    if queries is None or queries < 1:
        yield R.MIN_QUERIES.broken(facts.at("effective_min_query_count"), f"min_query_count {queries}", "at least 1")
    least = facts.expectation.min_query_count
    if least is None or facts.detail.scenario != "Offline":
        return
    key = "effective_samples_per_query"
    samples = facts.detail.integer(key)
    if samples is None or samples < least:
        severity = Severity.REVIEW if facts.division == "open" else None  # the checker asks it of closed alone
        yield R.MIN_QUERIES.broken(facts.at(key), f"{samples} samples a query", f"at least {least}", severity=severity)


def _latencies(facts: RunFacts) -> Iterator[Finding]:
    rules = facts.scenario_rules
    limits = (
        (
            R.TTFT,
            rules.ttft_p99_below_ms,
            "result_first_token_99.00_percentile_latency_ns",
            "requested_server_ttft_latency",
        ),
        (
            R.TPOT,
            rules.tpot_p99_below_ms,
            "result_time_per_output_token_99.00_percentile_ns",
            "requested_server_tpot_latency",
        ),
    )
    for rule, limit, measured_key, setting_key in limits:
        if limit is None:
            continue
        limit_ns = limit.value * _NS_PER_MS
        measured = facts.detail.number(measured_key)
        if measured is None or not measured < limit_ns:
            found = f"{measured} ns"
            yield rule.broken(facts.at(measured_key), found, f"below {limit_ns:.0f} ns", source=limit.source)
        setting = facts.detail.number(setting_key)
        if setting is None or not setting <= limit_ns:
            place = facts.at(setting_key)
            yield R.LIMIT_SETTING.broken(
                place, f"{setting_key} {setting} ns", f"at most {limit_ns:.0f} ns", source=limit.source
            )


def _target_latency(facts: RunFacts) -> Iterator[Finding]:
    limit, key = facts.scenario_rules.target_latency_at_most_ms, "effective_target_latency_ns"
    if limit is None:
        return
    setting = facts.detail.number(key)
    if setting is None or not setting <= limit.value * _NS_PER_MS:
        expected = f"at most {limit.value * _NS_PER_MS:.0f} ns"
        yield R.LIMIT_SETTING.broken(facts.at(key), f"{key} {setting} ns", expected, source=limit.source)


def _metric(facts: RunFacts) -> Iterator[Finding]:
    try:
        result_metric(facts.detail, facts.scenario_rules)
    except LogError as error:
        place = facts.path if error.line is None else f"{facts.path}:{error.line}"
        yield R.METRIC.broken(place, error.what)
        return
    caps = facts.rules.output_caps
    if not facts.rules.use_token_latencies.value or caps is None:
        return
    mean = mean_answer_tokens(facts.detail, facts.scenario_rules)
    least, most = facts.rules.min_answer_tokens.value, caps.performance.value
    if mean is None or not least * (1 - _LOGGED_DIGITS) <= mean <= most * (1 + _LOGGED_DIGITS):
        found = "no mean answer length in the log" if mean is None else f"{mean:.2f} tokens an answer in the mean"
        yield R.TOKENS.broken(facts.at(facts.scenario_rules.metric.value.key), found, f"{least} to {most}")


def _coverage(facts: RunFacts) -> Iterator[Finding]:
    coverage, rows = facts.coverage, facts.expectation.dataset_rows
    if coverage is None:
        return
    if not coverage.entries == coverage.distinct == rows or coverage.outside:
        found = f"{coverage.entries} entries of {coverage.distinct} rows, {coverage.outside} outside the data set"
        yield R.ACCURACY_COVERAGE.broken(facts.path, found, f"{rows} rows, each once")
    if coverage.empty:
        yield R.ACCURACY_EMPTY.broken(facts.path, f"{coverage.empty} answers without a token")


_CHECKS: dict[str, tuple[Check, ...]] = {
    PERFORMANCE: (
        _log, _identity, _library, _counts, _summary, _validity, _duration,
        _seeds, _settings, _min_queries, _latencies, _target_latency, _metric,
    ),
    ACCURACY: (_log, _identity, _library, _counts, _summary, _coverage),
}  # fmt: skip
