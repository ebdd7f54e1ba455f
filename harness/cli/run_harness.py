"""``run_harness``: legs through LoadGen, scored, judged, kept."""

from __future__ import annotations

import argparse
from pathlib import Path

from harness import env, rules
from harness.cli.console import ERR, OUT
from harness.cli.options import add_results_dir, add_selection, comma_list, folder
from harness.config import Project
from harness.errors import EXIT_OK, Refused
from harness.ledger import ResultsStore, RunRecord
from harness.report.progress import LinePrinter
from harness.report.tables import runs_table
from harness.runs.plan import MODES, Selection, plan
from harness.runs.session import run_legs


def run(argv: list[str]) -> int:
    """Runs the legs that the options name. 0: all VALID; 1: all ended, not all VALID."""
    options = _parser().parse_args(argv)
    project = Project(Path.cwd())
    selection = Selection(options.systems, options.benchmarks, options.scenarios, options.test_mode, options.test_run)
    legs = plan(project, selection, rules.load(options.round))
    records = run_legs(
        legs,
        store=ResultsStore(options.results_dir.absolute()),
        data_dir=(options.data_dir or env.data_dir()).absolute(),
        command=["python", "-m", "harness", "run_harness", *argv],
        observer=LinePrinter(ERR),
    )
    OUT.print(runs_table(ResultsStore(options.results_dir).root, records))
    return EXIT_OK if all(map(_valid, records)) else Refused.exit_code


def _valid(record: RunRecord) -> bool:
    return record.verdict is not None and record.verdict.valid


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m harness run_harness", description=__doc__)
    add_selection(parser)
    parser.add_argument(
        "--test_mode",
        type=comma_list,
        default=[],
        metavar="A,B",
        help=f"comma list of {', '.join(MODES)} (default: both)",
    )
    parser.add_argument("--test_run", action="store_true", help="short legs, for trying things; never submittable")
    parser.add_argument("--round", default=rules.LATEST, help="the MLPerf Inference round (default: %(default)s)")
    parser.add_argument("--data_dir", type=folder, metavar="DIR", help="where data sets lie (default: build/data)")
    add_results_dir(parser)
    return parser
