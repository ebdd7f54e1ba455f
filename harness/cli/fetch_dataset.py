"""``fetch_dataset``: the benchmark's own data set from where it is published, checked. No other verb asks a network."""

from __future__ import annotations

import argparse
from pathlib import Path

from harness import benchmarks, env, rules
from harness.benchmarks.download import Fetched, State, Told, megabytes
from harness.benchmarks.gpt_oss_120b.fetch import Source, described
from harness.benchmarks.gpt_oss_120b.files import NAME as GPT_OSS
from harness.benchmarks.qwen3_6_27b import dataset as trajectories
from harness.benchmarks.qwen3_6_27b import fetch as published
from harness.benchmarks.qwen3_6_27b.bfcl import table as questions
from harness.benchmarks.qwen3_6_27b.bfcl.environment import MEND
from harness.benchmarks.qwen3_6_27b.files import NAME as TRAJECTORIES
from harness.benchmarks.qwen3_6_27b.sampling import rules_of
from harness.benchmarks.qwen3_vl_235b_a22b import fetch as catalogue
from harness.benchmarks.qwen3_vl_235b_a22b.files import NAME as QWEN3_VL
from harness.benchmarks.qwen3_vl_235b_a22b.files import tables
from harness.benchmarks.standins import refuse_stand_in
from harness.cli.console import ERR, OUT
from harness.cli.options import add_quiet, folder
from harness.errors import EXIT_OK, ConfigError, MissingError, UnknownName
from harness.events import Note
from harness.report.downloads import telling
from harness.report.progress import lines
from harness.rules import RulePack, TrajectoryRules


def run(argv: list[str]) -> int:
    """Fetches what is not there, or only looks (``--verify``); then reads every table as runs do."""
    parser = argparse.ArgumentParser(prog="python -m harness fetch_dataset", description=__doc__)
    parser.add_argument("--benchmark", default=GPT_OSS, help="which benchmark's (default: %(default)s)")
    parser.add_argument("--round", default=rules.LATEST, help="whose data set (default: %(default)s)")
    parser.add_argument("--data_dir", type=folder, metavar="DIR", help="where data sets lie (default: build/data)")
    parser.add_argument("--verify", action="store_true", help="check the files that are there; ask no network")
    parser.add_argument(
        "--adopt",
        type=folder,
        metavar="FILE",
        help=f"{QWEN3_VL}: take a table that you put there, with --revision; {TRAJECTORIES}: copy a file that you have",
    )
    parser.add_argument("--revision", metavar="SHA", help="of what revision the table of --adopt is, as you know")
    add_quiet(parser)
    options = parser.parse_args(argv)
    if options.benchmark not in (GPT_OSS, QWEN3_VL, TRAJECTORIES):
        raise UnknownName("benchmark", options.benchmark, [GPT_OSS, QWEN3_VL, TRAJECTORIES])
    pack, data_dir = rules.load(options.round), options.data_dir or env.data_dir()
    if options.benchmark == QWEN3_VL:
        return _catalogue(pack, data_dir, options)
    if options.benchmark == TRAJECTORIES:
        return _trajectories(pack, data_dir, options)
    if options.adopt or options.revision:
        raise ConfigError(f"--adopt and --revision are for {QWEN3_VL}", where=f"--benchmark={options.benchmark}")
    return _gpt_oss(pack, data_dir, verify=options.verify, quiet=options.quiet)


def _gpt_oss(pack: RulePack, data_dir: Path, *, verify: bool, quiet: bool) -> int:
    own = pack.token_benchmark(GPT_OSS)
    source = Source.of(data_dir / GPT_OSS, own)
    if verify:
        found = source.verify()
    else:
        with telling(ERR, silent=quiet) as tell:
            found = source.fetch(Told(tell, lines(ERR, quiet=quiet)))
    _print(found)
    for line in described(benchmarks.get(GPT_OSS, pack), data_dir, own):
        OUT.print(line, markup=False)
    return _complete(source.folder)


def _catalogue(pack: RulePack, data_dir: Path, options: argparse.Namespace) -> int:
    benchmark = benchmarks.get(QWEN3_VL, pack)
    wanted, place = tables(pack.image_benchmark(QWEN3_VL)), data_dir / QWEN3_VL
    if bool(options.adopt) != bool(options.revision):
        raise ConfigError("--adopt and --revision go together", mend="name the file and what revision it is of")
    refuse_stand_in(place)
    if options.adopt:
        known = catalogue.adopt(options.adopt, options.revision, place, wanted)
        OUT.print(f"{known.rows:,} rows, taken for {known.repo} at {known.revision}: {options.adopt}", markup=False)
        return EXIT_OK
    note = lines(ERR, quiet=options.quiet)
    for table in wanted:
        if options.verify:
            catalogue.verify_pictures(place, table, lambda line: note(Note(line)))
        else:
            catalogue.fetch(place, table, lambda line: note(Note(line)))
        read = benchmark.dataset(data_dir, table.table)
        OUT.print(f"{table.table}: {read.rows:,} rows, {read.files[0].path}", markup=False)
        for line in benchmark.ready_to_score(read):
            OUT.print(line, markup=False)
    return _complete(place)


def _trajectories(pack: RulePack, data_dir: Path, options: argparse.Namespace) -> int:
    if options.revision:
        raise ConfigError(f"--revision is for {QWEN3_VL}", where=f"--benchmark={TRAJECTORIES}")
    own, place = rules_of(pack), data_dir / TRAJECTORIES
    data = own.performance_data.value
    refuse_stand_in(place)
    if options.adopt:
        published.adopt(options.adopt, place, data)
    elif not options.verify:
        published.fetch(place, published.address(pack, data), data)
    read = trajectories.read(place, own)
    OUT.print(f"{len(read.trajectories)} trajectories of {read.turns:,} turns: {read.file.path}", markup=False)
    return _complete(place) if _questions(own, place, verify=options.verify) else EXIT_OK


def _questions(own: TrajectoryRules, place: Path, *, verify: bool) -> bool:
    """Whether BFCL's questions are there; they are made where their package is, unless this is only to look."""
    path = place / questions.NAME
    try:
        if verify and not path.exists():
            raise MissingError("they are not there yet", mend=f"{MEND}; then the first accuracy leg makes them")
        there = questions.prepare(place, own)
    except MissingError as error:
        OUT.print(f"BFCL's questions: {error}", markup=False)
        return False
    OUT.print(f"{len(there)} questions of BFCL: {path}", markup=False)
    return True


def _complete(place: Path) -> int:
    OUT.print(f"the data set is complete: {place}", markup=False)
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
