"""``fetch_dataset``: the benchmark's own data set from MLCommons' storage, checked. No other verb asks a network."""

from __future__ import annotations

import argparse

from harness import benchmarks, env, rules
from harness.benchmarks.download import Fetched, State, Told, megabytes
from harness.benchmarks.gpt_oss_120b.fetch import Source, described
from harness.benchmarks.gpt_oss_120b.files import NAME
from harness.cli.console import ERR, OUT
from harness.cli.options import folder
from harness.errors import EXIT_OK, UnknownName
from harness.report.downloads import telling
from harness.report.progress import LinePrinter


def run(argv: list[str]) -> int:
    """Fetches what is not there, or only looks (``--verify``); then reads every table as runs do."""
    parser = argparse.ArgumentParser(prog="python -m harness fetch_dataset", description=__doc__)
    parser.add_argument("--benchmark", default=NAME, help="which benchmark's (default: %(default)s)")
    parser.add_argument("--round", default=rules.LATEST, help="whose data set (default: %(default)s)")
    parser.add_argument("--data_dir", type=folder, metavar="DIR", help="where data sets lie (default: build/data)")
    parser.add_argument("--verify", action="store_true", help="check the files that are there; ask no network")
    options = parser.parse_args(argv)
    if options.benchmark != NAME:
        raise UnknownName("benchmark", options.benchmark, [NAME])
    pack = rules.load(options.round)
    own, data_dir = pack.token_benchmark(NAME), options.data_dir or env.data_dir()
    source = Source.of(data_dir / NAME, own)
    if options.verify:
        found = source.verify()
    else:
        with telling(ERR) as tell:
            found = source.fetch(Told(tell, LinePrinter(ERR)))
    _print(found)
    for line in described(benchmarks.get(NAME, pack), data_dir, own):
        OUT.print(line, markup=False)
    OUT.print(f"the data set is complete: {source.folder}", markup=False)
    return EXIT_OK


def _print(found: Fetched) -> None:
    for path in found.aside:
        OUT.print(f"put aside, its content is another: {path}", markup=False)
    for state in found.states:
        how = "fetched" if state.file.path in found.fetched else "was there"
        said = f"{megabytes(state.size or 0)} MB, md5 {state.md5} as listed, {how}"
        OUT.print(
            f"{state.file.path}: {'not there, not needed' if state.state is State.MISSING else said}", markup=False
        )
