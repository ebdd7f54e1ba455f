"""The search of the rate to expect of Offline, run by run."""

from __future__ import annotations

import dataclasses
import math
from typing import Final

from harness.ledger.search import SearchEcho
from harness.runs.search.legs import Size
from harness.runs.search.offline import OfflineRun, OfflineSearch, OfflineSettings, OfflineTold, pace
from harness.runs.search.session import Search
from harness.runs.search.steps import AskFull, AskProbe
from harness.runs.search.told import offline_run
from harness.runs.search.watching import too_long

_AT_MOST: Final = 2.0
"""So many times as long as it was meant to be a short run may take."""


class OfflineRuns:
    """Searches the rate of one row."""

    def __init__(self, search: Search) -> None:
        self._search = search
        self._seconds = search.asked.seconds(search.leg)

    def run(self) -> SearchEcho:
        """Searches to the end, and returns what it came to."""
        search = self._search
        settings = OfflineSettings()
        search.rules(dataclasses.asdict(settings) | {"probe_seconds": self._seconds})
        state = OfflineSearch(search.first_guess(), settings)
        while True:
            step = state.step()
            if isinstance(step, AskProbe):
                state = state.told(self._probe(step))
            elif isinstance(step, AskFull):
                state = state.confirmed(self._full(step))
            else:
                return search.end(step)

    def _probe(self, step: AskProbe) -> OfflineTold:
        size = Size.of_offline(step.rate, self._seconds, self._search.dataset_rows)
        made = self._search.probe(step, size, too_long(_AT_MOST * self._seconds))
        measured = pace(made.columns)
        said = f"{measured.answered:.4g} samples/s while it was steady"
        self._search.note(
            offline_run(made.record, step.purpose, measured, "measured", f"{said}; {made.hopeless}".rstrip("; "))
        )
        meant_s = self._seconds if not made.hopeless else math.nextafter(measured.seconds, 0)
        return OfflineTold(step.rate, measured, meant_s)

    def _full(self, step: AskFull) -> OfflineRun:
        made = self._search.full(step)
        mendable, why = made.why_not
        measured, result = pace(made.columns), made.record.result
        told = f"{result.value:,.2f} {result.units}" if made.valid and result is not None else why
        self._search.note(offline_run(made.record, step.purpose, measured, "VALID" if made.valid else "INVALID", told))
        return OfflineRun(step.rate, made.valid, mendable, why, measured)
