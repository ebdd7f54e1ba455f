"""A book as one HTML file: everything is in it, nothing is fetched."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from harness.report import wording
from harness.report.book.content import Book, RowView, RunView, Said
from harness.report.compare import Change, Comparison, RowChange
from harness.report.page import svg
from harness.report.page.cards import Card, cards
from harness.report.page.files import GENERATOR
from harness.report.summary import tightest
from harness.report.turns import turn_lines, turn_spreads

HERE: Final = Path(__file__).parent
_LIMIT_AT: Final = 80.0
"""Percent of a bar's length at which its limit is drawn."""
_TONES: Final = {
    "good": ("VALID", "PASS", "yes", "better"),
    "bad": ("INVALID", "FAIL", "no", "worse", "broken", "reject", "unread"),
    "warn": ("incomplete", "interrupted", "stale", "review", "running", "not judged", "not comparable"),
}
_SEVERITIES: Final = ("reject", "review", "note")


@dataclass(frozen=True, slots=True)
class ShownCard:
    """A card and its picture; None where the card says why there is none."""

    card: Card
    svg: Markup | None


@dataclass(frozen=True, slots=True)
class ShownRun:
    """A run as the page shows it: the words beside its figures, its cards, and whether it is open at first."""

    run: RunView
    words: str
    cards: tuple[ShownCard, ...]
    open: bool


def render(book: Book, comparison: Comparison | None = None) -> str:
    """The page. ``comparison`` is of an earlier book with this one."""
    templates = _templates(book)
    page = templates.get_template("page.html")
    return page.render(
        book=book,
        comparison=comparison,
        runs=[_shown(book, run) for run in _in_order(book)],
        findings=sorted(book.findings, key=lambda each: _SEVERITIES.index(each.severity)),
        tiles=list(_tiles(book)),
        unverified=any(row.verified is None for row in book.rows) or not book.rows,
        open_rows=any(wording.OPEN in wording.caution(row) for row in book.rows),
        demonstrations=sum(row.demonstration for row in book.rows),
        demonstration=wording.DEMONSTRATION,
        generator=GENERATOR,
        css=_asset("page.css"),
        js=_asset("page.js"),
    )


def _asset(name: str) -> Markup:
    return Markup((HERE / name).read_text(encoding="utf-8"))  # noqa: S704 - the package's own file


def _templates(book: Book) -> Environment:
    templates = Environment(
        loader=FileSystemLoader(HERE), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    by_key = {run.key: run for run in book.runs}
    templates.globals["tone"] = _tone
    templates.filters.update(
        amount=_amount,
        bar_at=lambda margin: f"{min((margin.share or 0) * _LIMIT_AT, 100):.1f}",
        changes=_changes,
        exact=wording.exact,
        moment=wording.moment,
        number=wording.number,
        percent=wording.percent,
        result=wording.result,
        row_facts=_row_facts,
        run_facts=_run_facts,
        runs_of=lambda keys: [by_key[key] for key in keys if key in by_key],
        scores=lambda run: [(name, wording.number(value)) for name, value in run.scores],
        signed=lambda percent: f"{percent:+.2f} %",
        spreads=turn_spreads,
        tightest=tightest,
        turn_lines=turn_lines,
        words=wording.caution,
    )
    return templates


def _in_order(book: Book) -> list[RunView]:
    """The runs of each row, in its order; then those of no row."""
    places = {key: place for place, key in enumerate(key for row in book.rows for key in row.runs)}
    return sorted(book.runs, key=lambda run: places.get(run.key, len(places)))


def _shown(book: Book, run: RunView) -> ShownRun:
    row = wording.row_of(book, run)
    words = wording.caution(row)
    shown = tuple(ShownCard(card, _picture(run, card, words)) for card in cards(run))
    return ShownRun(run, words, shown, open=len(book.runs) == 1 or (row is not None and row.runs[0] == run.key))


def _picture(run: RunView, card: Card, words: str) -> Markup | None:
    if card.drawn is None:
        return None
    return svg.inline(card.picture(words), f"{run.key}-{card.key}", card.title, f"{card.said} {words}".strip())


def _tone(word: str) -> str:
    return next((tone for tone, words in _TONES.items() if word in words), "none")


def _amount(value: float | None, unit: str) -> str:
    return "not measured" if value is None else f"{wording.exact(value)} {unit}".strip()


def _row_facts(row: RowView) -> Iterator[tuple[str, str]]:
    if row.division is not None:
        yield "division", wording.OPEN if row.division == "open" else row.division
    if row.category is not None:
        yield "category", row.category
    if row.submitter is not None:
        yield "submitter", row.submitter
    if row.metric is not None:
        yield "metric", row.metric
    if row.accuracy:
        yield "accuracy", row.accuracy
    yield from row.audits


def _run_facts(run: RunView) -> Iterator[tuple[str, str]]:
    yield "leg", run.leg
    if run.started_at is not None:
        yield "started", wording.moment(run.started_at)
    if run.seconds is not None:
        yield "took", wording.duration(run.seconds)


def _tiles(book: Book) -> Iterator[tuple[int, str, str]]:
    """Counts of what is in the book, and whether each is good or bad news."""
    words = Counter(row.word for row in book.rows)
    yield len(book.rows), "row" if len(book.rows) == 1 else "rows", ""
    for word, count in words.items():
        yield count, word, _tone(word)
    yield len(book.runs), "run" if len(book.runs) == 1 else "runs", ""
    for severity, count in _by_severity(book.findings):
        yield count, {"reject": "would reject", "review": "to review", "note": "noted"}[severity], _tone(severity)


def _by_severity(findings: tuple[Said, ...]) -> list[tuple[str, int]]:
    counts = Counter(each.severity for each in findings)
    return [(severity, counts[severity]) for severity in _SEVERITIES if counts[severity]]


def _changes(row: RowChange) -> list[tuple[str, Change]]:
    """Scores, then percentiles, by the names that a table shows."""
    found = [(change.name, change) for change in row.accuracy]
    return found + [(f"{figure.title}, {change.name}", change) for figure in row.figures for change in figure.changes]
