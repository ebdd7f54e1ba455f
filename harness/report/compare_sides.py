"""What is compared: two folders, or two attempts of one results folder."""

from __future__ import annotations

import dataclasses
import datetime
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from harness import __version__
from harness.clients.endpoints.config import LEG as CLIENT_LEG
from harness.errors import ConfigError, UnknownName
from harness.ledger.store import ResultsStore, StoredRun
from harness.report.book.boundary import of_record
from harness.report.book.content import Book, RowView, RunView
from harness.report.book.endpoints_run import endpoints_run
from harness.report.book.gather import gather
from harness.report.book.loadgen_run import loadgen_run
from harness.report.book.results import EVERYTHING, Wanted
from harness.report.compare import Comparison, compare
from harness.report.selection import part_of, refuse_unknown
from harness.rules import RulePack, load

_ATTEMPT: Final = re.compile(r"[^/#]+/[^/#]+/[^/#]+/[^/#]+#[1-9]\d*", re.ASCII)
_FORM: Final = "system/benchmark/scenario/leg#attempt"
_LATENCY: Final = "latency"


@dataclass(frozen=True, slots=True)
class Asked:
    """How folders and attempts are read: ``results_dir`` holds the attempts, ``submitter`` is that of the trees, and
    ``wanted`` are the rows of folders.
    """

    results_dir: Path
    submitter: str | None = None
    wanted: Wanted = EVERYTHING


def compare_sides(before: str, after: str, asked: Asked) -> Comparison:
    """Compares two folders, or two attempts. ConfigError where one is neither, they are of two kinds, or the same."""
    attempts = [is_attempt(text) for text in (before, after)]
    if len(set(attempts)) > 1:
        raise ConfigError(
            "a run cannot be compared with a folder",
            where=f"{before} and {after}",
            expected=f"two folders, or two runs: {_FORM}",
        )
    one, other = (text if attempts[0] else os.path.realpath(_path(text)) for text in (before, after))
    if one == other:
        raise ConfigError("the two are the same", where=one, mend="give two that differ")
    if attempts[0]:
        store = ResultsStore(asked.results_dir)
        return compare(_book_of(before, store), _book_of(after, store), as_one_row=True)
    books = [gather(_path(text), submitter=asked.submitter) for text in (before, after)]
    _refuse_unknown(books, asked.wanted)
    return compare(*(part_of(book, asked.wanted) for book in books))


def is_attempt(text: str) -> bool:
    """Whether a text names a run, and no folder of that name is there."""
    # os.path's says no of what cannot be looked up, a name too long for the disk among it.
    return _ATTEMPT.fullmatch(text) is not None and not os.path.exists(text)  # noqa: PTH110


def _path(text: str) -> Path:
    """A folder that was given; a home folder of nobody stays as it is written, and is not there."""
    return Path(os.path.expanduser(text))  # noqa: PTH111 - Path's raises of nobody's


def _refuse_unknown(books: Sequence[Book], wanted: Wanted) -> None:
    """UnknownName where no side has anything of a name that is asked for."""
    rows = tuple(row for book in books for row in book.rows)
    refuse_unknown(dataclasses.replace(books[-1], rows=rows, runs=()), wanted)


def _book_of(name: str, store: ResultsStore) -> Book:
    """The book of one attempt alone."""
    runs = {str(run.record.id): run for run in store.readable_runs()[0]}
    if not runs:
        raise ConfigError("there are no runs to compare", where=store.root, mend="give the folder with --results_dir")
    if name not in runs:
        raise UnknownName("run", name, runs, where=store.root)
    run = runs[name]
    pack = _pack(run.record.round)
    gathered = endpoints_run if run.record.id.leg == CLIENT_LEG else loadgen_run
    view = gathered(run, store.root, pack, alive=store.in_use())
    return Book(
        title=name,
        source="results",
        place=str(run.folder),
        round=run.record.round,
        made_at=datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        made_by=__version__,
        rows=(_row_of(run, pack, view),),
        runs=(view,),
        notes=view.notes,
    )


def _row_of(run: StoredRun, pack: RulePack | None, view: RunView) -> RowView:
    record = run.record
    result = record.result
    return RowView(
        key=view.key,
        system=record.id.system,
        benchmark=record.id.benchmark,
        scenario=record.id.scenario,
        division=None,
        category=None,
        submitter=None,
        word=view.word,
        metric=None if result is None else result.key,
        value=None if result is None else result.value,
        unit="" if result is None else result.units,
        higher_is_better=result is None or _LATENCY not in result.units.lower(),
        accuracy="" if record.accuracy is None else str(record.accuracy),
        audits=() if record.audit is None else ((record.id.leg, str(record.audit)),),
        margins=view.margins,
        reasons=tuple(record.not_submittable),
        boundary=(*of_record(record, pack), ("leg", record.id.leg)),
        runs=(view.key,),
    )


def _pack(name: str) -> RulePack | None:
    try:
        return load(name)
    except UnknownName:
        return None
