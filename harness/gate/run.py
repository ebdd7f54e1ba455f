"""The gate's checks of one run: the same right after a leg ends and on a tree that a stranger hands over.

This module holds what every leg has in common; settings, measurements and audits have modules of their own.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from harness.gate import audit_run, run_measures, run_settings
from harness.gate import run_rules as R  # noqa: N812 - a namespace of constants
from harness.gate.findings import Finding, Severity, ordered
from harness.gate.run_facts import ACCURACY, AUDITS, MODES, PERFORMANCE, RunFacts
from harness.logs import LogError

Check = Callable[[RunFacts], Iterable[Finding]]


def check_run(facts: RunFacts) -> list[Finding]:
    """Everything that is wrong with one run, the worst first; an empty list is a run with nothing to say against."""
    checks = _CHECKS[facts.leg] if facts.ruled else [check for check in _CHECKS[facts.leg] if check not in _BY_SCENARIO]
    found = [finding for check in checks for finding in _guarded(check, facts)]
    if facts.leg in AUDITS:
        found = [_milder(finding) for finding in found]
    return ordered(found)


def _milder(finding: Finding) -> Finding:
    """An audit's finding: what no tool asks of its log is a question, not a refusal."""
    return dataclasses.replace(finding, severity=Severity.REVIEW) if finding.rule in _MILDER_IN_AUDITS else finding


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
    wanted = facts.loadgen_scenario
    if facts.detail.scenario != wanted:
        place = facts.at("effective_scenario")
        yield R.SCENARIO.broken(place, f"scenario {facts.detail.scenario}", f"{wanted} for {facts.scenario}")


def _library(facts: RunFacts) -> Iterator[Finding]:
    detail, rows = facts.detail, facts.expectation.dataset_rows
    total = detail.reported_total_count
    more = facts.expectation.more_rows
    expected = f"{rows} rows" + (" or more" if more else "")
    if total is None or not (total >= rows if more else total == rows):
        place = facts.at("qsl_reported_total_count")
        yield R.LIBRARY.broken(place, f"a sample library of {total} rows", expected)
    loaded, distinct = detail.loaded_samples, detail.loaded_distinct
    if not (distinct == (total if more else rows) and loaded - distinct in (0, _repeated(facts))):
        yield R.LIBRARY.broken(facts.path, f"{loaded} rows loaded, {distinct} of them different", expected)


def _repeated(facts: RunFacts) -> int:
    """The rows that LoadGen loads twice so that the last query of several samples is a whole one."""
    samples = facts.detail.integer("effective_samples_per_query")
    return samples - 1 if facts.loadgen_scenario == "MultiStream" and samples else 0


def _sample_count(facts: RunFacts) -> Iterator[Finding]:
    detail, rows = facts.detail, facts.expectation.logged_rows
    if facts.leg == ACCURACY:
        key = "effective_accuracy_sample_count"
        if detail.value(key) is None:
            key = "qsl_reported_total_count"  # older LoadGens log no other
        holds, expected = detail.integer(key) == rows, f"{rows}"
    else:
        key = "effective_performance_sample_count"
        count = detail.integer(key)
        holds, expected = count is not None and count >= rows, f"at least {rows}"
    if not holds:
        yield R.SAMPLE_COUNT.broken(facts.at(key), f"{key} {detail.value(key)}", expected)


def _issued(facts: RunFacts) -> Iterator[Finding]:
    detail, expectation = facts.detail, facts.expectation
    issued = detail.issued_samples
    least = expectation.dataset_rows if expectation.issued_rows is None else expectation.issued_rows
    if facts.leg not in AUDITS and (issued is None or not issued >= least):
        # Of a scenario that open alone runs, nobody says how many samples there must be.
        severity = None if facts.ruled else Severity.REVIEW
        found = f"{issued} samples issued"
        yield R.COVERAGE.broken(facts.at("result_query_count"), found, f"at least {least}", severity=severity)
    generated, queries = detail.integer("generated_query_count"), detail.integer("result_query_count")
    # A stream of single queries is generated with some to spare, and ends when it was long enough.
    if facts.loadgen_scenario in _ALL_ARE_ISSUED and queries is not None and queries != generated:
        found = f"{queries} queries issued of {generated} generated"
        yield R.GENERATED.broken(facts.at("result_query_count"), found)


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


def _coverage(facts: RunFacts) -> Iterator[Finding]:
    coverage, rows = facts.coverage, facts.expectation.dataset_rows
    if coverage is None:
        return
    if not coverage.entries == coverage.distinct == rows or coverage.outside:
        found = f"{coverage.entries} entries of {coverage.distinct} rows, {coverage.outside} outside the data set"
        yield R.ACCURACY_COVERAGE.broken(facts.path, found, f"{rows} rows, each once")


def _answers(facts: RunFacts) -> Iterator[Finding]:
    """The answers in a whole accuracy log, of an accuracy leg or of an audit."""
    coverage = facts.coverage
    if coverage is None:
        return
    if coverage.empty:
        yield R.ACCURACY_EMPTY.broken(facts.path, f"{coverage.empty} answers without a token")
    caps = facts.rules.output_caps
    own = None if caps is None else caps.accuracy
    cap = facts.audit.output_cap if facts.leg in AUDITS else own
    if cap is not None and coverage.longest > cap.value:
        found = f"an answer of {coverage.longest} tokens"
        yield R.ACCURACY_TOKENS.broken(facts.path, found, f"at most {cap.value}", source=cap.source)
    if facts.token_rules is not None and coverage.miscounted:
        found = f"{coverage.miscounted} answers whose token count is not that of their ids"
        yield R.ACCURACY_TOKENS.broken(facts.path, found)


_ALL_ARE_ISSUED = ("Offline", "Server")
_COMMON: tuple[Check, ...] = (_log, _identity, _library, _sample_count, _issued, _counts, _summary)
_CHECKS: dict[str, tuple[Check, ...]] = {
    PERFORMANCE: (
        *_COMMON, run_measures.validity, run_measures.duration, run_settings.seeds, run_settings.token_latencies,
        run_settings.audit_settings, run_settings.equal_issue, run_settings.cut_short, run_settings.min_queries,
        run_settings.limit_settings, run_measures.latencies, run_measures.metric,
    ),
    ACCURACY: (
        *_COMMON, run_settings.seeds, run_settings.token_latencies, run_settings.audit_settings, _coverage, _answers,
    ),
    **dict.fromkeys(AUDITS, (
        *_COMMON, run_measures.validity, run_settings.seeds, run_settings.token_latencies, _answers, *audit_run.CHECKS,
    )),
}  # fmt: skip
_BY_SCENARIO: tuple[Check, ...] = (
    run_settings.min_queries,
    run_settings.limit_settings,
    run_measures.latencies,
)
"""What cannot be judged where the round has no rules for the scenario."""

_MILDER_IN_AUDITS = {R.SUMMARY.id, R.SAMPLE_COUNT.id, R.EARLY_STOPPING.id, R.GENERATED.id}
