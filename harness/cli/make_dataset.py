"""``make_dataset``: a stand-in data set in exactly the reference's files and columns."""

from __future__ import annotations

import argparse

from harness import benchmarks, env, rules
from harness.cli.console import ERR, OUT
from harness.cli.options import add_quiet, folder
from harness.errors import EXIT_OK
from harness.events import StepProgress
from harness.report.progress import observer

_DEFAULT = "gpt-oss-120b"


def run(argv: list[str]) -> int:
    """Makes the stand-in, or says that it is there already."""
    parser = argparse.ArgumentParser(prog="python -m harness make_dataset", description=__doc__)
    parser.add_argument("--benchmark", default=_DEFAULT, help="which benchmark's (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="what its questions are drawn with (default: %(default)s)")
    parser.add_argument("--rows", type=int, metavar="N", help="so many rows a table, where it can be shorter or longer")
    parser.add_argument("--round", default=rules.LATEST, help="whose row counts (default: %(default)s)")
    parser.add_argument("--data_dir", type=folder, metavar="DIR", help="where data sets lie (default: build/data)")
    add_quiet(parser)
    options = parser.parse_args(argv)
    benchmark = benchmarks.get(options.benchmark, rules.load(options.round))
    with observer(ERR, quiet=options.quiet) as tell:
        tell(StepProgress(f"making the stand-in data set of {benchmark.name}", 0, None))
        made = benchmark.make_dataset(options.data_dir or env.data_dir(), seed=options.seed, rows=options.rows)
    word = "made" if made.made else "is there already"
    OUT.print(
        f"stand-in data set {word}: {made.folder} (not the benchmark's: runs on it are never submittable)", markup=False
    )
    return EXIT_OK
