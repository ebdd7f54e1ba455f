"""The gate's report for programs: JSON, and annotations as GitHub's workflows read them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from harness.gate.findings import Finding, Severity, Verdict
from harness.gate.official import OfficialReport
from harness.gate.tree import TreeReport

SCHEMA = 1

_ANNOTATION = {Severity.REJECT: "error", Severity.REVIEW: "warning", Severity.NOTE: "notice"}


def as_json(
    report: TreeReport, official: OfficialReport, findings: Iterable[Finding], verdict: Verdict
) -> dict[str, Any]:
    """All that was found, as plain data. ``findings`` and ``verdict`` are of gate and official checker together."""
    return {
        "schema_version": SCHEMA,
        "input": str(report.root),
        "round": report.round,
        "verdict": verdict.value,
        "rows": [
            {
                "division": row.place.division,
                "submitter": row.place.submitter,
                "system": row.place.system,
                "benchmark": row.place.benchmark,
                "scenario": row.place.scenario,
                "verdict": row.verdict.value,
                "official": official.accepts(row.place),
                "metric": None if row.metric is None else dataclasses.asdict(row.metric),
                "accuracy": row.accuracy,
            }
            for row in report.rows
        ],
        "findings": [dataclasses.asdict(f) | {"severity": f.severity.value} for f in findings],
        "official": {
            "verdict": official.verdict.value,
            "detail": official.detail,
            "exit_code": official.exit_code,
            "commit": official.commit,
            "errors": list(official.errors),
            "log": None if official.log is None else str(official.log),
            "table": None if official.table is None else str(official.table),
        },
    }


def workflow_commands(root: Path, findings: Iterable[Finding]) -> Iterator[str]:
    """One workflow command a finding. ``root`` is the tree's path as the repository has it."""
    for f in findings:
        path, _, line = f.path.rpartition(":")
        place = {"file": str(root / path), "line": line} if path and line.isdigit() else {"file": str(root / f.path)}
        properties = ",".join(f"{key}={_property(value)}" for key, value in {**place, "title": f.rule}.items())
        yield f"::{_ANNOTATION[f.severity]} {properties}::{_data(f'{f.found}; expected {f.expected}; {f.mend}')}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
