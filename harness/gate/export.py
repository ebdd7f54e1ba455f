"""The gate's report for programs: JSON, and annotations as GitHub's workflows read them."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from harness import __version__
from harness.gate.agreement import Assessment, Disagreement
from harness.gate.findings import Finding, Severity
from harness.gate.official_report import OfficialReport
from harness.gate.row import RowReport
from harness.rules import RulePack

SCHEMA = 2

_ANNOTATION = {Severity.REJECT: "error", Severity.REVIEW: "warning", Severity.NOTE: "notice"}
_WHOLE_TREE = "."


def as_json(checked: Assessment, pack: RulePack, exit_code: int) -> dict[str, Any]:
    """All that was found, as plain data: findings and verdict are of gate and official checker together."""
    return {
        "schema_version": SCHEMA,
        "harness_version": __version__,
        "input": str(checked.report.root),
        "round": pack.round,
        "sources": {name: source.model_dump(mode="json") for name, source in pack.sources.items()},
        "verdict": checked.verdict.value,
        "exit_code": exit_code,
        "counts": counts(checked.findings),
        "rows": [_row(row, checked.official) for row in checked.report.rows],
        "findings": [dataclasses.asdict(f) | {"severity": f.severity.value} for f in checked.findings],
        "official": _official(checked.official),
        "disagreements": [_disagreement(one) for one in checked.disagreements],
    }


def counts(findings: Iterable[Finding]) -> dict[str, int]:
    """How many findings there are of each severity, the worst first."""
    found = [f.severity for f in findings]
    return {severity.value: found.count(severity) for severity in Severity}


def _row(row: RowReport, official: OfficialReport) -> dict[str, Any]:
    theirs = official.row(row.place)
    return {
        "division": row.place.division,
        "submitter": row.place.submitter,
        "system": row.place.system,
        "benchmark": row.place.benchmark,
        "scenario": row.place.scenario,
        "folder": str(row.place.folder),
        "layout": row.layout,
        "verdict": row.verdict.value,
        "official": official.of(row.place).value,
        "official_row": None if theirs is None else dataclasses.asdict(theirs),
        "metric": None if row.metric is None else dataclasses.asdict(row.metric),
        "accuracy": row.accuracy if row.accuracy is not None and math.isfinite(row.accuracy) else None,
    }


def _official(official: OfficialReport) -> dict[str, Any]:
    return {
        "verdict": official.verdict.value,
        "detail": official.detail,
        "exit_code": official.exit_code,
        "commit": official.commit,
        "errors": list(official.errors),
        "log": None if official.log is None else str(official.log),
        "table": None if official.table is None else str(official.table),
    }


def _disagreement(one: Disagreement) -> dict[str, Any]:
    return {"row": str(one.place), "what": one.what, "reasons": list(one.reasons)}


def workflow_commands(root: Path, findings: Iterable[Finding]) -> Iterator[str]:
    """One workflow command a finding. ``root`` is the tree's path as the repository has it."""
    for f in findings:
        properties = ",".join(f"{key}={_property(value)}" for key, value in _place(root, f).items())
        yield f"::{_ANNOTATION[f.severity]} {properties}::{_data(f'{f.found}; expected {f.expected}; {f.mend}')}"


def _place(root: Path, finding: Finding) -> dict[str, str]:
    """Where the annotation goes; what concerns the whole tree is on no file."""
    path, _, line = finding.path.rpartition(":")
    if not (path and line.isdecimal() and line.isascii()):
        path, line = finding.path, ""
    place = {} if path == _WHOLE_TREE else {"file": str(root / path)}
    return place | ({"line": line} if place and line else {}) | {"title": finding.rule}


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
