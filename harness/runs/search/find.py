"""Finds the rate of one row: from what was asked to what was found."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from harness.events import Observer
from harness.ledger import ResultsStore
from harness.ledger.search import SearchEcho
from harness.runs.plan import PlannedLeg
from harness.runs.search.asked import Asked, check_guess
from harness.runs.search.former import next_search
from harness.runs.search.offline_runs import OfflineRuns
from harness.runs.search.server import ServerSearch
from harness.runs.search.session import Search
from harness.runs.session import group_up


def find(
    leg: PlannedLeg,
    asked: Asked,
    *,
    store: ResultsStore,
    data_dir: Path,
    command: list[str],
    observer: Observer,
    unfinished: Callable[[SearchEcho], None],
) -> SearchEcho:
    """Searches the rate of a row with one engine for all of it; the results folder is held meanwhile.

    What breaks a run ends the search (RunBroke, EngineDied, Interrupted, ^C): ``unfinished`` is told what there is
    then, and what was measured is kept for the next search.
    """
    check_guess(leg, asked, store)
    with group_up([leg], store=store, data_dir=data_dir, command=command, observer=observer) as group:
        search = Search(leg, asked, group, next_search(leg, store))
        offline = leg.scenario_rules.loadgen_scenario.value == "Offline"
        try:
            return OfflineRuns(search).run() if offline else ServerSearch(search).run()
        except BaseException:
            unfinished(search.echo)
            raise
