"""Runs MLCommons' submission checker on a tree, from a clone that the user names, and tells what it said.

The checker runs in a scratch folder, always with ``--version``, and its table is new each time: its own habits are to
take a year-old round, to leave the table of an earlier run in place when it crashes, and to call no result at all
fine. Neither the tree nor the clone is written to.
"""

from __future__ import annotations

import csv
import dataclasses
import enum
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from harness import env
from harness.errors import MissingError
from harness.gate.findings import Finding, Severity, rule
from harness.gate.row import RowPlace

CHECKER = Path("tools/submission/submission_checker/main.py")
LOG = "official_checker_log.txt"
TABLE = "official_summary.csv"
TIMEOUT_S = 1800

OFFICIAL = rule(
    "OFFICIAL-CHECKER",
    Severity.REJECT,
    "the official checker's acceptance of every row",
    mend="see its log; where the gate found nothing, the gate has a hole",
    source="mlcommons/inference tools/submission/submission_checker",
)

_LOOKS_OK = "SUMMARY: submission looks OK"
_HAS_ERRORS = "SUMMARY: submission has errors"
_ERROR_MARK = " ERROR] "
_KEPT_ERRORS = 20


class OfficialVerdict(str, enum.Enum):
    """How a run of the official checker ended."""

    NOT_RUN = "not run"
    OK = "ok"
    ERRORS = "errors"
    CRASHED = "crashed"
    NO_ROWS = "no rows"


@dataclass(frozen=True, slots=True)
class OfficialRow:
    """A row that the official checker accepted; the values are its texts. ``inferred`` should be 0."""

    division: str
    submitter: str
    system: str
    benchmark: str
    scenario: str
    result: str
    units: str
    accuracy: str
    inferred: str


@dataclass(frozen=True, slots=True)
class OfficialReport:
    """What the official checker said. ``detail`` is one sentence; ``log`` and ``table`` are None where none is kept.

    ``commit`` is the clone's, with ``-dirty`` where its checker was changed; None where git does not tell.
    """

    verdict: OfficialVerdict
    detail: str
    exit_code: int | None = None
    rows: tuple[OfficialRow, ...] = ()
    errors: tuple[str, ...] = field(default=(), repr=False)
    clone: Path | None = None
    commit: str | None = None
    log: Path | None = None
    table: Path | None = None

    @property
    def ran(self) -> bool:
        """Whether there was a clone to run."""
        return self.verdict is not OfficialVerdict.NOT_RUN

    def accepts(self, place: RowPlace) -> bool | None:
        """Whether a row is in its table; None where it did not run."""
        if not self.ran:
            return None
        wanted = (place.division, place.submitter, place.system, place.folder.parent.name, place.scenario)
        return any((r.division, r.submitter, r.system, r.benchmark, r.scenario) == wanted for r in self.rows)

    def findings(self) -> list[Finding]:
        """Nothing where it accepts or did not run; else one finding."""
        if self.verdict in (OfficialVerdict.OK, OfficialVerdict.NOT_RUN):
            return []
        first = f": {self.errors[0]}" if self.errors else ""
        return [OFFICIAL.broken(self.log or LOG, f"{self.verdict.value}: {self.detail}{first}")]


def run_official(
    tree: Path,
    round_: str,
    submitter: str | None = None,
    *,
    report_dir: Path | None = None,
    timeout_s: float = TIMEOUT_S,
) -> OfficialReport:
    """Runs the checker of the clone in ``MLPERF_INFERENCE_DIR``; NOT_RUN where that is unset.

    Its log and table are kept in ``report_dir``. MissingError where the variable names no clone that has the checker.
    """
    clone = env.MLPERF_INFERENCE_DIR.path()
    if clone is None:
        return OfficialReport(OfficialVerdict.NOT_RUN, f"{env.MLPERF_INFERENCE_DIR.name} is not set")
    if not (clone / CHECKER).is_file():
        raise MissingError(
            "no submission checker in the clone of mlcommons/inference",
            where=clone / CHECKER,
            mend=f"set {env.MLPERF_INFERENCE_DIR.name} to a whole clone, or unset it",
        )
    with tempfile.TemporaryDirectory(prefix="official_checker_") as scratch:
        report = _run(clone, tree.absolute(), round_, submitter, Path(scratch), timeout_s)
        return report if report_dir is None else _kept(report, Path(scratch), report_dir)


def _run(
    clone: Path, tree: Path, round_: str, submitter: str | None, scratch: Path, timeout_s: float
) -> OfficialReport:
    command = [sys.executable, "-B", str(clone / CHECKER), "--input", str(tree), "--version", round_]
    command += ["--csv", str(scratch / TABLE)]
    command += ["--submitter", submitter] if submitter is not None else []
    log = scratch / LOG
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    with log.open("wb") as handle:
        try:
            exit_code: int | None = subprocess.run(
                command, cwd=scratch, env=environment, stdin=subprocess.DEVNULL, stdout=handle,
                stderr=subprocess.STDOUT, timeout=timeout_s, check=False,
            ).returncode  # fmt: skip
        except subprocess.TimeoutExpired:
            exit_code = None
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    rows = tuple(_rows(scratch / TABLE))
    verdict, detail = _judge(exit_code, lines, len(rows), timeout_s)
    errors = tuple(line.partition(_ERROR_MARK)[2] for line in lines if _ERROR_MARK in line)[:_KEPT_ERRORS]
    return OfficialReport(verdict, detail, exit_code, rows, errors, clone, _commit(clone))


def _judge(exit_code: int | None, lines: list[str], rows: int, timeout_s: float) -> tuple[OfficialVerdict, str]:
    if exit_code is None:
        return OfficialVerdict.CRASHED, f"it did not end within {timeout_s:.0f} s"
    if any(line.endswith(_HAS_ERRORS) for line in lines) and exit_code == 1:
        return OfficialVerdict.ERRORS, f"submission has errors ({rows} rows accepted)"
    if not any(line.endswith(_LOOKS_OK) for line in lines) or exit_code != 0:
        last = next((line for line in reversed(lines) if line.strip()), "no output")
        return OfficialVerdict.CRASHED, f"exit code {exit_code}, last line: {last}"
    if not rows:
        return OfficialVerdict.NO_ROWS, "it found no result, and says that looks OK"
    return OfficialVerdict.OK, f"submission looks OK ({rows} rows accepted)"


def _rows(table: Path) -> Iterator[OfficialRow]:
    """The rows of its table, whose values are quoted without escapes: a bad line is one that no row of ours equals."""
    if not table.is_file():
        return
    with table.open(encoding="utf-8", errors="replace", newline="") as handle:
        for row in csv.DictReader(handle, restkey="rest", restval=""):
            yield OfficialRow(
                division=row.get("Division", ""),
                submitter=row.get("Organization", ""),
                system=row.get("Platform", ""),
                benchmark=row.get("Model", ""),
                scenario=row.get("Scenario", ""),
                result=row.get("Result", ""),
                units=row.get("Units", ""),
                accuracy=row.get("Accuracy", ""),
                inferred=row.get("inferred", ""),
            )


def _kept(report: OfficialReport, scratch: Path, report_dir: Path) -> OfficialReport:
    """The report with its log and table in ``report_dir``; those of an earlier run are gone."""
    kept: dict[str, Path | None] = {}
    try:
        report_dir.mkdir(parents=True, exist_ok=True)
        for name in (LOG, TABLE):
            (report_dir / name).unlink(missing_ok=True)
            kept[name] = report_dir / name if (scratch / name).is_file() else None
            if kept[name] is not None:
                shutil.copyfile(scratch / name, report_dir / name)
    except OSError as error:
        raise MissingError(
            f"cannot write: {error.strerror}", where=report_dir, mend="give another --report-dir"
        ) from None
    return dataclasses.replace(report, log=kept[LOG], table=kept[TABLE])


def _commit(clone: Path) -> str | None:
    """The clone's commit. git is told not to write to the clone, and that its owner may be another."""
    git = ["git", "--no-optional-locks", "-c", f"safe.directory={clone}", "-C", str(clone)]
    try:
        head = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True, timeout=60, check=False)
        status = ["status", "--porcelain", "--", str(CHECKER.parent)]
        changed = subprocess.run([*git, *status], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    if head.returncode != 0:
        return None
    return head.stdout.strip() + ("-dirty" if changed.stdout.strip() else "")
