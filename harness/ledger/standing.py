"""Where a leg stands: done, stale, interrupted or missing, told from its attempts alone."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from harness.ledger.record import RunRecord, State
from harness.ledger.store import StoredRun


class Word(str, enum.Enum):
    """Where a leg stands, in a word. The first two are done: the newest finished attempt is what would be filed."""

    VALID = "VALID"
    INVALID = "INVALID"
    STALE = "stale"
    RUNNING = "running"
    INTERRUPTED = "interrupted"
    BROKEN = "broken"
    MISSING = "missing"


_UNFINISHED = {
    State.RUNNING: Word.RUNNING,
    State.MEASURED: Word.INTERRUPTED,
    State.INTERRUPTED: Word.INTERRUPTED,
    State.BROKEN: Word.BROKEN,
}


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a leg stands: the attempt that says so (None: there is none), all attempts there were, and why."""

    word: Word
    run: StoredRun | None
    attempts: int
    reason: str = ""

    def __post_init__(self) -> None:
        if (self.run is None) != (self.word is Word.MISSING):
            raise ValueError(f"a leg that is {self.word.value} with the run {self.run}")

    @property
    def done(self) -> bool:
        """Whether the leg has a finished run of the configuration that is asked for, whatever its verdict."""
        return self.word in (Word.VALID, Word.INVALID)


def standing(
    attempts: Sequence[StoredRun], changed: Callable[[RunRecord], list[str]], *, alive: bool = False
) -> Standing:
    """Where a leg stands that has had these attempts (of full length, or short ones: not both).

    ``changed`` names what of a run's fingerprint is not as it is asked for now. ``alive`` is whether a harness works in
    the results folder: a run that says it is running was killed where none does.

    The newest finished attempt counts. Where it is of another configuration, so are those before it: newer work that
    did not come to its end is then what there is to tell.
    """
    ordered = sorted(attempts, key=lambda run: run.record.id.attempt)
    if not ordered:
        return Standing(Word.MISSING, None, 0)
    finished = [run for run in ordered if run.record.state is State.FINISHED]
    differing = changed(finished[-1].record) if finished else []
    if finished and not differing:
        record = finished[-1].record
        valid = record.verdict is not None and record.verdict.valid
        return Standing(Word.VALID if valid else Word.INVALID, finished[-1], len(ordered))
    newest = ordered[-1]
    if newest.record.state is State.FINISHED:
        return Standing(Word.STALE, newest, len(ordered), "changed since: " + ", ".join(differing))
    return _unfinished(newest, len(ordered), alive)


def _unfinished(run: StoredRun, attempts: int, alive: bool) -> Standing:
    state, note = run.record.state, run.record.note or ""
    if state is State.MEASURED:
        note = "measured and kept, not judged: --resume judges it"
    if state is State.RUNNING and not alive:
        return Standing(Word.INTERRUPTED, run, attempts, "the harness was killed")
    return Standing(_UNFINISHED[state], run, attempts, note)


@dataclass(frozen=True, slots=True)
class RowStanding:
    """Where the legs of one row stand, by leg in the order they run."""

    system: str
    benchmark: str
    scenario: str
    legs: Mapping[str, Standing]
