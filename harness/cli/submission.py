"""The verb ``submission``: lays out the tree that is submitted."""

from __future__ import annotations

import argparse
import itertools
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from rich import box
from rich.markup import escape
from rich.table import Table

from harness.cli.console import ERR, OUT
from harness.cli.options import add_quiet, add_results_dir, add_selection, comma_list
from harness.config.files import Project
from harness.config.models import Entry, SubmissionFile
from harness.errors import EXIT_OK, UnknownName
from harness.ledger.store import ResultsStore
from harness.report.progress import observer
from harness.report.tables import UNVERIFIED
from harness.rules import load
from harness.submission import PackageReport, PackedRow, package

_SHOWN_FINDINGS = 10


def run(argv: Sequence[str]) -> int:
    """Packages the entries of submission.yaml; 0 where the tree is laid out."""
    args = _parser().parse_args(argv)
    project = Project(Path.cwd())
    submission = project.submission(args.submission)
    chosen = _choose(submission, systems=args.systems, benchmarks=args.benchmarks, scenarios=args.scenarios)
    with observer(ERR, quiet=args.quiet) as tell:
        report = package(
            ResultsStore(args.results_dir),
            project,
            chosen,
            args.out,
            demonstration=args.demonstration,
            pack=load(submission.round),
            attempts=args.attempts,
            observe=tell,
        )
    _show(report)
    return EXIT_OK


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m harness submission", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("build/submission"), help="where the tree goes")
    add_selection(parser)
    add_results_dir(parser)
    parser.add_argument("--submission", type=Path, default=None, help="the entries (default: submission.yaml)")
    parser.add_argument(
        "--attempts",
        type=comma_list,
        default=[],
        metavar="RUN,RUN",
        help="runs to file in place of the newest of their legs, each as <system>/<benchmark>/<scenario>/<leg>#<n>",
    )
    parser.add_argument(
        "--demonstration",
        action="store_true",
        help="take runs that may not be filed, and say so everywhere in the tree: never a submission",
    )
    add_quiet(parser)
    return parser


def _choose(
    submission: SubmissionFile, *, systems: list[str], benchmarks: list[str], scenarios: list[str]
) -> SubmissionFile:
    """The entries that are asked for; an empty list asks for all. UnknownName where a name is in no entry."""
    where = "submission.yaml"
    entries = submission.entries
    _all_known("system", systems, {entry.system for entry in entries}, where)
    _all_known("benchmark", benchmarks, {entry.benchmark for entry in entries}, where)
    _all_known("scenario", scenarios, {name for entry in entries for name in entry.scenarios}, where)
    chosen: list[Entry] = []
    for entry in entries:
        names = [name for name in entry.scenarios if not scenarios or name in scenarios]
        if names and (not systems or entry.system in systems) and (not benchmarks or entry.benchmark in benchmarks):
            chosen.append(entry.model_copy(update={"scenarios": names}))
    return submission.model_copy(update={"entries": chosen})


def _all_known(kind: str, names: list[str], known: set[str], where: str) -> None:
    for name in names:
        if name not in known:
            raise UnknownName(kind, name, known, where=where)


def _show(report: PackageReport) -> None:
    if report.demonstration:
        OUT.print("[bold]a demonstration, never a submission[/]")
    for (division, system, benchmark), rows in itertools.groupby(report.rows, key=_entry_of):
        table = Table(box=box.SIMPLE_HEAD, title=escape(f"{benchmark} on {system}, {division}"), title_justify="left")
        for heading in ("scenario", "result", "accuracy", "filed attempts"):
            table.add_column(heading, overflow="fold")
        for row in rows:
            attempts = "\n".join(f"{leg.leg} {leg.attempt} of {leg.attempts_total}" for leg in row.legs)
            table.add_row(*map(escape, (row.scenario, row.result, row.accuracy, attempts)))
        OUT.print(table)
    lines = _marks(report) + [f"unknown: {lack}" for lack in report.unknown] + list(report.notes) + _findings(report)
    if report.previous is not None:
        lines.append(f"the tree that was there is now {report.previous}")
    lines.append(UNVERIFIED)
    lines += [f"the tree: {report.out}", f"next: make check_submission INPUT={report.out}"]
    OUT.print("\n".join(lines), markup=False)


def _entry_of(row: PackedRow) -> tuple[str, str, str]:
    return (row.division, row.system, row.benchmark)


def _marks(report: PackageReport) -> list[str]:
    counts = Counter(mark for row in report.rows for mark in row.marks)
    return [f"{mark} ({count} of {len(report.rows)} rows)" for mark, count in counts.items()]


def _findings(report: PackageReport) -> list[str]:
    shown = [f"look at {f.path}:{f.line}: {f.kind} {f.masked}" for f in report.findings[:_SHOWN_FINDINGS]]
    if len(report.findings) > _SHOWN_FINDINGS:
        shown.append(f"and {len(report.findings) - _SHOWN_FINDINGS} more: MANIFEST.json, under findings")
    return shown
