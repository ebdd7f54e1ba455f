"""Tables for the terminal."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from pathlib import Path

from rich import box
from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table

from harness.errors import MissingError
from harness.ledger import ResultsStore, RunRecord, State
from harness.ledger.record import RunId
from harness.ledger.turn_report import read_turn_report
from harness.report.turns import turn_tables

_COLOURS = {"VALID": "green", "INVALID": "red", "broken": "red", "interrupted": "yellow", "running": "cyan"}
UNVERIFIED = "Figures not verified by MLCommons Association."


def runs_table(root: Path, records: Iterable[RunRecord]) -> Group:
    """A table for each system and benchmark, one line a run; then why runs are not submittable, and where they lie."""
    parts: list[RenderableType] = []
    reasons: dict[str, int] = {}
    ordered = sorted(records, key=lambda record: str(record.id))
    for (system, benchmark), members in itertools.groupby(ordered, key=lambda r: (r.id.system, r.id.benchmark)):
        table = Table(box=box.SIMPLE_HEAD, title=escape(f"{benchmark} on {system}"), title_justify="left")
        for column in ("scenario", "leg", "attempt", "verdict", "result"):
            table.add_column(column, justify="right" if column == "attempt" else "left")
        for record in members:
            word = verdict_word(record)
            run_id = record.id
            coloured = f"[{_COLOURS.get(word, 'white')}]{word}[/]"
            result = escape(result_text(record))
            table.add_row(escape(run_id.scenario), escape(run_id.leg), str(run_id.attempt), coloured, result)
            for reason in record.not_submittable:
                reasons[reason] = reasons.get(reason, 0) + 1
        parts.append(table)
    parts += [f"not submittable ({count} runs): {escape(reason)}" for reason, count in reasons.items()]
    parts.append(escape(f"runs: {root}/<system>/<benchmark>/<scenario>/<leg>/attempt_<nn>/"))
    parts.append(UNVERIFIED)
    return Group(*parts)


def turns_of_runs(store: ResultsStore, records: Iterable[RunRecord]) -> Group:
    """What the turns of runs of trajectories came to, run by run; nothing where there are none."""
    parts: list[RenderableType] = []
    for record in records:
        if record.turn_figures is not None:
            parts += [escape(str(record.id)), _turns(store, record.id)]
    return Group(*parts)


def _turns(store: ResultsStore, run: RunId) -> RenderableType:
    attempts = store.attempts(run.system, run.benchmark, run.scenario, run.leg)
    folder = next((stored.folder for stored in attempts if stored.record.id == run), store.root)
    try:
        return turn_tables(read_turn_report(folder))
    except MissingError as error:  # the record has the main figures
        return escape(error.what)


def verdict_word(record: RunRecord) -> str:
    """VALID, INVALID, or the state of a run that has no verdict."""
    if record.state is not State.FINISHED or record.verdict is None:
        return record.state.value
    return "VALID" if record.verdict.valid else "INVALID"


def result_text(record: RunRecord) -> str:
    """The result in its units, an audit's number, the scores, or what was noted of a run without any."""
    if record.result is not None:
        return f"{record.result.value:,.2f} {record.result.units}"
    if record.audit is not None:
        return str(record.audit)
    if record.accuracy is not None:
        return str(record.accuracy)
    return record.note or ""
