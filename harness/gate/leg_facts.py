"""The files of one leg in a tree as the facts that the checks of a run want, whichever folder the leg is in."""

from __future__ import annotations

from pathlib import PurePosixPath

from harness.gate import run_rules
from harness.gate.findings import Finding, Severity
from harness.gate.index import TreeIndex
from harness.gate.row_layout import RowPlace
from harness.gate.run_facts import Coverage, Expectation, RunFacts
from harness.logs import DetailLog, LogError, SummaryLog
from harness.rules import RulePack

DETAIL = "mlperf_log_detail.txt"
SUMMARY = "mlperf_log_summary.txt"


def of_leg(
    place: RowPlace,
    pack: RulePack,
    leg: str,
    folder: PurePosixPath,
    detail: DetailLog,
    summary: SummaryLog | None,
    coverage: Coverage | None,
    reasoning_effort: str | None = None,
) -> RunFacts:
    """What is known of the leg whose logs lie in ``folder``, beside what the round expects of it."""
    return RunFacts(
        leg=leg,
        scenario=place.scenario,
        benchmark=place.benchmark,
        pack=pack,
        expectation=Expectation.of_round(pack, place.benchmark, place.scenario, leg),
        detail=detail,
        summary=summary,
        coverage=coverage,
        label=str(folder / DETAIL),
        division=place.division,
        reasoning_effort=reasoning_effort,
    )


def read_summary(
    index: TreeIndex, path: PurePosixPath, found: list[Finding], severity: Severity | None = None
) -> SummaryLog | None:
    """A leg's summary; None where there is none, or none that can be read, which is then in ``found``."""
    if not index.has_content(path):
        return None
    try:
        with index.opened(path) as file:
            return SummaryLog.read(file)
    except LogError as error:
        found.append(run_rules.SUMMARY.broken(path, error.what, severity=severity))
        return None
