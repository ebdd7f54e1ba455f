"""Runs that did not end as runs end: what is kept of them, and what their records say."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from harness.clients.loadgen.job import OUTCOME, Outcome
from harness.errors import HarnessError, Interrupted, MissingError
from harness.events import Note, Observer
from harness.ledger import ResultsStore, RunRecord, State, write_record
from harness.ledger.hashes import hash_files

_OWN_CHATS: Final = "*.chats*"


def end(folder: Path, record: RunRecord, error: BaseException, observer: Observer) -> RunRecord:
    """Writes the record of a run that ``error`` ended, and returns it; what the worker counted is kept."""
    interrupted = isinstance(error, KeyboardInterrupt | Interrupted)
    outcome = _outcome(folder)
    note = error.what if isinstance(error, HarnessError) else "interrupted" if interrupted else repr(error)
    ended = record.model_copy(
        update={
            "state": State.INTERRUPTED if interrupted else State.BROKEN,
            "ended_at": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
            "note": note,
            "hashes": hash_files(folder),
        }
        | ({} if outcome is None else told(outcome))
    )
    try:
        write_record(folder, ended)
    except MissingError as full:  # that is not why the leg broke, or it is, and then its error says so
        observer(Note(f"the run goes on saying 'running': {full}"))
    return ended


def measured(folder: Path, record: RunRecord, outcome: Outcome) -> RunRecord:
    """Writes and returns the record of a run whose LoadGen part has ended well: from here on it can be judged later."""
    kept = record.model_copy(
        update={
            "state": State.MEASURED,
            "ended_at": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
            "hashes": hash_files(folder),
        }
        | told(outcome)
    )
    write_record(folder, kept)
    return kept


def end_dead_runs(store: ResultsStore, observer: Observer) -> None:
    """Runs that say ``running`` while this process holds the folder were killed before they could say otherwise.

    Where LoadGen's part had ended well, only the judgement is missing: the run is ``measured``. Nothing judges a probe
    later: the next search makes it again.
    """
    for run in store.readable_runs()[0]:
        if run.record.state is not State.RUNNING:
            continue
        for chats in run.folder.glob(_OWN_CHATS):
            chats.unlink()  # the run's own prompts, which its salt makes again: nobody lived to remove them
        outcome = _outcome(run.folder)
        if outcome is not None and outcome.error is None and run.record.probe is None:
            observer(Note(f"{run.record.id} was killed before it was judged: --resume judges it"))
            measured(run.folder, run.record, outcome)
        else:
            observer(Note(f"{run.record.id} was killed: it is marked as interrupted"))
            end(run.folder, run.record, Interrupted("the harness was killed"), observer)


def told(outcome: Outcome) -> dict[str, object]:
    """What the worker tells that the record keeps."""
    return {
        "counts": outcome.counts,
        "turns": outcome.turns,
        "failures": outcome.failures,
        "failure_kinds": outcome.failure_kinds,
        "client_counters": outcome.engine_counters or None,
    }


def _outcome(folder: Path) -> Outcome | None:
    """How LoadGen's process ended; None where it left nothing that can be read."""
    try:
        return Outcome.model_validate_json((folder / OUTCOME).read_bytes())
    except (OSError, ValidationError):
        return None
