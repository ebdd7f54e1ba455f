"""``status``: where each leg stands, and the runs there are."""

from __future__ import annotations

import argparse
from pathlib import Path

from harness import rules
from harness.cli.console import OUT
from harness.cli.options import add_results_dir, add_selection
from harness.config import Project
from harness.errors import EXIT_OK
from harness.ledger import ResultsStore
from harness.report.standings import standings_tables
from harness.report.tables import runs_table
from harness.runs.overview import overview
from harness.runs.plan import Selection


def run(argv: list[str]) -> int:
    """Prints where legs stand and a table of their runs; then LedgerError where a record cannot be read."""
    parser = argparse.ArgumentParser(prog="python -m harness status", description=__doc__)
    add_selection(parser)
    parser.add_argument("--round", default=rules.LATEST, help="the MLPerf Inference round (default: %(default)s)")
    add_results_dir(parser)
    options = parser.parse_args(argv)
    store = ResultsStore(options.results_dir)
    selection = Selection(options.systems, options.benchmarks, options.scenarios)
    found = overview(Project(Path.cwd()), store, selection, rules.load(options.round))
    if found.rows:
        OUT.print(standings_tables(found.rows))
    for note in found.notes:
        OUT.print(note, markup=False)
    _print_runs(store, {(row.system, row.benchmark, row.scenario) for row in found.rows})
    if found.unreadable:
        raise found.unreadable[0]
    return EXIT_OK


def _print_runs(store: ResultsStore, rows: set[tuple[str, str, str]]) -> None:
    runs = store.readable_runs()[0]
    records = [run.record for run in runs if run.record.id.row in rows]
    if records:
        OUT.print(runs_table(store.root, records))
    elif runs:
        OUT.print(f"none of the {len(runs)} runs in {store.root} is of these", markup=False)
    else:
        OUT.print(f"no runs in {store.root}", markup=False)
