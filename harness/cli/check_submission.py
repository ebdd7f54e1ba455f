"""The verb ``check_submission``: our gate on a submission tree, and the official checker beside it."""

from __future__ import annotations

import argparse
import itertools
import json
from collections.abc import Sequence
from pathlib import Path

from rich import box
from rich.markup import escape
from rich.table import Table

from harness.cli.console import OUT
from harness.errors import EXIT_OK, ConfigError, MissingError, Refused
from harness.gate.export import as_json, workflow_commands
from harness.gate.findings import Finding, Severity, Verdict, ordered, verdict
from harness.gate.official import OfficialReport, run_official
from harness.gate.row import RowReport
from harness.gate.tree import TreeReport, check_tree
from harness.ledger.store import write_atomically
from harness.rules import LATEST, load

_SHOWN = 20
_COLOURS = {"pass": "green", "review": "yellow", "reject": "red"}
_OFFICIAL_WORDS = {True: "[green]accepts[/]", False: "[red]refuses[/]", None: "[dim]not run[/]"}


def run(argv: Sequence[str]) -> int:
    """Checks a tree: 0 where nothing rejects it, 1 where something does. Reviews and notes are shown."""
    args = _parser().parse_args(argv)
    for target in (args.json, args.report_dir):
        _refuse_inside(args.input, target)
    report = check_tree(args.input, load(args.round), args.submitter)
    official = run_official(args.input, args.round, args.submitter, report_dir=args.report_dir)
    findings = ordered([*report.findings, *official.findings()])
    outcome = verdict(findings)
    if args.json is not None:
        _write_json(args.json, report, official, findings, outcome)
    if args.format == "github":
        for line in workflow_commands(args.input, findings):
            OUT.print(line, markup=False)
    else:
        _show(report, official, findings, outcome)
    return Refused.exit_code if outcome is Verdict.REJECT else EXIT_OK


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m harness check_submission", description=__doc__)
    parser.add_argument("--input", type=Path, required=True, help="the folder that holds closed/ or open/")
    parser.add_argument("--round", default=LATEST, help=f"the round whose rules hold (default: {LATEST})")
    parser.add_argument("--submitter", help="check this submitter's folders alone")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all that was found here too")
    parser.add_argument("--format", choices=("text", "github"), default="text", help="what is printed")
    parser.add_argument("--report-dir", type=Path, metavar="DIR", help="keep the official checker's log and table here")
    return parser


def _refuse_inside(tree: Path, target: Path | None) -> None:
    if target is not None and target.resolve().is_relative_to(tree.resolve()):
        raise ConfigError(
            "a report inside the tree that is checked would change it", where=target, mend="write it elsewhere"
        )


def _write_json(
    path: Path, report: TreeReport, official: OfficialReport, findings: list[Finding], outcome: Verdict
) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise MissingError(f"cannot write: {error.strerror}", where=path, mend="give another --json") from None
    write_atomically(path, json.dumps(as_json(report, official, findings, outcome), indent=1) + "\n")


def _show(report: TreeReport, official: OfficialReport, findings: list[Finding], outcome: Verdict) -> None:
    _show_rows(report, official)
    counts = ", ".join(f"{sum(f.severity is severity for f in findings)} {severity.value}" for severity in Severity)
    OUT.print(f"gate {report.round}: [bold {_COLOURS[outcome.value]}]{outcome.value}[/] ({counts})")
    commit = f" (clone at {official.commit or 'an unknown commit'})" if official.ran else ""
    OUT.print(f"official checker: {escape(f'{official.verdict.value}: {official.detail}{commit}')}")
    if official.log is not None:
        OUT.print(f"official log: {escape(str(official.log))}")
    for severity, some in itertools.groupby(findings, key=lambda f: f.severity):
        OUT.print(f"\n[bold]{severity.value}[/]")
        for name, same in itertools.groupby(some, key=lambda f: f.rule):
            _show_rule(name, list(same))


def _show_rows(report: TreeReport, official: OfficialReport) -> None:
    """A table for each system, one line a row."""
    for system, rows in itertools.groupby(report.rows, key=_system_of):
        table = Table(box=box.SIMPLE_HEAD, title=escape(system), title_justify="left")
        for column in ("benchmark", "scenario", "gate", "official", "result", "accuracy"):
            table.add_column(column, overflow="fold")
        for row in rows:
            table.add_row(
                escape(row.place.benchmark),
                escape(row.place.scenario),
                f"[{_COLOURS[row.verdict.value]}]{row.verdict.value}[/]",
                _OFFICIAL_WORDS[official.accepts(row.place)],
                "-" if row.metric is None else f"{row.metric.value:,.2f} {row.metric.units}",
                "-" if row.accuracy is None else f"{row.accuracy:g}",
            )
        OUT.print(table)


def _system_of(row: RowReport) -> str:
    return f"{row.place.division}/{row.place.submitter}/{row.place.system}"


def _show_rule(name: str, findings: list[Finding]) -> None:
    """A rule once, then where it is broken; what is the same everywhere is said once."""
    OUT.print(f"  [bold]{name}[/]  [dim]({escape(findings[0].source)})[/]")
    shared = len({finding.expected for finding in findings}) == 1
    for finding in findings[:_SHOWN]:
        expected = "" if shared else f" [dim](expected: {escape(finding.expected)})[/]"
        OUT.print(f"    {escape(finding.path)}: {escape(finding.found)}{expected}")
    if len(findings) > _SHOWN:
        OUT.print(f"    and {len(findings) - _SHOWN} more: --json FILE has them all")
    if shared:
        OUT.print(f"    [dim]expected:[/] {escape(findings[0].expected)}")
    for mend in dict.fromkeys(finding.mend for finding in findings):
        OUT.print(f"    [dim]mend:[/] {escape(mend)}")
