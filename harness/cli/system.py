"""The verb ``system``: what is known of a system, from where, and what somebody still has to say."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from rich.markup import escape
from rich.table import Table

from harness.cli.console import OUT
from harness.cli.options import add_results_dir
from harness.config.files import Project
from harness.config.models import SubmissionFile
from harness.errors import EXIT_OK, ConfigError
from harness.ledger.record import Machine
from harness.ledger.store import ResultsStore
from harness.machine import capture
from harness.machine.describe import Description, Filing, describe
from harness.rules import load


def run(argv: Sequence[str]) -> int:
    """Captures this machine and shows the description of a system; 0 whatever is lacking: it only tells."""
    args = _parser().parse_args(argv)
    project = Project(Path.cwd())
    submission = project.submission(args.submission)
    system = project.system(args.system)
    machine = capture(_framework(ResultsStore(args.results_dir), args.system))
    filing = _filing(submission, args.system)
    description = describe(args.system, machine, system, filing, load(submission.round))
    _show(args.system, machine, description)
    return EXIT_OK


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m harness system", description=__doc__)
    parser.add_argument("--system", required=True, help="a folder under systems/")
    parser.add_argument("--submission", type=Path, default=None, help="the entries (default: submission.yaml)")
    add_results_dir(parser)
    return parser


def _framework(store: ResultsStore, system: str) -> dict[str, str]:
    """What the engine named in the system's newest run; an engine says so only once it is up."""
    records = [run.record for run in store.runs() if run.record.id.system == system]
    newest = max(records, key=lambda record: record.started_at, default=None)
    return dict(newest.engine.versions) if newest is not None else {}


def _filing(submission: SubmissionFile, system: str) -> Filing:
    for entry in submission.entries:
        if entry.system == system:
            return Filing(entry.division, submission.submitter, entry.availability, entry.category)
    raise ConfigError(
        f"no entry is of the system {system!r}",
        where="submission.yaml",
        expected="one of " + ", ".join(sorted({entry.system for entry in submission.entries})),
        mend="add an entry: division, category and availability are said there",
    )


def _show(name: str, machine: Machine, description: Description) -> None:
    table = Table(title=f"{name}, read on this machine")
    for heading in ("field", "value", "from"):
        table.add_column(heading, overflow="fold", no_wrap=heading == "field")
    for field, value in description.fields.items():
        table.add_row(field, escape("" if value is None else str(value)), escape(description.origins[field]))
    OUT.print(table)
    OUT.print(f"machine {machine.identity[:12]}, {machine.accelerators} accelerators")
    if not description.lacks:
        OUT.print("complete: nothing is lacking")
    for lack in description.lacks:
        OUT.print(f"lacking: {lack}", markup=False)
