"""``check_submission --profile``: another programme's rules, on a report directory of the endpoints client."""

from __future__ import annotations

import argparse
import dataclasses
import json
from pathlib import Path
from typing import Any

from harness import __version__
from harness.benchmarks.answer_tokens import AnswerTokens
from harness.benchmarks.qwen3_6_27b.rows import read_rows
from harness.benchmarks.qwen3_6_27b.trajectories import assemble
from harness.cli.console import OUT
from harness.errors import EXIT_OK, ConfigError, Refused
from harness.gate.export import counts, workflow_commands
from harness.gate.findings import Verdict
from harness.gate.profile import ProfileReport, check_profile, profile_of
from harness.gate.profile_facts import read_report
from harness.gate.profile_scores import swe_bench_percent
from harness.ledger.store import write_atomically
from harness.logs.agentic_events import EVENTS, TurnTotals, read_turns
from harness.report.profile import profile_lines
from harness.rules import RulePack
from harness.rules.rulings import Profile

SCHEMA = 1


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options that a profile has of its own."""
    parser.add_argument(
        "--profile", metavar="NAME", help="hold a client's report directory (--input) against another programme's rules"
    )
    parser.add_argument(
        "--dataset", type=Path, metavar="FILE", help="with --profile: your copy of the trajectories, to be counted"
    )
    help_ = "with --profile: counts the tokens of all turns with this model's tokenizer, whose own code is run"
    parser.add_argument("--tokenizer", type=Path, metavar="DIR", help=help_)
    parser.add_argument(
        "--region", type=Path, action="append", default=[], metavar="DIR", help="with --profile: a further report,"
        " of another region, for the mean of SWE-bench; may be given several times",
    )  # fmt: skip


def refuse_lone_options(args: argparse.Namespace) -> None:
    """ConfigError for options of profiles without one, and of trees with one."""
    of_profiles = {"--dataset": args.dataset, "--tokenizer": args.tokenizer, "--region": args.region}
    of_trees = {"--submitter": args.submitter, "--originals": args.originals, "--report-dir": args.report_dir}
    mend = "leave one of them out"
    for option, value in of_profiles.items():
        if value and args.profile is None:
            raise ConfigError(f"{option} is for --profile", where=option, mend=mend)
    for option, value in of_trees.items():
        if value and args.profile is not None:
            raise ConfigError(f"{option} is for trees, and --profile checks a report", where=option, mend=mend)


def run_profile(args: argparse.Namespace, pack: RulePack) -> int:
    """Checks a report directory: 0 where nothing rejects it, 1 where something does."""
    profile = profile_of(pack, args.profile)
    if not args.input.is_dir():
        raise ConfigError("nothing to check: no such folder", where=args.input, mend="give the client's report folder")
    facts = read_report(
        args.input,
        profile,
        turns=_turns(args.input, args.tokenizer),
        conversations=_conversations(args.dataset),
        regions=tuple(_region(folder, profile) for folder in args.region),
    )
    report = check_profile(args.profile, facts, args.input)
    code = Refused.exit_code if report.verdict is Verdict.REJECT else EXIT_OK
    if args.format == "github":
        for text in workflow_commands(args.input, report.findings):
            OUT.print(text, markup=False, emoji=False)
    for line in profile_lines(report):
        OUT.print(line)
    if args.json is not None:
        args.json.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(args.json, json.dumps(_as_json(report, code), indent=1, allow_nan=False) + "\n")
    return code


def _turns(folder: Path, tokenizer: Path | None) -> TurnTotals | None:
    """What the events tell; None where the report has none. LogError for events that are none."""
    path = folder / EVENTS
    if not path.is_file():
        if tokenizer is not None:
            raise ConfigError(f"no {EVENTS}, whose answers --tokenizer counts", where=folder)
        return None
    return read_turns(path, None if tokenizer is None else AnswerTokens(tokenizer))


def _conversations(dataset: Path | None) -> int | None:
    """How many trajectories a data set has. DatasetError where it breaks the schema."""
    return None if dataset is None else len(assemble(read_rows(dataset), dataset).all)


def _region(folder: Path, profile: Profile) -> float:
    """The SWE-bench figure of another report."""
    if not folder.is_dir():
        raise ConfigError("no report of another region: no such folder", where=folder, mend="correct --region")
    percent = swe_bench_percent(read_report(folder, profile))
    if percent is None:
        raise ConfigError("a report without a figure of SWE-bench", where=folder, mend="run it with --mode both")
    return percent


def _as_json(report: ProfileReport, exit_code: int) -> dict[str, Any]:
    return {
        "schema_version": SCHEMA,
        "harness_version": __version__,
        "input": str(report.root),
        "profile": report.name,
        "verdict": report.verdict.value,
        "exit_code": exit_code,
        "counts": counts(report.findings),
        "figures": dict(report.figures),
        "findings": [dataclasses.asdict(f) | {"severity": f.severity.value} for f in report.findings],
    }
