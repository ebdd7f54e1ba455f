"""The page as text: all of a book is in it, nothing of it becomes part of the page, and nothing is fetched."""

from __future__ import annotations

import dataclasses
import itertools
import re
import time
from html.parser import HTMLParser

import pytest

pytest.importorskip("matplotlib", reason="needs the [report] extra")
pytest.importorskip("jinja2", reason="needs the [report] extra")

from harness.report.book.content import Book
from harness.report.compare import compare
from harness.report.page.render import render
from harness.report.wording import DEMONSTRATION, NOT_VERIFIED, OPEN
from tests.report.page import made

pytestmark = pytest.mark.report

VOID = {"meta", "link", "br", "input"}


class Reader(HTMLParser):
    """Reads a page as strictly as pages can be: each element is closed where it was opened, each id is one's own."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.targets: list[str] = []
        self.text: list[str] = []
        self.counts: dict[str, int] = {}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.counts[tag] = self.counts.get(tag, 0) + 1
        found = dict(attrs)
        self.ids += [value for name, value in attrs if name == "id" and value]
        self.targets += [found[name] or "" for name in ("href", "src", "xlink:href") if name in found]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open and self.open[-1] == tag, f"</{tag}> within {self.open[-3:]} at {self.getpos()}"
        self.open.pop()

    def handle_data(self, data: str) -> None:
        if not self.open or self.open[-1] not in ("style", "script"):
            self.text.append(data)


def read(page: str) -> Reader:
    reader = Reader()
    reader.feed(page)
    reader.close()
    assert not reader.open
    return reader


@pytest.fixture(scope="module")
def book() -> Book:
    return made.book()


@pytest.fixture(scope="module")
def page(book: Book) -> str:
    return render(book, compare(made.earlier(book), book))


def test_it_is_well_formed_and_each_id_is_ones_own(page: str) -> None:
    reader = read(page)
    assert len(reader.ids) == len(set(reader.ids))
    inside = {target[1:] for target in reader.targets if target.startswith("#")}
    assert inside <= set(reader.ids)


def test_headings_go_down_a_step_at_a_time(page: str) -> None:
    levels = [int(level) for level in re.findall(r"<h(\d)", page)]
    assert levels[0] == 1 and levels.count(1) == 1
    assert all(below - above <= 1 for above, below in itertools.pairwise(levels))


def test_nothing_is_fetched(page: str) -> None:
    targets = read(page).targets
    assert targets
    assert all(target.startswith("#") or target == "data:," for target in targets)
    assert "default-src 'none'" in page
    assert not re.search(r"@import|url\((?!#)", page)


def test_what_is_given_stays_text(page: str) -> None:
    reader = read(page)
    assert reader.counts["script"] == 1
    assert made.NASTY in " ".join(reader.text)
    assert "<b>bold" not in page


def test_all_of_the_book_is_in_it(page: str, book: Book) -> None:
    text = " ".join("".join(read(page).text).split())
    for row in book.rows:
        assert row.system in text and all(reason in text for reason in row.reasons)
    for run in book.runs:
        assert run.title in text and run.headline in text
        assert all(each in text for each in (*run.not_submittable, *run.deviations, *run.notes, *run.failures))
        assert all(f"{name} {value}" in text or value in text for _, facts in run.facts for name, value in facts)
        assert all(subset.name in text for subset in run.subsets)
        assert all(margin.name in text and margin.source in text for margin in run.margins)
    assert all(finding.rule in text and finding.mend in text for finding in book.findings)
    assert all(note in text for note in book.notes)
    for said in ("12,345.68", "e2e interactivity: 71.25 tokens/s", "+12.23 %", "not comparable", "10 min 12 s"):
        assert said in text, said


def test_what_nobody_verified_says_so_beside_each_figure(page: str, book: Book) -> None:
    cells = re.findall(r"<td class=\"right\" data-value=\"[^\"]+\"><b>.*?</td>", page, re.DOTALL)
    assert len(cells) == 2
    assert all(NOT_VERIFIED in cell for cell in cells)
    assert [OPEN in cell for cell in cells] == [False, True]
    for drawn in re.findall(r"<svg .*?</svg>", page, re.DOTALL):
        assert re.search(rf"<text[^>]*>[^<]*{NOT_VERIFIED}</text>", drawn)
    open_runs = page.partition('id="run-agentic-performance-1"')[2].partition("</details>\n<")[0]
    drawn = re.findall(r"<svg .*?</svg>", open_runs, re.DOTALL)
    assert drawn and all(f"{OPEN} · {NOT_VERIFIED}</text>" in each for each in drawn)


def test_a_figure_that_somebody_verified_says_who() -> None:
    row = made.row(verified="MLCommons", runs=("server-performance-1",))
    page = render(made.book(rows=(row,), runs=(made.performance_run(samples=50),), findings=(), notes=()))
    assert "verified by MLCommons" in page
    assert NOT_VERIFIED not in page.partition('id="rows"')[2]


def test_a_demonstration_cannot_be_missed(page: str) -> None:
    assert DEMONSTRATION not in page
    shown = render(made.demonstration())
    banner = shown.index('<div class="banner"')
    assert banner < shown.index("<h1>")
    assert shown.count(DEMONSTRATION) == 1 + len(made.book().rows)


def test_what_is_missing_has_its_reason_in_its_place(page: str) -> None:
    broken = page.partition('id="run-broken-1"')[2]
    assert "there are no samples" in broken
    assert "<svg" not in broken.partition("</section>")[0]


def test_a_book_of_nothing_says_so() -> None:
    page = render(made.book(rows=(), runs=(), findings=(), notes=("there are no runs in results",)))
    text = " ".join("".join(read(page).text).split())
    assert "There is no row here, and no run." in text
    assert "What the gate says of a run stands with the run" in text
    tree = render(made.book(source="tree", rows=(), runs=(), findings=(), notes=()))
    assert "The gate has nothing to say against what is here." in tree
    assert "there are no runs in results" in text


def test_runs_without_rows_are_shown() -> None:
    page = render(made.book(rows=(), runs=(made.broken_run(),), findings=(), notes=()))
    assert "the runs below belong to no row yet" in page
    assert "run.json ends in the middle of a line" in page


def test_runs_come_in_the_order_of_the_rows(book: Book) -> None:
    page = render(dataclasses.replace(book, runs=tuple(reversed(book.runs))))
    keys = re.findall(r'<details class="panel run" id="run-([\w-]+)"', page)
    assert keys == ["server-performance-1", "server-accuracy-1", "agentic-performance-1", "broken-1"]


def test_long_lists_of_reasons_are_folded() -> None:
    reasons = tuple(f"reason {at}" for at in range(20))
    page = render(made.book(rows=(made.lacking_row(reasons=reasons),), runs=(), findings=(), notes=()))
    assert "14 more" in page
    assert all(reason in page for reason in reasons)


def test_it_is_the_same_page_each_time(book: Book, page: str) -> None:
    assert render(book, compare(made.earlier(book), book)) == page


def test_a_typical_book_takes_seconds_and_little_room(book: Book, page: str) -> None:
    begun = time.process_time()
    render(book)
    assert time.process_time() - begun < 5
    assert len(page.encode()) < 500_000
