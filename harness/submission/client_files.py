"""The files of a row that the endpoints client measured: its own, byte for byte, where the round wants them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

from harness.clients.endpoints.config import REPORT
from harness.clients.endpoints.events import EVENTS, INDEX
from harness.errors import Refused
from harness.gate.row_endpoints import check_endpoints_run
from harness.gate.row_layout import RowPlace
from harness.ledger.store import StoredRun
from harness.rules import RulePack
from harness.rules.layouts import EndpointsLayout

_FILED: Final = ("config", "performance_summary", "accuracy_results")
_OF_THE_ANSWERS: Final = (str(EVENTS), str(INDEX))
"""Every answer, and which sample it is of: large, asked for by nobody, kept with the run."""


@dataclass(frozen=True, slots=True)
class ClientFile:
    """A file to lay out: its place below the row's folder, and below the run's folder."""

    place: PurePosixPath
    kept: PurePosixPath


def client_files(run: StoredRun, pack: RulePack) -> list[ClientFile]:
    """The round's files of such a row, and the optional ones that the report has and that are not too large.

    Refused where one of those that a row must have is not among what the run kept: a report in the client's old form.
    """
    layout = _layout(pack)
    files = [ClientFile(PurePosixPath(name), PurePosixPath(REPORT, name)) for name in _wanted(run, layout)]
    most = pack.tree.file_max_bytes.value
    for name in layout.optional_files.value:
        kept = PurePosixPath(REPORT, name)
        if name not in _OF_THE_ANSWERS and str(kept) in run.record.hashes and _size(run.folder / kept) <= most:
            files.append(ClientFile(PurePosixPath(name), kept))
    return files


def _size(path: Path) -> int:
    """In bytes; 0 of a file that is gone, which is told where it is copied."""
    return path.stat().st_size if path.is_file() else 0


def check_against_report(run: StoredRun, pack: RulePack, division: str) -> None:
    """Refused where a run's record tells another result than the report that the client wrote."""
    record = run.record
    place = RowPlace(PurePosixPath(), division, "submitter", record.id.system, record.id.benchmark, record.id.scenario)
    metric = check_endpoints_run(run.folder / REPORT, place, pack).metric
    told = None if record.result is None else (record.result.key, record.result.value)
    if told != (None if metric is None else (metric.key, metric.value)):
        raise Refused(
            f"the run's record tells the result {told}",
            where=run.folder,
            expected=f"what the client reports: {metric}",
            mend="run it again; results are never mended by hand",
        )


def _wanted(run: StoredRun, layout: EndpointsLayout) -> Iterator[str]:
    for role in _FILED:
        value = layout.files[role].value
        names = [value] if isinstance(value, str) else value
        there = [name for name in names if f"{REPORT}/{name}" in run.record.hashes]
        if not there:
            raise Refused(
                f"the client's report has no {names[0]}",
                where=run.folder / REPORT,
                expected="a report of a client of July 2026 or later",
                mend="measure again with such a client",
            )
        yield there[0]


def _layout(pack: RulePack) -> EndpointsLayout:
    if pack.layouts.endpoints is None:
        raise ValueError(f"{pack.round} has no such layout")
    return pack.layouts.endpoints
