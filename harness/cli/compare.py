"""``compare``: what changed from one results folder or submission tree to another, or from one run to another."""

from __future__ import annotations

import argparse
import json
import math

from rich.markup import escape

from harness.cli.console import ERR, OUT
from harness.cli.options import add_results_dir, add_selection
from harness.errors import EXIT_OK, Refused
from harness.report.book.results import Wanted
from harness.report.compare import regressions
from harness.report.compare_export import as_json
from harness.report.compare_sides import Asked, compare_sides, is_attempt
from harness.report.compare_table import comparison_lines


def run(argv: list[str]) -> int:
    """Prints a comparison: 0, or 1 where --fail_below is given and something is worse."""
    options = _parser().parse_args(argv)
    wanted = Wanted(options.systems, options.benchmarks, options.scenarios)
    asked = Asked(options.results_dir, options.submitter, wanted)
    comparison = compare_sides(options.before, options.after, asked)
    worse = None if options.fail_below is None else regressions(comparison, options.fail_below)
    code = Refused.exit_code if worse else EXIT_OK
    if options.json:
        text = json.dumps(as_json(comparison, worse, code), indent=1, allow_nan=False)
        OUT.print(text, markup=False, emoji=False)
        return code
    for line in comparison_lines(comparison, details=options.details or is_attempt(options.before)):
        OUT.print(line)
    for why in worse or ():
        ERR.print(f"[bold red]worse:[/] {escape(why)}")
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m harness compare", description=__doc__)
    what = "a results folder, a submission tree, or a run: system/benchmark/scenario/leg#attempt"
    parser.add_argument("before", metavar="A", help=f"before: {what}")
    parser.add_argument("after", metavar="B", help="after: the same")
    parser.add_argument("--details", action="store_true", help="limits, accuracy, percentiles and configuration too")
    parser.add_argument("--json", action="store_true", help="print all of it as JSON")
    parser.add_argument(
        "--fail_below",
        type=_percent,
        metavar="PERCENT",
        help="end with 1 where a row is worse by more, counts no more or is gone, or none can be judged",
    )
    parser.add_argument("--submitter", help="of trees, compare this submitter's part alone")
    add_selection(parser)
    add_results_dir(parser)
    return parser


def _percent(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value >= 0):
        raise argparse.ArgumentTypeError(f"{text!r} is no percentage from 0 up")
    return value
