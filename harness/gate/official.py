"""Runs MLCommons' submission checker on a tree, from a clone that the user names, and tells what it said.

The checker runs in a scratch folder, always with ``--version``, and its table is new each time: its own habits are to
take a year-old round, to leave the table of an earlier run in place when it crashes, and to call no result at all
fine. Neither the tree nor the clone is written to, and no table but the one of this run is ever read.
"""

from __future__ import annotations

import dataclasses
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from harness.env import MLPERF_INFERENCE_DIR
from harness.gate.clone import Clone
from harness.gate.findings import printable
from harness.gate.official_report import (
    LOG,
    TABLE,
    OfficialReport,
    OfficialRow,
    OfficialVerdict,
    RowVerdict,
    read_table,
)

CHECKER = Path("tools/submission/submission_checker/main.py")
TIMEOUT_S = 1800

_LOOKS_OK = "SUMMARY: submission looks OK"
_HAS_ERRORS = "SUMMARY: submission has errors"
_ERROR_MARK = " ERROR] "
_NO_RESULT = "NoResults "
_FRAME = re.compile(r'  File "(?P<file>.+)", line (?P<line>\d+)(?:, in (?P<name>.+))?')
_LINK = "tree"
"""The name in the scratch folder under which the checker sees the tree, and its log tells of it."""

_IN_TREE = re.compile(rf"(?<![\w./-]){_LINK}/")
_USAGE_EXIT = 2
"""argparse's: an option or a choice that the checker does not know."""


def run_official(
    tree: Path,
    round_: str,
    submitter: str | None = None,
    *,
    report_dir: Path | None = None,
    timeout_s: float = TIMEOUT_S,
) -> OfficialReport:
    """Runs the checker of the clone in ``MLPERF_INFERENCE_DIR``; its log and table are kept in ``report_dir``.

    NOT_RUN where the variable is unset, UNUSABLE where it names nothing that can check this round. Nothing is raised:
    what the gate found must be shown whatever becomes of this.
    """
    not_kept = None if report_dir is None else _cleared(report_dir)
    report = _asked(tree, round_, submitter, report_dir if not_kept is None else None, timeout_s)
    return report if not_kept is None else dataclasses.replace(report, not_kept=not_kept)


def _asked(tree: Path, round_: str, submitter: str | None, report_dir: Path | None, timeout_s: float) -> OfficialReport:
    root = Clone.named_root()
    if root is None:
        return OfficialReport(OfficialVerdict.NOT_RUN, f"{MLPERF_INFERENCE_DIR.name} is not set")
    clone = Clone(root)
    if not clone.has(CHECKER):
        return OfficialReport(OfficialVerdict.UNUSABLE, f"the clone has no {CHECKER}", clone=root)
    try:
        with tempfile.TemporaryDirectory(prefix="official_checker_") as scratch:
            if Path(os.path.realpath(scratch)).is_relative_to(os.path.realpath(tree)):
                why = "the folder for temporary files (TMPDIR) lies in the tree that is checked"
                return OfficialReport(OfficialVerdict.UNUSABLE, why, clone=root)
            report = _run(clone, tree.absolute(), round_, submitter, Path(scratch), timeout_s)
            return report if report_dir is None else _kept(report, Path(scratch), report_dir)
    except OSError as error:
        why = f"it could not be started: {error.strerror or error}"
        return OfficialReport(OfficialVerdict.UNUSABLE, why, clone=root)


def _run(
    clone: Clone, tree: Path, round_: str, submitter: str | None, scratch: Path, timeout_s: float
) -> OfficialReport:
    (scratch / _LINK).symlink_to(
        tree, target_is_directory=True
    )  # its paths are format strings: braces would break them
    command = [sys.executable, "-B", str(clone.root / CHECKER), "--input", _LINK, "--version", round_, "--csv", TABLE]
    command += [f"--submitter={submitter}"] if submitter is not None else []
    log = scratch / LOG
    with log.open("wb") as handle:
        try:
            exit_code: int | None = subprocess.run(
                command, cwd=scratch, env=_environment(), stdin=subprocess.DEVNULL, stdout=handle,
                stderr=subprocess.STDOUT, timeout=timeout_s, check=False,
            ).returncode  # fmt: skip
        except subprocess.TimeoutExpired:
            exit_code = None
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    rows = read_table(scratch / TABLE, f"{_LINK}/")
    verdict, detail = _judge(exit_code, lines, rows, clone.root, timeout_s)
    said = [_IN_TREE.sub("", line.partition(_ERROR_MARK)[2]) for line in lines if _ERROR_MARK in line]
    return OfficialReport(
        verdict,
        printable(detail, 500),
        exit_code=exit_code,
        rows=rows or (),
        errors=tuple(printable(text, 1000) for text in said if not text.startswith(("SUMMARY:", _NO_RESULT))),
        refused=tuple(text.removeprefix(_NO_RESULT) for text in said if text.startswith(_NO_RESULT)),
        clone=clone.root,
        commit=clone.revision([CHECKER.parent]),
    )


def _environment() -> dict[str, str]:
    """Ours, less what would change the checker's Python; it opens files in the locale's encoding, so that is UTF-8."""
    ours = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    return {**ours, "PYTHONUTF8": "1", "PYTHONDONTWRITEBYTECODE": "1"}


def _judge(
    exit_code: int | None, lines: list[str], rows: tuple[OfficialRow, ...] | None, clone: Path, timeout_s: float
) -> tuple[OfficialVerdict, str]:
    if exit_code is None:
        return OfficialVerdict.CRASHED, f"it did not end within {timeout_s:.0f} s"
    if exit_code == _USAGE_EXIT and (why := _unknown_round(lines)):
        return OfficialVerdict.UNUSABLE, why
    number = len(rows or ())
    accepted = f"{number} row{'' if number == 1 else 's'} accepted"
    if exit_code == 1 and any(line.endswith(_HAS_ERRORS) for line in lines):
        return OfficialVerdict.ERRORS, f"submission has errors ({accepted})"
    if exit_code != 0 or not any(line.endswith(_LOOKS_OK) for line in lines):
        return OfficialVerdict.CRASHED, f"{_ending(exit_code)}, {_last_words(lines, clone)}"
    if rows is None:
        return OfficialVerdict.NO_TABLE, "it says that the submission looks OK, and wrote no table of results"
    if not rows:
        return OfficialVerdict.NO_ROWS, "it found no result, and says that looks OK"
    return OfficialVerdict.OK, f"submission looks OK ({accepted})"


def _unknown_round(lines: list[str]) -> str | None:
    """The complaint of its argument parser where it is about the round."""
    complaint = next((line for line in lines if "argument --version" in line), None)
    return None if complaint is None else f"this clone does not know the round: {complaint.partition('--version: ')[2]}"


def _ending(exit_code: int) -> str:
    if exit_code >= 0:
        return f"exit code {exit_code}"
    try:
        return f"killed by {signal.Signals(-exit_code).name}"
    except ValueError:
        return f"killed by signal {-exit_code}"


def _last_words(lines: list[str], clone: Path) -> str:
    """The exception and the last frame of a traceback; without one, the last line."""
    frames = [number for number, line in enumerate(lines) if _FRAME.match(line)]
    if not frames:
        return "last line: " + next((line for line in reversed(lines) if line.strip()), "no output")
    frame = _FRAME.match(lines[frames[-1]])
    assert frame is not None  # noqa: S101 - it is one of those that match
    after = lines[frames[-1] + 1 :]
    what = next((line for line in after if line.strip() and not line.startswith(" ")), "no exception named")
    file = frame["file"].replace(f"{clone}{os.sep}", "")
    return f"{what}, raised in {file}:{frame['line']}" + (f" ({frame['name']})" if frame["name"] else "")


def _cleared(report_dir: Path) -> str | None:
    """Makes the folder, without the log and table of an earlier run: they would be taken for this one's.

    The reason where that cannot be.
    """
    try:
        report_dir.mkdir(parents=True, exist_ok=True)
        for name in (LOG, TABLE):
            (report_dir / name).unlink(missing_ok=True)
    except OSError as error:
        return error.strerror or str(error)
    return None


def _kept(report: OfficialReport, scratch: Path, report_dir: Path) -> OfficialReport:
    """The report with its log and table in ``report_dir``."""
    kept: dict[str, Path | None] = {}
    try:
        for name in (LOG, TABLE):
            kept[name] = report_dir / name if (scratch / name).is_file() else None
            if kept[name] is not None:
                shutil.copyfile(scratch / name, report_dir / name)
    except OSError as error:
        return dataclasses.replace(report, not_kept=error.strerror or str(error))
    return dataclasses.replace(report, log=kept[LOG], table=kept[TABLE])


__all__ = [
    "CHECKER",
    "LOG",
    "TABLE",
    "TIMEOUT_S",
    "OfficialReport",
    "OfficialRow",
    "OfficialVerdict",
    "RowVerdict",
    "run_official",
]
