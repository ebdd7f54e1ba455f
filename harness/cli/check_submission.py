"""The verb ``check_submission``: our gate on a submission tree, and the official checker beside it."""

from __future__ import annotations

import argparse
import errno
import json
import os
from collections.abc import Sequence
from pathlib import Path

from rich.markup import escape

from harness.cli.check_profile import add_options, refuse_lone_options, run_profile
from harness.cli.console import ERR, OUT
from harness.cli.options import add_quiet
from harness.errors import EXIT_OK, ConfigError, HarnessError, MissingError, Refused
from harness.events import StepProgress
from harness.gate.agreement import Assessment, assess
from harness.gate.export import as_json
from harness.gate.findings import Verdict
from harness.gate.official import OfficialVerdict, run_official
from harness.gate.tree import check_tree
from harness.ledger.store import write_atomically
from harness.report.check import lines, plain, workflow_lines
from harness.report.progress import observer
from harness.rules import LATEST, RulePack, load

FINDINGS_JSON = "findings.json"
FINDINGS_TXT = "findings.txt"

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EIO}
"""A disk that fails; whatever else keeps a report from being written is a path that the user can correct."""


def run(argv: Sequence[str]) -> int:
    """Checks a tree: 0 where nothing rejects it, 1 where something does, 2 where something asked for cannot be.

    All that was found is shown first, whatever else fails.
    """
    args = _parser().parse_args(argv)
    refuse_lone_options(args)
    for target in (args.json, args.report_dir):
        _refuse_inside(args.input, target)
    _refuse_unreadable(args.input)
    pack = load(args.round)
    if args.profile is not None:
        return run_profile(args, pack)
    with observer(ERR, quiet=args.quiet) as tell:
        report = check_tree(args.input, pack, args.submitter, originals=args.originals, observer=tell)
        tell(StepProgress("the official checker", 0, None))
        official = run_official(args.input, args.round, args.submitter, report_dir=args.report_dir)
    checked = assess(report, official)
    _show(checked, args.format)
    problems = _unusable(checked, args.report_dir)
    problems += _write_reports(checked, pack, _exit_code(checked, problems), args.json, args.report_dir)
    for problem in problems:
        ERR.print(f"[bold red]error:[/] {escape(str(problem))}")
    return _exit_code(checked, problems)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m harness check_submission", description=__doc__)
    parser.add_argument("--input", type=Path, required=True, help="the folder that holds closed/ or open/")
    parser.add_argument("--round", default=LATEST, help=f"the round whose rules hold (default: {LATEST})")
    parser.add_argument("--submitter", help="check this submitter's folders alone")
    help_ = (
        "the whole accuracy logs that were kept (results/, or a truncation's backup), to hold against the filed ones"
    )
    parser.add_argument("--originals", type=Path, metavar="DIR", help=help_)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all that was found here too")
    parser.add_argument("--format", choices=("text", "github"), default="text", help="what is printed")
    help_ = f"keep {FINDINGS_JSON}, {FINDINGS_TXT}, and the official checker's log and table here"
    parser.add_argument("--report-dir", type=Path, metavar="DIR", help=help_)
    add_options(parser)
    add_quiet(parser)
    return parser


def _refuse_inside(tree: Path, target: Path | None) -> None:
    if target is not None and Path(os.path.realpath(target)).is_relative_to(os.path.realpath(tree)):
        raise ConfigError(
            "a report inside the tree that is checked would change it", where=target, mend="write it elsewhere"
        )


def _refuse_unreadable(tree: Path) -> None:
    """ConfigError for a folder that is there and cannot be listed. What is no folder, the gate tells itself."""
    try:
        os.scandir(tree).close()
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        raise ConfigError(
            f"nothing to check: the folder cannot be listed: {error.strerror}",
            where=tree,
            mend="mend its permissions, or give the folder that holds closed/ or open/",
        ) from None


def _show(checked: Assessment, style: str) -> None:
    if style == "text":
        for line in lines(checked):
            OUT.print(line)
        return
    for text in workflow_lines(checked):
        OUT.print(text, markup=False, emoji=False)


def _unusable(checked: Assessment, report_dir: Path | None) -> list[HarnessError]:
    """What was asked of the official checker and could not be."""
    found: list[HarnessError] = []
    official = checked.official
    if official.verdict is OfficialVerdict.UNUSABLE:
        found.append(
            ConfigError(
                f"the official checker did not run: {official.detail}",
                where=official.clone,
                mend="set MLPERF_INFERENCE_DIR to a whole clone that knows the round, or unset it",
            )
        )
    if official.not_kept is not None:
        why = f"the official checker's log and table are not kept: {official.not_kept}"
        found.append(ConfigError(why, where=report_dir, mend="give another --report-dir"))
    return found


def _exit_code(checked: Assessment, problems: list[HarnessError]) -> int:
    if problems:
        return max(problem.exit_code for problem in problems)
    return Refused.exit_code if checked.verdict is Verdict.REJECT else EXIT_OK


def _write_reports(
    checked: Assessment, pack: RulePack, exit_code: int, json_file: Path | None, report_dir: Path | None
) -> list[HarnessError]:
    """Writes what was asked for; what could not be written comes back."""
    if json_file is None and report_dir is None:
        return []
    data = json.dumps(as_json(checked, pack, exit_code), indent=1, allow_nan=False) + "\n"
    problems = []
    if report_dir is not None:
        files = {FINDINGS_JSON: data, FINDINGS_TXT: plain(lines(checked, shown=None))}
        errors = [_written(report_dir / name, text, "--report-dir") for name, text in files.items()]
        problems += [error for error in errors if error is not None][:1]  # one folder, one reason
    if json_file is not None and (error := _written(json_file, data, "--json")) is not None:
        problems.append(error)
    return problems


def _written(path: Path, text: str, option: str) -> HarnessError | None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, text)
    except MissingError as error:
        cause = error.__cause__
    except OSError as error:
        cause = error
    else:
        return None
    reason = cause.strerror if isinstance(cause, OSError) else cause
    kind = MissingError if isinstance(cause, OSError) and cause.errno in _FULL else ConfigError
    return kind(f"the report cannot be written: {reason}", where=path, mend=f"give another {option}")
