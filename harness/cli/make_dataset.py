"""``make_dataset``: a stand-in data set in exactly the reference's files and columns."""

from __future__ import annotations

import argparse
from pathlib import Path

from harness import env, rules
from harness.benchmarks.gpt_oss_120b import files
from harness.benchmarks.gpt_oss_120b.standin import Counts, make_dataset
from harness.cli.console import OUT
from harness.errors import EXIT_OK, UnknownName

_MAKERS = (files.NAME,)


def run(argv: list[str]) -> int:
    """Makes the stand-in, or says that it is there already."""
    parser = argparse.ArgumentParser(prog="python -m harness make_dataset", description=__doc__)
    parser.add_argument("--benchmark", default=files.NAME, help="which benchmark's (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="what its questions are drawn with (default: %(default)s)")
    parser.add_argument("--round", default=rules.LATEST, help="whose row counts (default: %(default)s)")
    parser.add_argument("--data_dir", type=Path, metavar="DIR", help="where data sets lie (default: build/data)")
    options = parser.parse_args(argv)
    if options.benchmark not in _MAKERS:
        raise UnknownName("benchmark", options.benchmark, _MAKERS)
    folder = (options.data_dir or env.data_dir()) / options.benchmark
    made = make_dataset(
        folder, seed=options.seed, counts=Counts.by(rules.load(options.round).benchmark(options.benchmark))
    )
    word = "made" if made.made else "is there already"
    OUT.print(
        f"stand-in data set {word}: {made.folder} (not the benchmark's: runs on it are never submittable)", markup=False
    )
    return EXIT_OK
