"""Figures as text, and the words that must stand beside them, the same on the page, in plots and on the terminal."""

from __future__ import annotations

import math
from typing import Final

from harness.report.book.content import Book, RowView, RunView, Unit

NOT_VERIFIED: Final = "not verified by MLCommons Association"
OPEN: Final = "MLPerf Open"
DEMONSTRATION: Final = "Demonstration, never a submission"
NO_VALUE: Final = "—"

_OPEN_DIVISION: Final = "open"
_SIGNIFICANT: Final = 3
_HUNDRED: Final = 100
_THOUSAND: Final = 1000
_MILLION: Final = 1e6
_LONG: Final = 1e15
"""From here on a float tells no more than its first digits."""
_S_FROM_MS: Final = 10_000
"""From so many milliseconds on, an axis is easier to read in seconds."""


def caution(row: RowView | None) -> str:
    """What must stand beside a figure of a row, or of a run that is in no row. Empty where somebody verified it."""
    words = [OPEN] if row is not None and row.division == _OPEN_DIVISION else []
    words += [NOT_VERIFIED] if row is None or row.verified is None else []
    return " · ".join(words)


def row_of(book: Book, run: RunView) -> RowView | None:
    """The row that a run is of; None of a run of no row."""
    return next((row for row in book.rows if run.key in row.runs), None)


def number(value: float) -> str:
    """Thousands apart, three digits at least: ``12,346``, ``123.4``, ``12.34``, ``0.0123``."""
    if not math.isfinite(value):
        return NO_VALUE
    size = abs(value)
    if size >= _LONG:
        return _long(value)
    if size >= _THOUSAND:
        return f"{value:,.0f}"
    if size >= _HUNDRED:
        return f"{value:.1f}".removesuffix(".0")
    if size >= 1 or not size:
        return f"{value:.2f}".removesuffix(".00")
    return f"{value:.{_SIGNIFICANT - 1 - math.floor(math.log10(size))}f}".rstrip("0")


def exact(value: float) -> str:
    """Three digits behind the point, none of a whole number or of millions: ``1,234.568``, ``1,234``."""
    if not math.isfinite(value) or abs(value) >= _LONG:
        return _long(value)
    return f"{value:,.0f}" if value == int(value) or abs(value) >= _MILLION else f"{value:,.3f}"


def result(value: float) -> str:
    """A result as the round's tables have it: two digits behind the point."""
    return f"{value:,.2f}" if abs(value) < _LONG else _long(value)  # NaN is below nothing


def _long(value: float) -> str:
    """A value of more digits than anybody reads, or none at all."""
    return f"{value:.6g}" if math.isfinite(value) else NO_VALUE


def percent(share: float, digits: int = 1) -> str:
    """A share from 0 to 1: ``98.7 %``."""
    return f"{100 * share:,.{digits}f} %"


def percentile(of_100: float) -> str:
    """``p99``, ``p99.9``."""
    return f"p{of_100:g}"


def duration(seconds: float) -> str:
    """``1 h 02 min``, ``10 min 12 s``, ``9.31 s``."""
    minutes, rest = divmod(round(seconds), 60)
    if not minutes:
        return f"{number(seconds)} s"
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours:,} h {minutes:02d} min"


def moment(text: str | None) -> str:
    """A time in ISO form as people write it; what is none stays as it is."""
    if text is None:
        return NO_VALUE
    day, _, rest = text.partition("T")
    clock, dot, behind = rest.partition(".")
    zone = behind.lstrip("0123456789") if dot else ""
    return f"{day} {clock}{zone}".replace("+00:00", " UTC").replace("Z", " UTC") if rest else text


def scale(unit: Unit, largest: float) -> tuple[float, str]:
    """What values are divided by to be read on an axis, and the unit that they have then."""
    return (_THOUSAND, "s") if unit == "ms" and largest >= _S_FROM_MS else (1, unit)
