"""``run_harness``: legs through LoadGen or the endpoints client, scored, judged, kept."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from harness import env, rules
from harness.benchmarks.gpt_oss_120b.judge import SANDBOXES
from harness.benchmarks.gpt_oss_120b.judge.settings import JudgeSettings, judged
from harness.cli.console import ERR, OUT
from harness.cli.options import add_quiet, add_results_dir, add_selection, add_variant, comma_list, folder
from harness.config import Project
from harness.errors import EXIT_OK, ConfigError, Refused, UnknownName
from harness.events import Note, Observer
from harness.gate.run_facts import PERFORMANCE
from harness.ledger import ResultsStore, RunRecord
from harness.report.progress import observer
from harness.report.tables import runs_table, turns_of_runs
from harness.runs.endpoints_import import import_run, one_row
from harness.runs.endpoints_session import ClientSession
from harness.runs.plan import LEGS, TEST_MODES, PlannedLeg, Selection, notes, plan
from harness.runs.session import run_legs
from harness.runs.sizing import impossible

LOADGEN, ENDPOINTS = "loadgen", "endpoints"


def run(argv: list[str]) -> int:
    """Runs the legs that the options name. 0: all VALID; 1: all ended, not all VALID."""
    parser = _parser("run_harness", __doc__)
    chosen = parser.add_mutually_exclusive_group()
    chosen.add_argument(
        "--legs", type=comma_list, default=[], metavar="A,B",
        help=f"comma list of {', '.join(LEGS)} (default: the first two)",
    )  # fmt: skip
    chosen.add_argument(
        "--test_mode", type=comma_list, default=[], metavar="A,B",
        help=f"the same in LoadGen's words: {', '.join(TEST_MODES)}",
    )  # fmt: skip
    _add_client(parser)
    options = parser.parse_args(argv)
    if options.client == ENDPOINTS or options.import_from is not None:
        return _run_client(argv, options)
    for mode in options.test_mode:
        if mode not in TEST_MODES:
            raise UnknownName("test mode", mode, TEST_MODES)
    return _run("run_harness", argv, options, options.legs or [TEST_MODES[mode] for mode in options.test_mode])


def _run_client(argv: list[str], options: argparse.Namespace) -> int:
    """The endpoints client in place of LoadGen: both phases of each row in one run, or a report that is imported."""
    _check_client(options)
    project = Project(Path.cwd())
    legs = plan(project, _selection(options, [PERFORMANCE]), rules.load(options.round))
    store, command = ResultsStore(options.results_dir.absolute()), ["python", "-m", "harness", "run_harness", *argv]
    data_dir = (options.data_dir or env.data_dir()).absolute()
    divisions = {(leg.system, leg.benchmark): project.division(leg.system, leg.benchmark) for leg in legs}
    with _observer(options, legs) as tell:
        if options.import_from is None:
            records = ClientSession(store, data_dir, command, tell, divisions).run(legs)
        else:
            leg = one_row(legs)
            records = [
                import_run(
                    leg,
                    options.import_from,
                    store=store,
                    data_dir=data_dir,
                    command=command,
                    division=divisions[leg.system, leg.benchmark],
                    observer=tell,
                )
            ]
    OUT.print(runs_table(store.root, records))
    return EXIT_OK if all(map(_valid, records)) else Refused.exit_code


def _check_client(options: argparse.Namespace) -> None:
    """ConfigError for options that mean nothing with the endpoints client."""
    if options.import_from is not None and options.client == LOADGEN:
        raise ConfigError(
            "--import takes a report of the endpoints client", where="--client=loadgen", mend="give --client=endpoints"
        )
    for name in ("legs", "test_mode"):
        if getattr(options, name):
            raise ConfigError(
                f"the endpoints client runs both phases of a row at once, --{name} cannot part them",
                mend=f"leave --{name} out",
            )
    if options.resume:
        raise ConfigError(
            "--resume means nothing for a run of the endpoints client: it is one run, made again or not",
            mend="leave --resume out",
        )


def run_audit(verb: str, test: str, argv: list[str]) -> int:
    """Runs one audit of each scenario that the options name; the exit codes are those of :func:`run`."""
    parser = _parser(verb, f"``{verb}``: the audit {test}, of every scenario that is named.")
    return _run(verb, argv, parser.parse_args(argv), [test])


def _run(verb: str, argv: list[str], options: argparse.Namespace, chosen: list[str]) -> int:
    legs = plan(Project(Path.cwd()), _selection(options, chosen), rules.load(options.round))
    store = ResultsStore(options.results_dir.absolute())
    with _observer(options, legs) as tell:
        for line in impossible(legs, store):
            tell(Note(line))
        records = run_legs(
            legs,
            store=store,
            data_dir=(options.data_dir or env.data_dir()).absolute(),
            command=["python", "-m", "harness", verb, *argv],
            observer=tell,
            resume=options.resume,
        )
    OUT.print(runs_table(ResultsStore(options.results_dir).root, records))
    OUT.print(turns_of_runs(ResultsStore(options.results_dir), records), end="")
    return EXIT_OK if all(map(_valid, records)) else Refused.exit_code


@contextlib.contextmanager
def _observer(options: argparse.Namespace, legs: Sequence[PlannedLeg]) -> Iterator[Observer]:
    """Who is told what is done, the judge of programs too; first what the plan has to say of the legs."""
    with (
        observer(ERR, quiet=options.quiet) as tell,
        judged(JudgeSettings(options.judge_sandbox, options.judge_workers, tell)),
    ):
        for note in notes(legs):
            tell(Note(note))
        yield tell


def _selection(options: argparse.Namespace, legs: list[str]) -> Selection:
    return Selection(
        systems=options.systems,
        benchmarks=options.benchmarks,
        scenarios=options.scenarios,
        legs=legs,
        test_run=options.test_run,
        stand_in=options.stand_in,
        variant=options.variant,
    )


def _valid(record: RunRecord) -> bool:
    return record.verdict is not None and record.verdict.valid


def _add_client(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--client",
        choices=(LOADGEN, ENDPOINTS),
        help="who measures (default: loadgen; the other is the inference-endpoint client of mlcommons)",
    )
    parser.add_argument(
        "--import",
        dest="import_from",
        type=folder,
        metavar="DIR",
        help="take a report that the endpoints client wrote as a run of the one row that is named; runs nothing",
    )


def _parser(verb: str, description: str | None) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=f"python -m harness {verb}", description=description)
    add_selection(parser)
    add_variant(parser)
    parser.add_argument(
        "--resume", action="store_true", help="leave legs that are done as they are; judge what was only measured"
    )
    parser.add_argument("--test_run", action="store_true", help="short legs, for trying things; never submittable")
    parser.add_argument(
        "--stand_in", action="store_true",
        help="CPU servers in place of the accelerators, to try a configuration without them; short, never submittable",
    )  # fmt: skip
    parser.add_argument("--round", default=rules.LATEST, help="the MLPerf Inference round (default: %(default)s)")
    parser.add_argument("--data_dir", type=folder, metavar="DIR", help="where data sets lie (default: build/data)")
    parser.add_argument(
        "--judge-sandbox",
        choices=SANDBOXES,
        default=SANDBOXES[0],
        help="where code that a model wrote is run to score it; none is a recorded deviation (default: %(default)s)",
    )
    parser.add_argument(
        "--judge-workers",
        type=positive,
        metavar="N",
        help="how much of that code runs at once (default: as many as there are cores and memory for)",
    )
    add_results_dir(parser)
    add_quiet(parser)
    return parser


def positive(text: str) -> int:
    """An option's value: a whole number of at least 1."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not at least 1")
    return number
