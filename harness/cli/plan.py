"""``plan``: before a run, how many samples each leg asks, how long it takes, what it needs, what stands against it."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from harness import rules
from harness.cli.console import OUT
from harness.cli.options import add_results_dir, add_selection, add_variant, comma_list
from harness.config import Project
from harness.errors import EXIT_OK, Refused, UnknownName
from harness.ledger import ResultsStore
from harness.report.plan import plan_json, plan_tables
from harness.runs.plan import LEGS, TEST_MODES, Selection, plan
from harness.runs.sizing import matrix


def run(argv: list[str]) -> int:
    """Prints the sizes of all legs that the options name. 1 where one of them cannot be VALID as it is configured."""
    options = _parser().parse_args(argv)
    for mode in options.test_mode:
        if mode not in TEST_MODES:
            raise UnknownName("test mode", mode, TEST_MODES)
    project = Project(Path.cwd())
    selection = Selection(
        systems=options.systems or project.system_names(),
        benchmarks=options.benchmarks,
        scenarios=options.scenarios,
        legs=options.legs or [TEST_MODES[mode] for mode in options.test_mode],
        with_audits=True,
        test_run=options.test_run,
        stand_in=options.stand_in,
        variant=options.variant,
    )
    sizes = matrix(plan(project, selection, rules.load(options.round)), ResultsStore(options.results_dir))
    if options.json:
        OUT.print(json.dumps(plan_json(sizes), indent=1), markup=False)
    else:
        OUT.print(plan_tables(sizes, engines=options.engines))
    return EXIT_OK if sizes.can_be_valid else Refused.exit_code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m harness plan", description=__doc__)
    add_selection(parser)
    add_variant(parser)
    chosen = parser.add_mutually_exclusive_group()
    chosen.add_argument(
        "--legs", type=comma_list, default=[], metavar="A,B", help=f"comma list of {', '.join(LEGS)} (default: all)"
    )
    chosen.add_argument(
        "--test_mode", type=comma_list, default=[], metavar="A,B", help=f"in LoadGen's words: {', '.join(TEST_MODES)}"
    )
    parser.add_argument("--test_run", action="store_true", help="size short legs, as run_harness --test_run makes them")
    parser.add_argument("--stand_in", action="store_true", help="size legs with CPU servers in place of accelerators")
    parser.add_argument("--round", default=rules.LATEST, help="the MLPerf Inference round (default: %(default)s)")
    parser.add_argument("--engines", action="store_true", help="print also what was calculated of the engines' memory")
    parser.add_argument("--json", action="store_true", help="print the same as JSON")
    add_results_dir(parser)
    return parser
