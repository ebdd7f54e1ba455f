"""The gate's verdicts and the official checker's, held against each other row by row."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from harness.gate.findings import Finding, Severity, Verdict, ordered, rule, verdict
from harness.gate.official_report import OfficialReport, OfficialVerdict, RowVerdict
from harness.gate.row import RowReport
from harness.gate.row_layout import RowPlace
from harness.gate.tree import TreeReport

_CHECKER = "mlcommons/inference tools/submission/submission_checker"

OFFICIAL = rule(
    "OFFICIAL-CHECKER",
    Severity.REJECT,
    "the official checker's acceptance of every row",
    mend="see its log (--report-dir keeps it); where the gate found nothing, the gate has a hole: report it",
    source=_CHECKER,
)
OFFICIAL_ROWS = rule(
    "OFFICIAL-ROWS",
    Severity.REVIEW,
    "every row of the tree in the official checker's table",
    mend="look for the row in its log: a folder that it passes over is a result that will not be published",
    source=f"{_CHECKER} (says that a submission looks OK whose rows it never saw)",
)
OFFICIAL_UNUSABLE = rule(
    "OFFICIAL-UNUSABLE",
    Severity.REVIEW,
    "the official checker beside the gate, where MLPERF_INFERENCE_DIR asks for it",
    mend="set MLPERF_INFERENCE_DIR to a whole clone that knows the round, or unset it",
    source="harness: the official checker was asked for and did not run",
)

_OFFICIAL_IS_MILDER = "official accepts, gate rejects"
_GATE_IS_MILDER = "official refuses, gate passes"
_BELOW_A_SCENARIO = 2
"""performance/run_1/<log>: how the checker names a result."""

_LINE = re.compile(r":\d+$")
_ANSWERED = {OfficialVerdict.OK, OfficialVerdict.ERRORS, OfficialVerdict.NO_ROWS}


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A row of which the two do not say the same. ``reasons``: the rules of the one, or the other's own lines."""

    place: RowPlace
    what: str
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Assessment:
    """The gate's report and the official checker's, the findings of both, and where they disagree."""

    report: TreeReport
    official: OfficialReport
    findings: tuple[Finding, ...] = field(repr=False)
    disagreements: tuple[Disagreement, ...]

    @property
    def verdict(self) -> Verdict:
        """The worst of all findings."""
        return verdict(self.findings)


def assess(report: TreeReport, official: OfficialReport) -> Assessment:
    """Holds the two against each other."""
    findings = ordered([*report.findings, *official_findings(report, official)])
    return Assessment(report, official, tuple(findings), tuple(disagreements(report, official)))


def disagreements(report: TreeReport, official: OfficialReport) -> list[Disagreement]:
    """The rows that one of the two lets pass and the other does not."""
    return [found for row in report.rows if (found := _disagreement(row, official)) is not None]


def _disagreement(row: RowReport, official: OfficialReport) -> Disagreement | None:
    theirs, rejected = official.of(row.place), row.verdict is Verdict.REJECT
    if theirs is RowVerdict.ACCEPTS and rejected:
        rules = dict.fromkeys(f.rule for f in row.findings if f.severity is Severity.REJECT)
        return Disagreement(row.place, _OFFICIAL_IS_MILDER, tuple(rules))
    if theirs is RowVerdict.REFUSES and not rejected:
        return Disagreement(row.place, _GATE_IS_MILDER, official.errors_of(row.place) or ("it does not say why",))
    return None


def official_findings(report: TreeReport, official: OfficialReport) -> list[Finding]:
    """What the official checker's say adds to the gate's findings; nothing where it accepts or did not run."""
    if official.verdict is OfficialVerdict.UNUSABLE:
        return [OFFICIAL_UNUSABLE.broken(".", f"could not run: {official.detail}")]
    found = [*_milder_than_official(report, official), *_without_a_row(report, official)]
    if official.verdict in _ANSWERED:
        found += _passed_over(report, official)
    if official.verdict in (OfficialVerdict.OK, OfficialVerdict.NOT_RUN):
        return found
    return found if _is_told(report, official) else [OFFICIAL.broken(".", _whole(official)), *found]


def _milder_than_official(report: TreeReport, official: OfficialReport) -> Iterator[Finding]:
    for found in disagreements(report, official):
        if found.what == _GATE_IS_MILDER:
            yield OFFICIAL.broken(found.place.folder, f"{found.what}: {'; '.join(found.reasons)}")


def _without_a_row(report: TreeReport, official: OfficialReport) -> Iterator[Finding]:
    """What it refuses where the gate has neither a row nor a reject: a benchmark that the gate does not check."""
    known = [row.place.folder for row in report.rows]
    rejected = [_path(f) for f in report.findings if f.severity is Severity.REJECT]
    known += [path for path in rejected if path.parts]  # the whole tree speaks of no folder
    for path in map(PurePosixPath, official.refused):
        scenario = path.parents[min(_BELOW_A_SCENARIO, len(path.parents) - 1)]
        if not any(path.is_relative_to(folder) or folder.is_relative_to(scenario) for folder in known):
            yield OFFICIAL.broken(path, "no result by the official checker, no row by the gate")


def _path(finding: Finding) -> PurePosixPath:
    return PurePosixPath(_LINE.sub("", finding.path))


def _passed_over(report: TreeReport, official: OfficialReport) -> Iterator[Finding]:
    for row in report.rows:
        if official.of(row.place) is RowVerdict.IGNORES:
            found = f"{official.verdict.value}: it neither accepted nor refused this row"
            yield OFFICIAL_ROWS.broken(row.place.folder, found)


def _is_told(report: TreeReport, official: OfficialReport) -> bool:
    """Whether its errors are results that it refuses: the gate rejects those too, or there is a finding for each."""
    refused = official.refused or [row for row in report.rows if official.of(row.place) is RowVerdict.REFUSES]
    return official.verdict is OfficialVerdict.ERRORS and bool(refused)


def _whole(official: OfficialReport) -> str:
    first = f": {official.errors[0]}" if official.errors else ""
    return f"{official.verdict.value}: {official.detail}{first}"
