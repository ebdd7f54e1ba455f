"""Tables for the terminal."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from rich import box
from rich.table import Table

from harness.ledger import RunRecord, State

_COLOURS = {"VALID": "green", "INVALID": "red", "broken": "red", "interrupted": "yellow", "running": "cyan"}
UNVERIFIED = "Figures not verified by MLCommons Association."


def runs_table(root: Path, records: Iterable[RunRecord]) -> Table:
    """One line a run: what it is, verdict, result, duration of the configuration's marks, folder below ``root``."""
    table = Table(box=box.SIMPLE_HEAD, caption=f"below {root}\n{UNVERIFIED}", caption_justify="left")
    for column in ("benchmark", "scenario", "leg", "verdict", "result", "submittable", "folder"):
        table.add_column(column, overflow="fold")
    for record in records:
        word = verdict_word(record)
        run_id = record.id
        table.add_row(
            run_id.benchmark,
            run_id.scenario,
            run_id.leg,
            f"[{_COLOURS.get(word, 'white')}]{word}[/]",
            result_text(record),
            "no: " + ", ".join(record.not_submittable) if record.not_submittable else "yes",
            f"{run_id.system}/{run_id.benchmark}/{run_id.scenario}/{run_id.leg}/attempt_{run_id.attempt:02d}",
        )
    return table


def verdict_word(record: RunRecord) -> str:
    """VALID, INVALID, or the state of a run that has no verdict."""
    if record.state is not State.FINISHED or record.verdict is None:
        return record.state.value
    return "VALID" if record.verdict.valid else "INVALID"


def result_text(record: RunRecord) -> str:
    """The result in its units, or the scores by subset, or what was noted of a run without either."""
    if record.result is not None:
        return f"{record.result.value:,.2f} {record.result.units}"
    if record.accuracy is not None:
        parts = []
        for name, subset in record.accuracy.subsets.items():
            scored = subset.samples - subset.unscored
            parts.append(f"{name} {subset.correct}/{scored}" if scored else f"{name} {subset.unscored} unscored")
        return ", ".join(parts)
    return record.note or ""
