"""A report as a run keeps it: copied byte for byte, hashed, and read into what a record tells of a run."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Final

import numpy as np

from harness.clients.endpoints.config import CONFIG, REPORT
from harness.clients.endpoints.events import Phase, read_phases
from harness.clients.endpoints.report import PERFORMANCE, ClientReport, read_report, report_files
from harness.engines.replies import EMPTY
from harness.errors import MissingError
from harness.ledger.hashes import sha256
from harness.ledger.record import Comparison, Counts, FailedSample
from harness.logs import LogError

KEPT_FAILURES: Final = 100
FAILED: Final = "request_failed"
UNFINISHED: Final = "cut"
NEVER_CAME: Final = "never_completed"
SKIPPED: Final = "never_sent"
"""Turns behind one that failed: the client counts them as issued, failed and completed, after no time at all."""
MEAN: Final = "latency.avg"
DURATION: Final = "duration_ns"
_P99: Final = 99


@dataclass(frozen=True, slots=True)
class Imported:
    """A report in a run's folder, read. Without readable events there are no ``phases``, and ``unread`` says why."""

    report: ClientReport
    phases: Mapping[str, Phase] = field(default_factory=dict, repr=False)
    unread: str | None = None

    @property
    def measured(self) -> Phase | None:
        """The measured phase as the events tell it."""
        return self.phases.get(PERFORMANCE)

    @property
    def counts(self) -> Counts:
        """Samples of the measured phase as the client counted them; what it does not tell is outstanding."""
        told = (self.report.issued, self.report.completed, self.report.failed, self.report.tokens)
        issued, completed, failed, tokens = (max(0, count or 0) for count in told)
        failed = min(failed, issued)
        return Counts(
            issued=issued,
            answered=max(0, min(completed, issued) - failed),
            failed=failed,
            outstanding=max(0, issued - completed),
            output_tokens=tokens,
        )

    @property
    def failures(self) -> list[FailedSample]:
        """The first failed samples of all phases, as the servers or the client told why."""
        found = [
            FailedSample(index=int(phase.rows[at]), kind=FAILED, message=message)
            for phase in self.phases.values()
            for at, message in phase.errors.items()
        ]
        return found[:KEPT_FAILURES]

    @property
    def failure_kinds(self) -> dict[str, int]:
        """How many samples of all phases failed, were never sent, were cut, say nothing, or never came back."""
        kinds: Counter[str] = Counter()
        for phase in self.phases.values():
            kinds[FAILED] += len(phase.errors) - len(phase.skipped)
            kinds[SKIPPED] += len(phase.skipped)
            kinds[UNFINISHED] += phase.unfinished
            kinds[EMPTY] += phase.empty
            kinds[NEVER_CAME] += len(phase.rows) - phase.completed
        return {kind: count for kind, count in kinds.items() if count > 0}

    @property
    def latencies_ns(self) -> dict[str, int]:
        """The client's latencies by their key in its summary, ns."""
        return {key: round(value) for key, value in self.report.figures.items()}

    @property
    def comparisons(self) -> list[Comparison]:
        """Figures of the client's summary beside those of its events."""
        if self.measured is None:
            return []
        ours, theirs = _figures(self.measured), _told(self.report)
        return [
            Comparison(figure=name, loadgen=theirs[name], harness=own, ratio=own / theirs[name])
            for name, own in ours.items()
            if theirs.get(name, 0) > 0
        ]


def import_report(run_folder: Path, *, whole: bool = False) -> Imported:
    """Reads the report in a run's folder, ``whole`` as :func:`.read_phases` takes it.

    LogError where its summary is not as the client writes it.
    """
    report = read_report(run_folder / REPORT)
    try:
        return Imported(report, read_phases(report.folder, whole=whole))
    except LogError as error:
        return Imported(report, unread=str(error).replace("\n", ";"))


def copy_report(source: Path, run_folder: Path) -> None:
    """Copies a report into a run's folder, byte for byte. MissingError where it cannot be."""
    try:
        for inner in report_files(source):
            target = run_folder / REPORT / inner
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source / inner, target)
    except OSError as error:
        raise MissingError(
            f"the report cannot be copied: {error.strerror}",
            where=error.filename2 or error.filename or source,
            mend="free space on the results folder's disk; the report is as it was",
        ) from None


def hash_report(run_folder: Path) -> dict[str, str]:
    """SHA-256 of the report's files and of what the client was told, by path below the run's folder."""
    told = [PurePosixPath(CONFIG)] if (run_folder / CONFIG).is_file() else []
    kept = [PurePosixPath(REPORT) / inner for inner in report_files(run_folder / REPORT)]
    return {str(path): sha256(run_folder / path) for path in [*told, *kept]}


def _figures(phase: Phase) -> dict[str, float]:
    figures: dict[str, float] = {
        "n_samples_issued": float(phase.issued),
        "n_samples_completed": float(phase.completed),
        "n_samples_failed": float(len(phase.errors)),
    }
    if phase.span_ns is not None:
        figures[DURATION] = float(phase.span_ns)
    for name, spans in (("latency", phase.latencies_ns), ("ttft", phase.ttft_ns)):
        if len(spans):
            figures[f"{name}.percentiles.99.0"] = float(np.percentile(spans, _P99))
            figures[f"{name}.avg"] = float(spans.mean())
    return figures


def _told(report: ClientReport) -> dict[str, float]:
    counts = {"issued": report.issued, "completed": report.completed, "failed": report.failed}
    told = {f"n_samples_{name}": float(count) for name, count in counts.items() if count is not None}
    if report.duration_ns is not None:
        told[DURATION] = float(report.duration_ns)
    return told | dict(report.figures)
