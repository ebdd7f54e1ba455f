"""What a run of the official checker came to: its verdict, its table, its complaints, and what it thinks of a row."""

from __future__ import annotations

import csv
import enum
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from harness.gate.row_layout import RowPlace

LOG = "official_checker_log.txt"
TABLE = "official_summary.csv"


class OfficialVerdict(str, enum.Enum):
    """How a run of the official checker ended."""

    NOT_RUN = "not run"
    UNUSABLE = "unusable"
    """It was asked for and could not run: no checker there, or one that does not know the round."""
    OK = "ok"
    ERRORS = "errors"
    CRASHED = "crashed"
    NO_ROWS = "no rows"
    NO_TABLE = "no table"


_SAID_NOTHING = {OfficialVerdict.CRASHED, OfficialVerdict.NO_TABLE}


class RowVerdict(str, enum.Enum):
    """What the official checker says of one row."""

    NOT_RUN = "not run"
    ACCEPTS = "accepts"
    REFUSES = "refuses"
    IGNORES = "ignores"
    """It neither accepted nor refused it: it never looked there."""
    CRASHED = "crashed"
    """It ended before it said anything."""


@dataclass(frozen=True, slots=True)
class OfficialRow:
    """A row that the official checker accepted; the values are its texts. ``inferred`` should be 0.

    ``location`` is the folder of its performance run, within the tree.
    """

    location: str
    result: str
    units: str
    accuracy: str
    inferred: str


@dataclass(frozen=True, slots=True)
class OfficialReport:
    """What the official checker said. ``detail`` is one sentence; ``log`` and ``table`` are None where none is kept.

    ``errors`` are its complaints and ``refused`` the paths it gives no result to, as paths within the tree.
    ``commit`` is the clone's, with ``-dirty`` where its checker was changed; None where git does not tell.
    ``not_kept`` says why log and table could not be kept where that was asked for.
    """

    verdict: OfficialVerdict
    detail: str
    exit_code: int | None = None
    rows: tuple[OfficialRow, ...] = ()
    errors: tuple[str, ...] = field(default=(), repr=False)
    refused: tuple[str, ...] = field(default=(), repr=False)
    clone: Path | None = None
    commit: str | None = None
    log: Path | None = None
    table: Path | None = None
    not_kept: str | None = None

    @property
    def ran(self) -> bool:
        """Whether there was a checker to run."""
        return self.verdict not in (OfficialVerdict.NOT_RUN, OfficialVerdict.UNUSABLE)

    def row(self, place: RowPlace) -> OfficialRow | None:
        """The row as its table has it."""
        within = f"{place.folder}/"
        return next((row for row in self.rows if row.location.startswith(within)), None)

    def of(self, place: RowPlace) -> RowVerdict:
        """What it says of one row."""
        if not self.ran:
            return RowVerdict.NOT_RUN
        if self.verdict in _SAID_NOTHING:
            return RowVerdict.CRASHED
        row = self.row(place)
        if row is not None:
            return RowVerdict.REFUSES if _is_zero(row.result) else RowVerdict.ACCEPTS
        within = f"{place.folder}/"
        return RowVerdict.REFUSES if any(p.startswith(within) for p in self.refused) else RowVerdict.IGNORES

    def errors_of(self, place: RowPlace) -> tuple[str, ...]:
        """Its complaints about a row's folder; where it has none, those about what the row depends on."""
        for pattern in _what_a_row_depends_on(place):
            found = tuple(error for error in self.errors if pattern.search(error))
            if found:
                return found
        return ()


def _what_a_row_depends_on(place: RowPlace) -> Iterator[re.Pattern[str]]:
    """The paths that a complaint about a row can name, the nearest first; other rows' paths are none of them."""
    benchmark, submitter = place.folder.parent, place.folder.parents[3]
    yield re.compile(rf"{re.escape(str(place.folder))}(?![\w.-])")
    yield re.compile(rf"{re.escape(str(benchmark))}(?![\w./-])")
    yield re.compile(rf"{re.escape(str(submitter / 'systems' / place.system))}[._]")
    yield re.compile(rf"{re.escape(str(submitter))}(?![\w.-]|/results/|/systems/)")


def _is_zero(result: str) -> bool:
    """A result of zero is in its table, and counted among those without a result."""
    try:
        return float(result) == 0
    except ValueError:
        return False


def read_table(table: Path, prefix: str) -> tuple[OfficialRow, ...] | None:
    """The rows of its table, None where it wrote none; ``prefix`` is taken off their locations.

    Its values are quoted without escapes: a line that a quotation mark garbles is a row that no row of ours equals.
    """
    if not table.is_file():
        return None
    with table.open(encoding="utf-8", errors="replace", newline="") as handle:
        reader = csv.DictReader(handle, restkey="rest", restval="")
        try:
            return tuple(_row(row, prefix) for row in reader)
        except csv.Error:  # a field beyond the reader's limit
            return ()


def _row(row: dict[str, str], prefix: str) -> OfficialRow:
    return OfficialRow(
        location=row.get("Location", "").removeprefix(prefix),
        result=row.get("Result", ""),
        units=row.get("Units", ""),
        accuracy=row.get("Accuracy", ""),
        inferred=row.get("inferred", ""),
    )
