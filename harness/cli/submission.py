"""The verb ``submission``: lays out the tree that is submitted."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from harness.config.files import Project
from harness.config.models import Entry, SubmissionFile
from harness.errors import EXIT_OK, UnknownName
from harness.ledger.store import ResultsStore
from harness.rules import load
from harness.submission import PackageReport, package

_SHOWN_FINDINGS = 10


def run(argv: Sequence[str]) -> int:
    """Packages the entries of submission.yaml; 0 where the tree is laid out."""
    args = _parser().parse_args(argv)
    project = Project(Path.cwd())
    submission = project.submission(args.submission)
    chosen = _choose(submission, systems=args.systems, benchmarks=args.benchmarks, scenarios=args.scenarios)
    report = package(
        ResultsStore(args.results_dir),
        project,
        chosen,
        args.out,
        demonstration=args.demonstration,
        pack=load(submission.round),
    )
    _show(report, Console())
    return EXIT_OK


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="harness submission", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("build/submission"), help="where the tree goes")
    parser.add_argument("--results_dir", type=Path, default=Path("results"), help="where the runs are")
    parser.add_argument("--submission", type=Path, default=None, help="the entries (default: submission.yaml)")
    parser.add_argument("--systems", type=_names, default=None, help="only these systems (comma list)")
    parser.add_argument("--benchmarks", type=_names, default=None, help="only these benchmarks (comma list)")
    parser.add_argument("--scenarios", type=_names, default=None, help="only these scenarios (comma list)")
    parser.add_argument(
        "--demonstration",
        action="store_true",
        help="take runs that may not be filed, and say so everywhere in the tree: never a submission",
    )
    return parser


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _choose(
    submission: SubmissionFile,
    *,
    systems: list[str] | None,
    benchmarks: list[str] | None,
    scenarios: list[str] | None,
) -> SubmissionFile:
    """The entries that are asked for. UnknownName where a name is in no entry."""
    where = "submission.yaml"
    entries = submission.entries
    _all_known("system", systems, {entry.system for entry in entries}, where)
    _all_known("benchmark", benchmarks, {entry.benchmark for entry in entries}, where)
    _all_known("scenario", scenarios, {name for entry in entries for name in entry.scenarios}, where)
    chosen: list[Entry] = []
    for entry in entries:
        names = [name for name in entry.scenarios if scenarios is None or name in scenarios]
        if (
            names
            and (systems is None or entry.system in systems)
            and (benchmarks is None or entry.benchmark in benchmarks)
        ):
            chosen.append(entry.model_copy(update={"scenarios": names}))
    return submission.model_copy(update={"entries": chosen})


def _all_known(kind: str, names: list[str] | None, known: set[str], where: str) -> None:
    for name in names or ():
        if name not in known:
            raise UnknownName(kind, name, known, where=where)


def _show(report: PackageReport, console: Console) -> None:
    table = Table(title="Demonstration, never a submission" if report.demonstration else None)
    for heading in ("row", "result", "accuracy", "attempts", "marks"):
        table.add_column(heading, overflow="fold")
    for row in report.rows:
        attempts = "\n".join(f"{leg.leg} {leg.attempt} of {leg.attempts_total}" for leg in row.legs)
        table.add_row(row.name, row.result, row.accuracy, attempts, "\n".join(row.marks))
    console.print(table)
    for lack in report.unknown:
        _line(console, f"unknown: {lack}")
    for note in report.notes:
        _line(console, note)
    _show_findings(report, console)
    if report.previous is not None:
        _line(console, f"the tree that was there is now {report.previous}")
    _line(console, f"the tree: {report.out}")
    _line(console, f"next: make check_submission INPUT={report.out}")


def _show_findings(report: PackageReport, console: Console) -> None:
    for finding in report.findings[:_SHOWN_FINDINGS]:
        _line(console, f"look at {finding.path}:{finding.line}: {finding.kind} {finding.masked}")
    if len(report.findings) > _SHOWN_FINDINGS:
        _line(console, f"and {len(report.findings) - _SHOWN_FINDINGS} more, in MANIFEST.json under findings")


def _line(console: Console, text: str) -> None:
    console.print(text, markup=False, highlight=False, soft_wrap=True)
