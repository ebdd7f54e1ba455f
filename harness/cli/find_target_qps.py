"""``find_target_qps``: the highest rate of one row whose full run is VALID."""

from __future__ import annotations

import argparse
from pathlib import Path

from harness import env, rules
from harness.cli.console import ERR, OUT
from harness.cli.options import add_quiet, add_results_dir, add_selection, add_variant, folder
from harness.config import Project
from harness.config.rewrite import check_writable, plain, write_number
from harness.errors import EXIT_OK, ConfigError, Refused
from harness.events import Note
from harness.gate.run_facts import PERFORMANCE
from harness.ledger import ResultsStore
from harness.ledger.search import SearchEcho
from harness.report.progress import observer
from harness.report.search import search_table
from harness.runs.plan import PlannedLeg, Selection, notes, plan
from harness.runs.search.asked import Asked, the_row
from harness.runs.search.find import find

_DEFAULTS = Asked()


def run(argv: list[str]) -> int:
    """Searches, and prints what was probed and what was found. 0: found; 1: there is none, and why."""
    options = _parser().parse_args(argv)
    asked = Asked(options.tolerance, options.max_probes, options.probe_seconds, options.guess)
    project, store = Project(Path.cwd()), ResultsStore(options.results_dir.absolute())
    leg = the_row(plan(project, _selection(options), rules.load(options.round)))
    target = _target(project, leg, options) if options.write else None
    unfinished: list[SearchEcho] = []
    try:
        with observer(ERR, quiet=options.quiet) as tell:
            for note in notes([leg]):
                tell(Note(note))
            searching = find(
                leg,
                asked,
                store=store,
                data_dir=(options.data_dir or env.data_dir()).absolute(),
                command=["python", "-m", "harness", "find_target_qps", *argv],
                observer=tell,
                unfinished=unfinished.append,
            )
    finally:
        _print_unfinished(unfinished)
    OUT.print(search_table(searching))
    if searching.found is None:
        return Refused.exit_code
    key, rate = ".".join(_keys(leg)), plain(searching.found)
    if target is not None:
        write_number(target, _keys(leg), searching.found)
        OUT.print(f"{target}: {key} is {rate} now", markup=False)
    elif not (options.test_run or options.stand_in):
        path = project.benchmark_path(leg.system, leg.benchmark, options.variant)
        OUT.print(f"{path}: not written; set {key} to {rate} there, or the run counts as stale", markup=False)
    return EXIT_OK


def _print_unfinished(echoes: list[SearchEcho]) -> None:
    """What there is of a search that did not end, once the display of its progress has gone."""
    for echo in echoes:
        if echo.runs:
            OUT.print(search_table(echo))


def _target(project: Project, leg: PlannedLeg, options: argparse.Namespace) -> Path:
    """The file that the rate is to be written to: looked at before hours are spent on it."""
    for option in ("test_run", "stand_in"):
        if getattr(options, option):
            raise ConfigError(
                f"--write keeps a rate that a full run has confirmed, and --{option} makes no full run",
                mend="leave one of the two out",
            )
    path = project.benchmark_path(leg.system, leg.benchmark, options.variant)
    check_writable(path, _keys(leg))
    return path


def _keys(leg: PlannedLeg) -> tuple[str, ...]:
    return "scenarios", leg.scenario, "target_qps"


def _selection(options: argparse.Namespace) -> Selection:
    return Selection(
        systems=options.systems,
        benchmarks=options.benchmarks,
        scenarios=options.scenarios,
        legs=[PERFORMANCE],
        test_run=options.test_run,
        stand_in=options.stand_in,
        variant=options.variant,
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m harness find_target_qps", description=__doc__)
    add_selection(parser)
    add_variant(parser)
    parser.add_argument(
        "--from", dest="guess", type=float, metavar="RATE",
        help="the first guess in samples a second (default: what the configuration says or comes to)",
    )  # fmt: skip
    parser.add_argument(
        "--tolerance", type=float, default=_DEFAULTS.tolerance, metavar="SHARE",
        help="how wide the bracket may be in the end (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument(
        "--max_probes", type=int, default=_DEFAULTS.max_probes, metavar="N",
        help="short runs at most (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument(
        "--probe_seconds", type=float, metavar="S",
        help="how long a short run is at least (default: 120, or what --test_run is shortened to)",
    )  # fmt: skip
    parser.add_argument(
        "--write", action="store_true", help="write the rate that was found into the system's own YAML file"
    )
    parser.add_argument(
        "--test_run", action="store_true", help="confirm by a short run, for trying things; not a rate to file by"
    )
    parser.add_argument(
        "--stand_in", action="store_true", help="CPU servers in place of the accelerators, to try the search itself"
    )
    parser.add_argument("--round", default=rules.LATEST, help="the MLPerf Inference round (default: %(default)s)")
    parser.add_argument("--data_dir", type=folder, metavar="DIR", help="where data sets lie (default: build/data)")
    add_quiet(parser)
    add_results_dir(parser)
    return parser
