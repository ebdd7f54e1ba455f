"""``run_llm_server``: starts the servers of a benchmark's engine and keeps them until ^C."""

from __future__ import annotations

import argparse
from pathlib import Path

from harness import rules
from harness.cli.console import ERR, OUT
from harness.cli.options import add_quiet, add_results_dir, add_selection, add_variant
from harness.config import Project
from harness.errors import EXIT_OK
from harness.report.progress import lines
from harness.runs.keep_serving import Target, commands, keep_serving, target_of
from harness.runs.plan import Selection, plan
from harness.runs.servers import Serving


def run(argv: list[str]) -> int:
    """Serves until ^C: 0. 3: a port in use, a program or checkpoint missing; 4: a server ended."""
    options = _parser().parse_args(argv)
    selection = Selection(
        options.systems, options.benchmarks, options.scenarios, stand_in=options.stand_in, variant=options.variant
    )
    legs = plan(Project(Path.cwd()), selection, rules.load(options.round))
    target = target_of(legs)
    results = options.results_dir.absolute()
    if options.dry_run:
        OUT.print(commands(target, results), markup=False, emoji=False)
        return EXIT_OK
    keep_serving(target, results, observer=lines(ERR, quiet=options.quiet), tell=lambda up: _tell(target, up))
    return EXIT_OK


def _tell(target: Target, up: Serving) -> None:
    for name, url in up.endpoints:
        OUT.print(f"{target.name}: server {name} serves {up.model} at {url}", markup=False)
    OUT.print("run_harness uses them while they run; ^C ends them", markup=False)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m harness run_llm_server", description=__doc__)
    add_selection(parser)
    add_variant(parser)
    parser.add_argument(
        "--dry-run", "--dry_run", action="store_true", help="print commands, environment and files; start nothing"
    )
    parser.add_argument(
        "--stand_in", action="store_true", help="servers on the CPU in place of the accelerators'; never submittable"
    )
    parser.add_argument("--round", default=rules.LATEST, help="the MLPerf Inference round (default: %(default)s)")
    add_results_dir(parser)
    add_quiet(parser)
    return parser
