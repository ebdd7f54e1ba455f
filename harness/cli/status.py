"""``status``: the runs there are."""

from __future__ import annotations

import argparse

from harness.cli.console import OUT
from harness.cli.options import add_results_dir, add_selection
from harness.errors import EXIT_OK
from harness.ledger import ResultsStore
from harness.report.tables import runs_table


def run(argv: list[str]) -> int:
    """Prints a table of all runs, or of those the options name."""
    parser = argparse.ArgumentParser(prog="python -m harness status", description=__doc__)
    add_selection(parser)
    add_results_dir(parser)
    options = parser.parse_args(argv)
    store = ResultsStore(options.results_dir)
    records = [
        run.record
        for run in store.runs()
        if (not options.systems or run.record.id.system in options.systems)
        and (not options.benchmarks or run.record.id.benchmark in options.benchmarks)
        and (not options.scenarios or run.record.id.scenario in options.scenarios)
    ]
    if not records:
        OUT.print(f"no runs in {options.results_dir}", markup=False)
    else:
        OUT.print(runs_table(store.root, records))
    return EXIT_OK
