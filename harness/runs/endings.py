"""Runs that did not end as runs end: what is kept of them, and what their records say."""

from __future__ import annotations

import datetime
from pathlib import Path

from harness.clients.loadgen.job import OUTCOME, Outcome
from harness.errors import HarnessError, Interrupted, MissingError
from harness.events import Note, Observer
from harness.ledger import ResultsStore, RunRecord, State, write_record
from harness.ledger.hashes import hash_files


def end(folder: Path, record: RunRecord, error: BaseException, observer: Observer) -> RunRecord:
    """Writes the record of a run that ``error`` ended, and returns it; what the worker counted is kept."""
    interrupted = isinstance(error, KeyboardInterrupt | Interrupted)
    counts, failures = None, []
    if (folder / OUTCOME).exists():
        outcome = Outcome.model_validate_json((folder / OUTCOME).read_bytes())
        counts, failures = outcome.counts, outcome.failures
    note = error.what if isinstance(error, HarnessError) else "interrupted" if interrupted else repr(error)
    ended = record.model_copy(
        update={
            "state": State.INTERRUPTED if interrupted else State.BROKEN,
            "ended_at": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
            "note": note,
            "counts": counts,
            "failures": failures,
            "hashes": hash_files(folder),
        }
    )
    try:
        write_record(folder, ended)
    except MissingError as full:  # that is not why the leg broke, or it is, and then its error says so
        observer(Note(f"the run goes on saying 'running': {full}"))
    return ended


def end_dead_runs(store: ResultsStore, observer: Observer) -> None:
    """Runs that say ``running`` while this process holds the folder were killed before they could say otherwise."""
    for run in store.readable_runs()[0]:
        if run.record.state is State.RUNNING:
            observer(Note(f"{run.record.id} was killed: it is marked as interrupted"))
            end(run.folder, run.record, Interrupted("the harness was killed"), observer)
