"""What a leg that ran to its end came to: score, verdict, result. The verdict is the gate's checks, no copy of them."""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Iterator
from pathlib import Path

from harness.benchmarks.base import Benchmark, Dataset
from harness.clients.loadgen import user_conf
from harness.clients.loadgen.job import OUTCOME, Outcome
from harness.engines.base import PROMPTS_DIFFER
from harness.events import Observer, ignore
from harness.gate.error_correction import check_run_memory
from harness.gate.findings import Finding, Severity
from harness.gate.ledger_rules import COMPARISON, COUNT, MISREAD, PROMPTS
from harness.gate.metric import result_metric
from harness.gate.run import check_run
from harness.gate.run_facts import ACCURACY as ACCURACY_LEG
from harness.gate.run_facts import AUDITS, PERFORMANCE, Coverage, Expectation, RunFacts
from harness.ledger import RunRecord, State
from harness.ledger.hashes import hash_files
from harness.ledger.record import Comparison, Result, Verdict, VerdictFinding
from harness.ledger.samples import read_samples
from harness.ledger.store import ACCURACY, ACCURACY_TXT, DETAIL, LOGS, SAMPLES, SUMMARY, USER_CONF, write_atomically
from harness.logs import AccuracyLog, DetailLog, LogError, SummaryLog
from harness.runs.audit_leg import judge_audit
from harness.runs.compare import COUNTS, compare
from harness.runs.endings import told
from harness.runs.plan import PlannedLeg
from harness.runs.scoring import score_echo, score_log
from harness.runs.trajectories import trajectories_of
from harness.runs.turns import judge_turns

_RATIO = 0.05
_SLACK_NS = 20e6
"""Ours may be off LoadGen's by so much before a reader is told: the two clocks start at different moments."""


def conclude(
    leg: PlannedLeg,
    folder: Path,
    record: RunRecord,
    outcome: Outcome,
    rows: int,
    dataset: Dataset,
    benchmark: Benchmark,
    observer: Observer = ignore,
) -> RunRecord:
    """The finished record. ``rows`` is how many rows of the data set the leg asked.

    Writes accuracy.txt for an accuracy leg, the verdict file for an audit. Raises LogError where LoadGen's logs cannot
    be read, RunBroke where the accuracy log does not hold each row once.
    """
    logs = folder / LOGS
    detail, summary = DetailLog.read(logs / DETAIL), SummaryLog.read(logs / SUMMARY)
    comparisons = compare(read_samples(folder / SAMPLES), detail.values)
    log = AccuracyLog(logs / ACCURACY)
    coverage = None if leg.leg == PERFORMANCE else Coverage.of(log, rows)
    score = None if coverage is None else score_log(leg, log, coverage, dataset.head(rows), benchmark, observer)
    if leg.leg == ACCURACY_LEG and score is not None:
        write_atomically(folder / ACCURACY_TXT, benchmark.accuracy_text(score))
    audited = judge_audit(leg, folder, log, score, dataset, benchmark) if leg.leg in AUDITS else None
    expectation = _expectation(leg, rows, whole=dataset.whole, different=_different(leg, rows, record, dataset))
    facts = _facts(leg, expectation, detail, summary, outcome, coverage)
    turns = judge_turns(leg, folder, record, outcome, dataset.head(rows)) if leg.leg == PERFORMANCE else None
    findings = [
        *(audited.findings if audited else ()),
        *check_run(facts),
        *_disagreements(comparisons),
        *_misread(folder, detail),
        *_miscounted(outcome),
        *check_run_memory(record, leg.pack),
        *(turns.findings if turns else ()),
    ]
    marks = [*record.not_submittable, *(["failed samples"] if outcome.counts.failed else [])]
    return record.model_copy(
        update=told(outcome)
        | {
            "state": State.FINISHED,
            "ended_at": record.ended_at or datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
            "turn_figures": turns.figures if turns else None,
            "hashes": hash_files(folder),
            "verdict": _verdict(findings, detail),
            "result": _result(leg, detail),
            "accuracy": None if score is None else score_echo(score, outcome.counts),
            "audit": audited.echo if audited else None,
            "note": audited.note if audited else record.note,
            "comparisons": comparisons,
            "not_submittable": marks,
        }
    )


def _facts(
    leg: PlannedLeg,
    expectation: Expectation,
    detail: DetailLog,
    summary: SummaryLog,
    outcome: Outcome,
    coverage: Coverage | None,
) -> RunFacts:
    return RunFacts(
        leg=leg.leg,
        scenario=leg.scenario,
        benchmark=leg.benchmark,
        pack=leg.pack,
        expectation=expectation,
        detail=detail,
        summary=summary,
        counts=outcome.counts,
        coverage=coverage,
        label=f"{LOGS}/{DETAIL}",
    )


def _expectation(leg: PlannedLeg, rows: int, *, whole: bool, different: int | None = None) -> Expectation:
    """The round's demands. A short run, or one over a stand-in of fewer rows, is judged by what it was shortened to,
    which is a mark of its own.

    So is one of trajectories, of which the round has no row: by its own library, ``different`` ones of which must have
    been asked.
    """
    ruled = Expectation.of_round(leg.pack, leg.benchmark, leg.scenario, leg.leg)
    if leg.leg in AUDITS or (whole and not leg.test_run and different is None):  # no audit is ever short
        return ruled
    fewer = dataclasses.replace(
        ruled,
        dataset_rows=rows,
        logged_rows=rows,
        mean_tokens=None,
        min_query_count=min(rows, ruled.min_query_count) if ruled.min_query_count else None,
        more_rows=False if different is not None else ruled.more_rows,
        issued_rows=different,
    )
    if not leg.test_run:
        return fewer
    short_ms = leg.config.test_run.min_duration_ms
    return dataclasses.replace(fewer, min_duration_ms=short_ms, measured_duration_ms=short_ms)


def _different(leg: PlannedLeg, rows: int, record: RunRecord, dataset: Dataset) -> int | None:
    """How many different trajectories a leg's library has; None where its rows are none."""
    return min(rows, trajectories_of(leg, record.dataset.rows)) if dataset.trajectories else None


def _verdict(findings: list[Finding], detail: DetailLog) -> Verdict:
    return Verdict(
        valid=all(finding.severity is not Severity.REJECT for finding in findings),
        loadgen=detail.validity,
        findings=[
            VerdictFinding(**(dataclasses.asdict(finding) | {"severity": finding.severity.value}))
            for finding in findings
        ],
    )


def _result(leg: PlannedLeg, detail: DetailLog) -> Result | None:
    if leg.leg != PERFORMANCE:
        return None
    try:
        metric = result_metric(detail, leg.scenario_rules)
    except LogError:
        return None  # a run in which nothing was answered has no number; the findings say why
    return Result(key=metric.key, value=metric.value, units=metric.units)


def _disagreements(comparisons: list[Comparison]) -> Iterator[Finding]:
    for pair in comparisons:
        off = abs(pair.harness - pair.loadgen)
        found, expected = f"{pair.figure} {pair.harness:.6g}", f"LoadGen's {pair.loadgen:.6g}"
        if pair.figure in COUNTS:
            if off:
                yield COUNT.broken(SAMPLES, found, expected)
        elif off > _RATIO * pair.loadgen and not (pair.figure.endswith("_ns") and off < _SLACK_NS):
            yield COMPARISON.broken(SAMPLES, found, expected)


def _miscounted(outcome: Outcome) -> Iterator[Finding]:
    differ = outcome.engine_counters.get(PROMPTS_DIFFER, 0)
    if differ:
        found = f"{differ} of {outcome.counts.issued} prompts differ"
        yield PROMPTS.broken(OUTCOME, found)


def _misread(folder: Path, detail: DetailLog) -> Iterator[Finding]:
    settings = user_conf.parse((folder / USER_CONF).read_text(encoding="utf-8"))
    for sentence in user_conf.misread(settings, detail.values):
        yield MISREAD.broken(USER_CONF, sentence)
