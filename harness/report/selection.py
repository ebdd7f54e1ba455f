"""A part of a book: the rows and runs that somebody asks for by name."""

from __future__ import annotations

import re
from dataclasses import replace

from harness.errors import UnknownName
from harness.report.book.content import Book, RunView
from harness.report.book.results import Wanted

_TITLE = re.compile(r"([^/]+)/([^/]+)/([^/]+)/[^/]+#\d+")
"""What runs of a results folder are called: system, benchmark, scenario, leg, attempt."""


def refuse_unknown(book: Book, wanted: Wanted) -> None:
    """UnknownName where the book has nothing of a name that is asked for."""
    named = [(row.system, row.benchmark, row.scenario) for row in book.rows]
    named += [parts for run in book.runs if (parts := _row_of(run)) is not None]
    asked = (("system", wanted.systems), ("benchmark", wanted.benchmarks), ("scenario", wanted.scenarios))
    for at, (kind, names) in enumerate(asked):
        known = {parts[at] for parts in named}
        for name in names:
            if name not in known:
                raise UnknownName(kind, name, known, where=book.place)


def part_of(book: Book, wanted: Wanted) -> Book:
    """The book with the rows that are wanted, their runs, and those runs of no row whose title says that they are.

    Findings stay: they are the gate's about all of it.
    """
    rows = tuple(row for row in book.rows if wanted.holds(row.system, row.benchmark, row.scenario))
    kept = {key for row in rows for key in row.runs}
    left = {key for row in book.rows for key in row.runs} - kept
    runs = tuple(run for run in book.runs if run.key in kept or (run.key not in left and _is_wanted(run, wanted)))
    return replace(book, rows=rows, runs=runs)


def _is_wanted(run: RunView, wanted: Wanted) -> bool:
    parts = _row_of(run)
    return parts is None or wanted.holds(*parts)


def _row_of(run: RunView) -> tuple[str, str, str] | None:
    found = _TITLE.fullmatch(run.title)
    return None if found is None else (found[1], found[2], found[3])
