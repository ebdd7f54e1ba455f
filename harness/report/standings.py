"""Where every leg stands, as tables for the terminal."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

from rich import box
from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table

from harness.ledger.standing import RowStanding, Standing, Word

_COLOURS = {
    Word.VALID: "green",
    Word.INVALID: "red",
    Word.BROKEN: "red",
    Word.STALE: "yellow",
    Word.INTERRUPTED: "yellow",
    Word.RUNNING: "cyan",
    Word.MISSING: "dim",
}


def standings_tables(rows: Iterable[RowStanding]) -> Group:
    """A table for each system and benchmark: scenarios down, legs across; then why legs are not done."""
    parts: list[RenderableType] = []
    for (system, benchmark), members in itertools.groupby(rows, key=lambda row: (row.system, row.benchmark)):
        of_one = list(members)
        table = Table(box=box.SIMPLE_HEAD, title=escape(f"{benchmark} on {system}"), title_justify="left")
        for column in ("scenario", *of_one[0].legs):
            table.add_column(escape(column))
        for row in of_one:
            table.add_row(escape(row.scenario), *map(_cell, row.legs.values()))
        parts += [table, *map(escape, _reasons(of_one))]
    return Group(*parts)


def _cell(standing: Standing) -> str:
    notes = ["short"] if standing.run is not None and standing.run.record.test_run else []
    notes += [f"{standing.attempts} attempts"] if standing.attempts > 1 else []
    more = f" ({', '.join(notes)})" if notes else ""
    return f"[{_COLOURS[standing.word]}]{standing.word.value}[/]{more}"


def _reasons(rows: list[RowStanding]) -> list[str]:
    """Each reason once, with the legs that it is one for."""
    legs: dict[str, list[str]] = {}
    for row in rows:
        for leg, standing in row.legs.items():
            if standing.reason:
                legs.setdefault(f"{standing.word.value}, {standing.reason}", []).append(f"{row.scenario} {leg}")
    return [f"{reason} ({', '.join(names)})" for reason, names in legs.items()]
