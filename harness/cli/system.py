"""The verb ``system``: what is known of a system, from where, and what somebody still has to say."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.markup import escape
from rich.table import Table

from harness.cli.console import OUT
from harness.cli.options import add_results_dir, folder
from harness.config.files import Project
from harness.config.models import SubmissionFile, SystemFile
from harness.config.system_form import Form, filled
from harness.errors import EXIT_OK, ConfigError
from harness.ledger.record import Machine
from harness.ledger.store import ResultsStore, write_atomically
from harness.machine import capture
from harness.machine.describe import Description, Filing, describe
from harness.machine.sysinfo import SysinfoCapture, read_capture
from harness.machine.to_fill import Compared, compared, form_of
from harness.rules import load

NOBODY_SAID = SystemFile(system_name=None, number_of_nodes=None, cooling=None, host_networking_topology=None)


@dataclass(frozen=True, slots=True)
class _Asked:
    """The system that was asked about: its file (``is_there`` or not), and what is known of it."""

    name: str
    path: Path
    is_there: bool
    file: SystemFile
    machine: Machine
    description: Description


def run(argv: Sequence[str]) -> int:
    """Captures this machine and shows the description of a system; 0 whatever is lacking: it only tells."""
    args = _parser().parse_args(argv)
    project = Project(Path.cwd())
    imported = read_capture(args.import_) if args.import_ is not None else None
    asked = _ask(project, args)
    lines = compared(asked.file, asked.machine, imported) if imported is not None else []
    _show(asked)
    if imported is not None:
        _show_import(imported, lines)
    if args.write:
        _write(asked, form_of(asked.file, asked.description, lines, imported.source if imported is not None else ""))
    elif imported is not None:
        OUT.print("nothing is written without --write")
    return EXIT_OK


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m harness system", description=__doc__)
    parser.add_argument("--system", required=True, help="a folder under systems/")
    parser.add_argument(
        "--write",
        action="store_true",
        help="add what nobody has said to systems/<system>/system.yaml, to be filled in; makes the file where there is "
        "none, and never changes what is said in it",
    )
    parser.add_argument(
        "--import",
        dest="import_",
        type=folder,
        default=None,
        metavar="FILE",
        help="a capture of mlperf-sysinfo (system_desc.json): shown beside what is read here; with --write it fills "
        "what nobody has said",
    )
    parser.add_argument("--submission", type=Path, default=None, help="the entries (default: submission.yaml)")
    add_results_dir(parser)
    return parser


def _ask(project: Project, args: argparse.Namespace) -> _Asked:
    name: str = args.system
    is_there = name in project.system_names()
    if not is_there and args.write:
        _refuse_strange(name)
    file = project.system(name) if is_there or not args.write else NOBODY_SAID
    submission = project.submission(args.submission)
    machine = capture(_framework(ResultsStore(args.results_dir), name))
    description = describe(name, machine, file, _filing(submission, name), load(submission.round))
    return _Asked(name, project.systems / name / "system.yaml", is_there, file, machine, description)


def _refuse_strange(name: str) -> None:
    """A new folder's name goes into the published tree."""
    if not name.isascii() or not name.replace("-", "").replace("_", "").replace(".", "").isalnum() or name[0] in "._-":
        raise ConfigError(
            f"{name!r} is no name for a system",
            where="--system",
            expected="letters, digits, -, _ and ., a letter or digit first: it is a folder of the published tree",
        )


def _framework(store: ResultsStore, system: str) -> dict[str, str]:
    """What the engine named in the system's newest run; an engine says so only once it is up."""
    records = [run.record for run in store.runs() if run.record.id.system == system]
    newest = max(records, key=lambda record: record.started_at, default=None)
    return dict(newest.engine.versions) if newest is not None else {}


def _filing(submission: SubmissionFile, system: str) -> Filing:
    for entry in submission.entries:
        if entry.system == system:
            return Filing(entry.division, submission.submitter, entry.availability, entry.category)
    return Filing(None, submission.submitter, None, None)


def _show(asked: _Asked) -> None:
    description = asked.description
    table = Table(title=f"{asked.name}, read on this machine")
    for heading in ("field", "value", "from"):
        table.add_column(heading, overflow="fold", no_wrap=heading == "field")
    for field, value in description.fields.items():
        table.add_row(field, escape("" if value is None else str(value)), escape(description.origins[field]))
    OUT.print(table)
    OUT.print(f"machine {asked.machine.identity[:12]}, {asked.machine.accelerators} accelerators")
    if not description.lacks:
        OUT.print("complete: nothing is lacking")
    for lack in description.lacks:
        OUT.print(f"lacking: {lack}", markup=False)


def _show_import(imported: SysinfoCapture, lines: Sequence[Compared]) -> None:
    table = Table(title=f"{imported.source}, beside what is said and read here")
    for heading in ("field", "imported", "said", "read here", "it"):
        table.add_column(heading, overflow="fold", no_wrap=heading == "field")
    for line in lines:
        values = ("" if value is None else escape(str(value)) for value in (line.imported, line.said, line.read))
        table.add_row(line.field, *values, line.word)
    OUT.print(table)
    OUT.print("What is said stays. What is written wins over what a leg reads: take a line out to file what is read.")
    for key, value in imported.elsewhere.items():
        OUT.print(f"not of system.yaml: {key}: {value}", markup=False)
    if imported.incomplete is not None:
        OUT.print(f"the capture is not whole: {imported.incomplete}", markup=False)


def _write(asked: _Asked, form: Form) -> None:
    before = asked.path.read_bytes().decode("utf-8") if asked.is_there else ""
    after = filled(before, form, asked.path)
    shown = f"systems/{asked.name}/system.yaml"
    if after == before:
        OUT.print(f"{shown}: nothing to add", markup=False)
        return
    asked.path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(asked.path, after)
    what = "written again" if asked.is_there else "made"
    OUT.print(f"{shown}: {what}, {len(form.values)} values imported, {len(form.wanted)} to be filled in", markup=False)
