"""An audit leg's verdict file: by upstream's programs where there is a clone, by the harness alone elsewhere."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from harness.benchmarks.base import Benchmark, Dataset, Score
from harness.gate.audit_verdict import FAIL, MEAN, check_verdict, numbers
from harness.gate.findings import Finding
from harness.gate.ledger_rules import AUDIT
from harness.gate.run_facts import Coverage
from harness.ledger.record import AuditEcho
from harness.ledger.store import write_atomically
from harness.logs import AccuracyLog
from harness.rules.audits import AuditRules
from harness.runs.audit import AuditVerdict, Lengths, judge_lengths, judge_score
from harness.runs.plan import PlannedLeg
from harness.runs.reference import SCORE, Reference, ReferenceFailed, differences


@dataclass(frozen=True, slots=True)
class AuditedLeg:
    """What an audit came to, the gate's findings on it, and why the reference did not verify where it was to."""

    echo: AuditEcho
    findings: tuple[Finding, ...]
    note: str | None


def covers_each_row_once(coverage: Coverage, rows: int) -> bool:
    """Whether a log holds every row of the data set once and nothing else."""
    return coverage.entries == coverage.distinct == rows and not coverage.outside


def judge_audit(
    leg: PlannedLeg, folder: Path, log: AccuracyLog, score: Score | None, dataset: Dataset, benchmark: Benchmark
) -> AuditedLeg:
    """Judges an audit by its log, and writes the verdict file into the run's folder.

    ``score`` is that of the answers where the audit asks for one, None where they could not be scored.
    """
    audit = leg.audit_rules
    if audit is None:
        raise ValueError(f"{leg.name} is no audit")
    ours = (
        judge_lengths(Lengths.of(len(entry.tokens) for entry in log), audit)
        if audit.score is None
        else judge_score(score, benchmark, audit)
    )
    filed, found, note = _filed(leg, folder, ours, audit, dataset)
    path = PurePosixPath(audit.verdict_file.value)
    write_atomically(folder / path, filed.text)
    return AuditedLeg(filed.echo, (*found, *check_verdict(filed.text, path, audit)), note)


def _filed(
    leg: PlannedLeg, folder: Path, ours: AuditVerdict, audit: AuditRules, dataset: Dataset
) -> tuple[AuditVerdict, list[Finding], str | None]:
    reference = Reference.from_environment()
    if reference is None:
        return ours, [], None
    try:
        text = reference.verify(folder, leg.leg, leg.benchmark, audit, dataset)
    except ReferenceFailed as error:
        return ours, [], f"verified by the harness alone, the reference did not: {error}"
    passed = {line.strip() for line in text.splitlines()}
    echo = ours.echo.model_copy(
        update={
            "value": numbers(text, SCORE if audit.score is not None else MEAN)[-1],
            "passed": audit.pass_text.value in passed and FAIL not in passed,
            "verifier": reference.verifier(leg.leg, leg.benchmark),
        }
    )
    path = audit.verdict_file.value
    found = [
        AUDIT.broken(path, f"the reference's {theirs}", f"the harness's {own}")
        for theirs, own in differences(text, ours, audit)
    ]
    return AuditVerdict(echo, text), found, None
