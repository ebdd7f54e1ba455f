"""Each picture of a book as files of its own, SVG and PNG: they say what they are of and who verified it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from harness.report import wording
from harness.report.book.content import Book, RunView
from harness.report.page import svg
from harness.report.page.cards import Card, cards
from harness.report.page.files import file_name, write_plot


def write_plots(book: Book, folder: Path) -> int:
    """Writes ``<run>-<figure>.svg`` and ``.png`` of every figure that can be drawn; how many figures these are.

    ConfigError where the folder cannot be written to, MissingError where the disk is full.
    """
    drawn = 0
    for run, card, words in _drawable(book):
        title = f"{card.title}\n{run.title}, {run.word}"
        picture = card.picture(words, title=title)
        described = svg.standalone(picture, title.replace("\n", ": "), f"{card.said} {words}".strip())
        write_plot(folder, file_name(run.key, card.key), described, svg.png(picture))
        drawn += 1
    return drawn


def _drawable(book: Book) -> Iterator[tuple[RunView, Card, str]]:
    for run in book.runs:
        row = wording.row_of(book, run)
        words = wording.caution(row)
        if row is not None and row.demonstration:
            words = " · ".join(filter(None, (words, "demonstration")))
        for card in cards(run):
            if card.drawn is not None:
                yield run, card, words
