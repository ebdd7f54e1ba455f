"""``status``: the runs there are."""

from __future__ import annotations

import argparse

from harness.cli.console import OUT
from harness.cli.options import add_results_dir, add_selection
from harness.errors import EXIT_OK
from harness.ledger import ResultsStore
from harness.report.tables import runs_table


def run(argv: list[str]) -> int:
    """Prints a table of all runs, or of those the options name; then LedgerError where a record cannot be read."""
    parser = argparse.ArgumentParser(prog="python -m harness status", description=__doc__)
    add_selection(parser)
    add_results_dir(parser)
    options = parser.parse_args(argv)
    store = ResultsStore(options.results_dir)
    runs, unreadable = store.readable_runs()
    records = [
        run.record
        for run in runs
        if (not options.systems or run.record.id.system in options.systems)
        and (not options.benchmarks or run.record.id.benchmark in options.benchmarks)
        and (not options.scenarios or run.record.id.scenario in options.scenarios)
    ]
    if records:
        OUT.print(runs_table(store.root, records))
    elif runs:
        OUT.print(f"none of the {len(runs)} runs in {options.results_dir} is of these", markup=False)
    else:
        OUT.print(f"no runs in {options.results_dir}", markup=False)
    if unreadable:
        raise unreadable[0]
    return EXIT_OK
