"""Pictures: the same bytes each time, letters that are letters, colours that are the page's, and words that must stand
in each of them, whatever lies within.
"""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="needs the [report] extra")

from hypothesis import example, given, settings
from hypothesis import strategies as st

from harness.report.book.content import Distribution, Limit
from harness.report.book.distributions import Named, distribution, of_percentiles
from harness.report.page import paper, svg
from harness.report.page.cards import cards
from harness.report.page.plots import Line, Lines, draw_distribution, draw_lines
from tests.report.page import made

pytestmark = pytest.mark.report
WORDS = "MLPerf Open · not verified by MLCommons Association"
LIMIT = Limit(99, 300.0, False, "the rules")
CSS = Path(svg.__file__).with_name("page.css").read_text(encoding="utf-8")


def texts(drawn: str) -> list[str]:
    """All that can be read in a picture."""
    return ["".join(each.itertext()) for each in ET.fromstring(drawn).iter("{http://www.w3.org/2000/svg}text")]  # noqa: S314


def lognormal(n: int = 2000, middle: float = 80.0) -> Distribution:
    values = np.random.default_rng(1).lognormal(0, 0.5, n) * middle
    return distribution(Named("ttft", "TTFT", "ms", LIMIT), values)


def inline(figure: Distribution | Lines) -> str:
    draw = draw_distribution(figure, WORDS) if isinstance(figure, Distribution) else draw_lines(figure, WORDS)
    return str(svg.inline(draw, "key", "a title", "a description"))


def test_the_same_figure_is_the_same_bytes() -> None:
    assert inline(lognormal()) == inline(lognormal())
    first, second = (draw_distribution(lognormal(), WORDS, title="TTFT") for _ in range(2))
    assert svg.standalone(first, "t", "d") == svg.standalone(second, "t", "d")
    assert svg.png(first) == svg.png(second)


def test_letters_are_letters_and_the_words_are_in_the_picture() -> None:
    found = texts(inline(lognormal()))
    assert WORDS in found
    assert "p99 limit 300 ms" in found
    assert {"50 %", "90 %", "99 %", "99.9 %"} <= set(found)
    assert any(re.fullmatch(r"p99 \d{3}(\.\d)? ms", text) for text in found)


def test_a_picture_says_what_it_is_to_those_who_do_not_see_it() -> None:
    root = ET.fromstring(inline(lognormal()))  # noqa: S314
    assert root.get("role") == "img"
    labels = {each.get("id"): each.text for each in root}
    assert [labels[name] for name in (root.get("aria-labelledby") or "").split()] == ["a title", "a description"]


def test_all_colours_inside_a_page_are_the_pages() -> None:
    drawn = inline(lognormal())
    assert not re.search(r"#[0-9a-f]{6}\b", drawn)
    used = set(re.findall(r"var\(--(\w+)\)", drawn))
    assert {"surface", "ink", "muted", "blue", "wash", "good", "bad"} <= used
    assert all(f"--{name}: light-dark(" in CSS for name in paper.PAPER)


def test_ids_are_a_pictures_own_and_each_is_asked_for() -> None:
    drawn = inline(lognormal())
    ids = re.findall(r"\bid=[\"']([^\"']*)", drawn)
    assert len(ids) == len(set(ids))
    assert all(name.startswith("key-") for name in ids)
    asked = set(re.findall(r"(?:url\(#|href=\"#)([^)\"]+)", drawn))
    assert asked == set(ids) - {"key-title", "key-desc"}


def test_a_file_of_its_own_needs_no_page() -> None:
    drawn = svg.standalone(draw_distribution(lognormal(), WORDS, title="TTFT\nbox/Server"), "TTFT", "all of it")
    assert "var(--" not in drawn
    assert {WORDS, "TTFT", "box/Server"} <= set(texts(drawn))
    assert not re.search(r"dc:date|Matplotlib|<metadata", drawn)


def test_names_in_titles_stay_text() -> None:
    drawn = str(svg.inline(draw_distribution(lognormal(), made.NASTY), "key", made.NASTY, made.NASTY))
    assert "<script" not in drawn
    assert made.NASTY in texts(drawn)


def test_dollars_in_titles_are_no_formulas() -> None:
    picture = draw_distribution(lognormal(), WORDS, title="a$\\no_{formula$")
    assert "a$\\no_{formula$" in texts(svg.standalone(picture, "t", "d"))


@pytest.mark.parametrize(("middle", "colour"), [(80, "good"), (200, "bad")])
def test_a_percentile_is_green_within_its_limit_and_red_beyond(middle: float, colour: str) -> None:
    marker = re.search(r"<text[^>]*fill: var\(--(\w+)\)[^>]*>p99 [\d.]+ ms", inline(lognormal(middle=middle)))
    assert marker is not None and marker[1] == colour


def test_a_limit_far_beyond_all_values_is_pointed_at_and_does_not_flatten_them() -> None:
    assert "p99 limit 300 ms →" in texts(inline(lognormal(middle=2)))


def test_percentiles_alone_are_a_line_without_a_histogram() -> None:
    figure = of_percentiles(Named("ttft", "TTFT", "ms", LIMIT), {0: 5, 50: 10, 90: 20, 99: 40, 100: 400}, 100, 12.0)
    assert isinstance(figure, Distribution)
    found = texts(inline(figure))
    assert "per bin" not in found
    assert "p99 40 ms" in found


def test_every_card_of_a_run_can_be_drawn_small_and_fast() -> None:
    for run in (made.performance_run(), made.agentic_run()):
        for card in cards(run):
            drawn = svg.inline(card.picture(WORDS), card.key, card.title, card.said)
            assert WORDS in texts(str(drawn))
            assert len(drawn) < 30_000


@settings(max_examples=30, deadline=None)
@example([5e-324], None, "ms")
@example([10000.0, 5e-324], None, "ms")
@given(
    st.lists(st.floats(0, 1e7), min_size=1, max_size=40),
    st.one_of(st.none(), st.floats(1e-3, 1e8)),
    st.sampled_from(["ms", "tokens"]),
)
def test_whatever_values_there_are_they_can_be_drawn(values: list[float], limit: float | None, unit: str) -> None:
    bound = None if limit is None else Limit(99, limit, True, "")
    whole = unit == "tokens"
    array = np.array([int(value) for value in values] if whole else values)
    named = Named("latency", "Latency", "tokens" if whole else "ms", bound)
    assert WORDS in texts(inline(distribution(named, array, whole=whole)))


@settings(max_examples=20, deadline=None)
@given(st.lists(st.one_of(st.just(math.nan), st.floats(0, 1e9)), min_size=1, max_size=20))
def test_whatever_course_it_took_it_can_be_drawn(values: list[float]) -> None:
    ys = (*values, 1.0)
    lines = Lines((Line("", tuple(map(float, range(len(ys)))), ys),), "s", "samples/s", filled=True)
    assert WORDS in texts(inline(lines))
