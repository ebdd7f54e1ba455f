"""What an audit's own LoadGen run must be like: the approved settings, every row issued once, the ruled effort."""

from __future__ import annotations

from collections.abc import Iterator

from harness.gate import audit_rules as R  # noqa: N812 - a namespace of constants
from harness.gate.findings import Finding, Severity
from harness.gate.run_facts import RunFacts

_MODE = "effective_test_mode"
"""Told of as LG-MODE, as in every leg."""
_UNIQUE = "effective_performance_issue_unique"
"""Asked where the round's audit.config has it; where it has not, to issue each row once is no fault."""

_EFFORT_RULING = "TEST07-EFFORT"


def _config(facts: RunFacts) -> Iterator[Finding]:
    for key, approved in facts.audit.config.logged.value.items():
        # A deliberately short audit asks fewer rows, and is not submittable for being short.
        wanted = facts.expectation.dataset_rows if approved == facts.audit.rows.value else approved
        logged = facts.detail.value(key)
        if key == _MODE or (key == _UNIQUE and not facts.audit.covers_all_rows.value):
            continue
        if not (type(logged) is type(wanted) and logged == wanted):
            place, name = facts.at(key), key.removeprefix("effective_")
            yield R.CONFIG.broken(place, f"{name} {logged}", f"{wanted}", source=facts.audit.config.settings.source)


def _count(facts: RunFacts) -> Iterator[Finding]:
    issued, rows = facts.detail.issued_samples, facts.expectation.dataset_rows
    if issued != rows:
        yield R.COUNT.broken(facts.at("result_query_count"), f"{issued} samples issued", f"{rows}")


def _coverage(facts: RunFacts) -> Iterator[Finding]:
    """Every row once. Offline issues a permutation of the rows in any case, Server only where it is told to."""
    covers, rows, coverage = facts.audit.covers_all_rows, facts.expectation.dataset_rows, facts.coverage
    if not covers.value:
        return
    if facts.loadgen_scenario != "Offline" and facts.detail.flag(_UNIQUE) is not True:
        found = "samples drawn with replacement: some rows are asked twice and others never"
        yield R.COVERAGE.broken(facts.at(_UNIQUE), found, source=covers.source)
    if coverage is not None and (not coverage.entries == coverage.distinct == rows or coverage.outside):
        found = f"{coverage.entries} entries of {coverage.distinct} rows, {coverage.outside} outside the data set"
        yield R.COVERAGE.broken(facts.path, found, f"{rows} rows, each once", source=covers.source)


def _effort(facts: RunFacts) -> Iterator[Finding]:
    ruled, said = facts.audit.reasoning_effort, facts.reasoning_effort
    if said is None or said == ruled.value:
        return
    ruling = {r.id: r for r in facts.pack.rulings}.get(_EFFORT_RULING)
    breach = ruling.breach if ruling is not None and facts.leg in ruling.concerns.legs else None
    severity = None if breach is None else Severity(breach)
    found = f"prompts of reasoning effort {said}"
    yield R.EFFORT.broken(facts.path, found, ruled.value, severity=severity, source=ruled.source)


CHECKS = (_config, _count, _coverage, _effort)
