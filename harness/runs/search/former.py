"""Probes of a search that was interrupted: what was measured with the same configuration need not be measured again."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from harness.ledger import Fingerprint, ResultsStore, State, StoredRun
from harness.ledger.search import searches
from harness.runs.plan import PROBE, PlannedLeg
from harness.runs.search.watching import EARLY

_OWN: Final = ("scenario.target_qps", "test_run")
"""What of a fingerprint every probe has for itself: its rate, and what it was shortened to."""


def next_search(leg: PlannedLeg, store: ResultsStore) -> str:
    """The number of the next search of a row: above those of all that ended, or left probes."""
    left = [run.record.probe.search for run in _probes(leg, store) if run.record.probe is not None]
    numbers = [*searches(folder_of(leg, store)), *left]
    return f"{max(map(int, numbers), default=0) + 1:02d}"


def folder_of(leg: PlannedLeg, store: ResultsStore) -> Path:
    """Where the probes of a row lie, and what its searches ended with."""
    return store.root / leg.system / leg.benchmark / leg.scenario / PROBE


def former_probes(leg: PlannedLeg, store: ResultsStore, fingerprint: Fingerprint) -> list[StoredRun]:
    """The probes of searches that did not come to their end, made with this fingerprint; oldest first."""
    ended = set(searches(folder_of(leg, store)))
    return [
        run
        for run in _probes(leg, store)
        if run.record.probe is not None
        and run.record.probe.search not in ended
        and (run.record.state is State.FINISHED or (run.record.note or "").startswith(EARLY))
        and not set(run.record.fingerprint.differs_from(fingerprint)) - set(_OWN)
    ]


def _probes(leg: PlannedLeg, store: ResultsStore) -> list[StoredRun]:
    return store.attempts(leg.system, leg.benchmark, leg.scenario, PROBE)
