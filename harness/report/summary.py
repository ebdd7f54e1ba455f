"""A book in short, for the terminal: a table for each system and benchmark, and what must stand beside its figures."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from rich import box
from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table

from harness.report import wording
from harness.report.book.content import Book, Margin, RowView
from harness.report.compare_content import Comparison, RowChange
from harness.report.tables import UNVERIFIED

_COLOURS: Final = {"VALID": "green", "INVALID": "red", "broken": "red", "incomplete": "yellow"}
_SEVERITIES: Final = {"reject": "would reject", "review": "to review", "note": "noted"}


def summary(book: Book, comparison: Comparison | None = None) -> Group:
    """Tables of the rows, then counts, then how rows changed, then the words that no figure goes without."""
    parts: list[RenderableType] = []
    if any(row.demonstration for row in book.rows):
        parts.append(f"[bold yellow]{wording.DEMONSTRATION}[/]")
    for (title, words), rows in itertools.groupby(book.rows, key=_entry):
        parts += [f"[italic]{escape(line)}[/]" for line in (title, words) if line]  # a table's own title is folded
        parts.append(_table(rows))
    parts += map(escape, _counts(book))
    if comparison is not None:
        parts += map(escape, _changes(comparison))
    parts += map(escape, _cautions(book.rows))
    return Group(*parts)


def tightest(margins: Sequence[Margin]) -> Margin | None:
    """The limit that was missed, or else the upper one that least is left of: a run just lasts as long as it must."""
    return max(margins, key=_tightness, default=None)


def _tightness(margin: Margin) -> tuple[bool, bool, float]:
    share, upper = margin.share or 0.0, margin.direction != "at least"
    return (not margin.met, upper, share if upper else -share)


def _entry(row: RowView) -> tuple[str, str]:
    """What stands above a row: of what it is, and the words beside its figures."""
    division = "" if row.division is None else f", {row.division}"
    words = [wording.caution(row), wording.DEMONSTRATION if row.demonstration else ""]
    return f"{row.benchmark} on {row.system}{division}", " · ".join(filter(None, words))


def _table(rows: Iterable[RowView]) -> Table:
    table = Table(box=box.SIMPLE_HEAD)
    for column in ("scenario", "verdict", "result", "tightest limit", "accuracy"):
        table.add_column(column)
    for row in rows:
        verdict = f"[{_COLOURS.get(row.word, 'white')}]{escape(row.word)}[/]"
        result = wording.NO_VALUE if row.value is None else f"{wording.result(row.value)} {row.unit}"
        cells = (escape(result), _limit(tightest(row.margins)), escape(row.accuracy) or wording.NO_VALUE)
        table.add_row(escape(row.scenario), verdict, *cells)
    return table


def _limit(margin: Margin | None) -> str:
    if margin is None:
        return wording.NO_VALUE
    share = "not measured" if margin.share is None else wording.percent(margin.share)
    return escape(f"{margin.name}: {share}{'' if margin.met else ', not kept'}")


def _counts(book: Book) -> Iterator[str]:
    severities: Counter[str] = Counter(each.severity for each in book.findings)
    found = [f"{severities[name]} {word}" for name, word in _SEVERITIES.items() if severities[name]]
    yield f"{_plural(len(book.rows), 'row')}, {_plural(len(book.runs), 'run')}; findings: {', '.join(found) or 'none'}"
    yield from book.notes


def _plural(count: int, name: str) -> str:
    return f"{count:,} {name}{'' if count == 1 else 's'}"


def _changes(comparison: Comparison) -> Iterator[str]:
    yield f"against {comparison.before.title} ({comparison.before.round}, {comparison.before.place}):"
    for row in comparison.rows:
        yield f"  {row.name}: {_change(row)}"
    for name, rows in (("only before", comparison.only_before), ("only now", comparison.only_after)):
        yield from (f"  {row.system}/{row.benchmark}/{row.scenario}: {name}" for row in rows)


def _change(row: RowChange) -> str:
    whys = [each.name for each in row.boundary] or [f"{mark.side} {mark.why}" for mark in row.marks]
    because = f" ({', '.join(whys)})" if whys else ""
    percent = "" if row.result.percent is None else f"{row.result.percent:+.2f} %, "
    return f"{percent}{row.judgement}{because}"


def _cautions(rows: Iterable[RowView]) -> Iterator[str]:
    if any(wording.OPEN in wording.caution(row) for row in rows):
        yield f"{wording.OPEN}: results of the open division."
    yield UNVERIFIED
