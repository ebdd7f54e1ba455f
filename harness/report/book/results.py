"""A results folder as a book: every run that is in it, and the rows that would be submitted of it."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

from harness import __version__, rules
from harness.clients.endpoints.config import LEG as CLIENT_LEG
from harness.config.models import SubmissionFile
from harness.errors import UnknownName
from harness.ledger.store import RECORD, ResultsStore, StoredRun
from harness.report.book.content import Book, RunView
from harness.report.book.endpoints_run import endpoints_run
from harness.report.book.loadgen_run import loadgen_run
from harness.report.book.rows import Gathered, rows_of
from harness.report.book.run_record import unique, unread
from harness.rules import RulePack

PackLoader: TypeAlias = Callable[[str], RulePack]


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which runs are gathered; an empty list means all there are."""

    systems: Sequence[str] = ()
    benchmarks: Sequence[str] = ()
    scenarios: Sequence[str] = ()

    def holds(self, system: str, benchmark: str, scenario: str) -> bool:
        """Whether a row is among them."""
        chosen = ((self.systems, system), (self.benchmarks, benchmark), (self.scenarios, scenario))
        return all(not names or name in names for names, name in chosen)


EVERYTHING = Wanted()


def gather_results(
    store: ResultsStore,
    pack_loader: PackLoader = rules.load,
    wanted: Wanted = EVERYTHING,
    submission: SubmissionFile | None = None,
) -> Book:
    """The book of a results folder. ``submission`` says in which division and category rows are entered, and by whom;
    without it nobody does. Nothing is locked or written, and no run that is half there raises.
    """
    runs, unreadable = store.readable_runs()
    lost = [(Path(error.where or "").parent, error.what) for error in unreadable] + _without_record(store)
    lost = [(folder, why) for folder, why in sorted(lost) if wanted.holds(*folder.parts[-5:-2])]
    runs = [run for run in runs if wanted.holds(*run.record.id.row)]
    packs = _packs(runs, pack_loader)
    alive = store.in_use()
    views = [_view(run, store, packs[run.record.round], alive=alive) for run in runs]
    views = _unique_keys([*views, *(unread(folder, why, store.root) for folder, why in lost)])
    gathered = [
        Gathered(run, view, packs[run.record.round]) for run, view in zip(runs, views[: len(runs)], strict=True)
    ]
    return Book(
        title="Results",
        source="results",
        place=str(store.root),
        round=", ".join(sorted(packs)) or "none",
        made_at=datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        made_by=__version__,
        rows=rows_of(gathered, submission),
        runs=tuple(views),
        notes=tuple(_notes(store, gathered, views[len(runs) :])),
    )


def _without_record(store: ResultsStore) -> list[tuple[Path, str]]:
    """Attempts that were begun and have no record: they were ended before they had one, or somebody took it away."""
    folders = store.root.glob("*/*/*/*/attempt_*")
    return [(each, f"there is no {RECORD}") for each in folders if each.is_dir() and not (each / RECORD).exists()]


def _packs(runs: Iterable[StoredRun], pack_loader: PackLoader) -> dict[str, RulePack | None]:
    return {name: _pack(name, pack_loader) for name in {run.record.round for run in runs}}


def _pack(name: str, pack_loader: PackLoader) -> RulePack | None:
    try:
        return pack_loader(name)
    except UnknownName:
        return None


def _view(run: StoredRun, store: ResultsStore, pack: RulePack | None, *, alive: bool) -> RunView:
    gather = endpoints_run if run.record.id.leg == CLIENT_LEG else loadgen_run
    return gather(run, store.root, pack, alive=alive)


def _unique_keys(views: Sequence[RunView]) -> list[RunView]:
    return [replace(view, key=key) for view, key in zip(views, unique(view.key for view in views), strict=True)]


def _notes(store: ResultsStore, gathered: Sequence[Gathered], lost: Sequence[RunView]) -> Iterator[str]:
    if not gathered:
        yield f"there are no runs in {store.root}" + (" that can be read" if lost else "")
    for view in lost:
        yield f"{view.place}: {view.headline}"
    for name in sorted({each.record.round for each in gathered if each.pack is None}):
        yield f"there are no rules of the round {name} here: its runs are shown without limits"
