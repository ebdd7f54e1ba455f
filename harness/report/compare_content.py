"""What a comparison of two books is made of. Nothing here knows how rows are compared, or shown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from harness.report.book.boundary import Difference
from harness.report.book.content import Book, Margin, RowView, Source

Judgement: TypeAlias = Literal["better", "worse", "the same", "not judged", "not comparable"]
Side: TypeAlias = Literal["before", "after"]


@dataclass(frozen=True, slots=True)
class Change:
    """A figure on both sides. ``percent`` is of ``before``, signed; None where it may not or cannot be told.

    ``better`` is None where nobody can say: it did not change, it is neither (a length), or it is not judged.
    """

    name: str
    unit: str
    before: float | None
    after: float | None
    percent: float | None
    better: bool | None

    def __post_init__(self) -> None:
        if self.better is not None and self.percent is None:
            raise ValueError(f"{self.name}: judged without a percent")


@dataclass(frozen=True, slots=True)
class FigureChange:
    """The percentiles of one distribution on both sides, ``p50``, ``p90`` and ``p99``."""

    key: str
    title: str
    unit: str
    changes: tuple[Change, ...]


@dataclass(frozen=True, slots=True)
class MarginChange:
    """One limit on both sides; None where a side has no such limit."""

    name: str
    unit: str
    before: Margin | None
    after: Margin | None


@dataclass(frozen=True, slots=True)
class Mark:
    """Why a side's result does not count."""

    side: Side
    why: str


@dataclass(frozen=True, slots=True)
class RowChange:
    """One row on both sides. ``boundary`` is what forbids a percent, ``marks`` what forbids a judgement.

    ``configuration`` are the facts of the two runs that differ; ``missing`` says which figures only one side has.
    """

    before: RowView
    after: RowView
    judgement: Judgement
    result: Change
    boundary: tuple[Difference, ...]
    marks: tuple[Mark, ...]
    margins: tuple[MarginChange, ...]
    accuracy: tuple[Change, ...]
    """Scores, then the share of right answers of each subset."""
    figures: tuple[FigureChange, ...]
    missing: tuple[str, ...]
    configuration: tuple[Difference, ...]

    @property
    def name(self) -> str:
        """benchmark/scenario, after the system where both have one name for it."""
        system = f"{self.after.system}/" if self.before.system == self.after.system else ""
        return f"{system}{self.after.benchmark}/{self.after.scenario}"


@dataclass(frozen=True, slots=True)
class Compared:
    """Which book a side is."""

    title: str
    source: Source
    place: str
    round: str
    made_by: str

    @classmethod
    def of(cls, book: Book) -> Compared:
        """The head of a book."""
        return cls(book.title, book.source, book.place, book.round, book.made_by)


@dataclass(frozen=True, slots=True)
class Comparison:
    """All that changed from ``before`` to ``after``."""

    before: Compared
    after: Compared
    rows: tuple[RowChange, ...]
    only_before: tuple[RowView, ...]
    only_after: tuple[RowView, ...]
    notes: tuple[str, ...]
