"""The page in headless Chromium: it opens from disk, asks for nothing, can be used without a mouse, and can be read."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("matplotlib", reason="needs the [report] extra")
pytest.importorskip("jinja2", reason="needs the [report] extra")
pytest.importorskip("playwright", reason="needs the [browser] extra")

from playwright.sync_api import Browser, Page, expect, sync_playwright

from harness.report.compare import compare
from harness.report.page.render import render
from tests.harness_process import ROOT
from tests.report.page import made

if TYPE_CHECKING:
    from playwright.sync_api import ConsoleMessage

pytestmark = [pytest.mark.report, pytest.mark.browser]

NAMES = ("chromium", "chromium-browser", "google-chrome")
NOT_RUN = "not run: needs chromium (apt-get install chromium)"
SCREENSHOTS = ROOT / "build" / "screenshots"
DESK, PHONE = (1280, 900), (360, 780)
WIDTHS = (320, 360, 768, 1280, 1920)
LEAST_CONTRAST = 4.5
CONTRAST = Path(__file__).with_name("contrast.js").read_text(encoding="utf-8")
OPEN_ALL = "document.querySelectorAll('details').forEach((each) => { each.open = true; })"


def chromium() -> str:
    """The Chromium of this machine. Without it the tests are skipped and say so; where CI is true, they fail."""
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(NOT_RUN)
    return found


def test_a_machine_without_chromium_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match="not run: needs chromium"):
        chromium()
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="not run: needs chromium"):
        chromium()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A browser for the tests of this file."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium())
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report of a book with something of everything."""
    book = made.book()
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(render(book, compare(made.earlier(book), book)), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def demonstration(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("demonstration") / "report.html"
    path.write_text(render(made.demonstration()), encoding="utf-8")
    return path


class Visit:
    """A page in a window of its own, and what went over its console and its network."""

    def __init__(self, page: Page, path: Path) -> None:
        self.page = page
        self.said: list[str] = []
        self.asked: list[str] = []
        page.on("console", self._hear)
        page.on("pageerror", lambda error: self.said.append(str(error)))
        page.on("request", lambda request: self.asked.append(request.url))
        page.goto(path.as_uri())

    def _hear(self, message: ConsoleMessage) -> None:
        self.said.append(f"{message.type}: {message.text}")


@pytest.fixture
def visit(browser: Browser) -> Iterator[Any]:
    """Opens a page, as wide and as dark as asked for; windows are closed when the test ends."""
    contexts = []

    def opened(path: Path, size: tuple[int, int] = DESK, scheme: Any = "light", **options: Any) -> Visit:
        context = browser.new_context(
            viewport={"width": size[0], "height": size[1]}, color_scheme=scheme, reduced_motion="reduce", **options
        )
        contexts.append(context)
        return Visit(context.new_page(), path)

    yield opened
    for context in contexts:
        context.close()


def column(page: Page, number: int) -> list[str]:
    """The cells of a column of the results, downwards."""
    cells = page.locator(f"#results tbody tr > :nth-child({number})").all_inner_texts()
    return [cell.split("\n")[0].strip() for cell in cells]


def test_it_opens_from_disk_and_asks_for_nothing(visit: Any, report: Path) -> None:
    opened = visit(report)
    expect(opened.page).to_have_title("Acme, winter round · MLPerf Inference v6.1")
    opened.page.evaluate(OPEN_ALL)
    opened.page.locator("#theme").click()
    assert opened.asked == [report.as_uri()]
    assert opened.said == []


def test_a_request_would_be_seen_and_is_refused(visit: Any, report: Path, tmp_path: Path) -> None:
    """Else the test above could not fail."""
    page = report.read_text(encoding="utf-8").replace("<main", '<img src="https://example.org/x.png" alt=""><main')
    leaky = tmp_path / "leaky.html"
    leaky.write_text(page, encoding="utf-8")
    opened = visit(leaky)
    assert any("Content Security Policy" in each for each in opened.said)


def test_tables_sort_by_click(visit: Any, report: Path) -> None:
    page = visit(report).page
    head = page.locator("#results th", has_text="result")
    assert head.get_attribute("aria-sort") is None
    head.get_by_role("button").click()
    expect(head).to_have_attribute("aria-sort", "ascending")
    assert column(page, 6) == ["71.25 tokens/s", "12,345.68 Tokens/s", "none"]
    head.get_by_role("button").click()
    expect(head).to_have_attribute("aria-sort", "descending")
    assert column(page, 6) == ["12,345.68 Tokens/s", "71.25 tokens/s", "none"]
    page.locator("#results th", has_text="system").get_by_role("button").click()
    assert column(page, 1) == sorted(column(page, 1))
    assert page.locator("#results th[aria-sort]").count() == 1


def test_all_of_it_can_be_reached_and_used_with_a_keyboard(visit: Any, report: Path) -> None:
    page = visit(report).page
    page.keyboard.press("Tab")
    skip = page.locator(".skip")
    expect(skip).to_be_focused()
    assert skip.bounding_box()["y"] >= 0
    page.keyboard.press("Enter")
    for _ in range(3):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.closest('th') !== null"):
            break
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    page.keyboard.press("Space")
    expect(page.locator("#results th").first).to_have_attribute("aria-sort", "ascending")
    page.keyboard.press("Enter")
    expect(page.locator("#results th").first).to_have_attribute("aria-sort", "descending")
    run = page.locator("#run-server-accuracy-1")
    run.locator("> summary").focus()
    page.keyboard.press("Enter")
    expect(run).to_have_attribute("open", "")


def test_what_scrolls_can_be_scrolled_without_a_mouse(visit: Any, report: Path) -> None:
    page = visit(report, PHONE).page
    page.evaluate(OPEN_ALL)
    wide = page.evaluate(
        "[...document.querySelectorAll('.scroll')].filter((each) => each.scrollWidth > each.clientWidth)"
        ".map((each) => each.tabIndex === 0)"
    )
    assert wide and all(wide)


def test_findings_of_one_severity_can_be_asked_for(visit: Any, report: Path) -> None:
    page = visit(report).page
    shown = page.locator("#all-findings > li:visible")
    assert shown.count() == 3
    button = page.get_by_role("button", name="reject 1")
    button.click()
    expect(button).to_have_attribute("aria-pressed", "true")
    assert shown.count() == 1
    expect(page.locator("#shown")).to_have_text("1 findings shown")
    page.get_by_role("button", name="All 3").click()
    assert shown.count() == 3


def test_a_link_to_a_run_opens_it(visit: Any, report: Path) -> None:
    page = visit(report).page
    run = page.locator("#run-server-accuracy-1")
    assert run.get_attribute("open") is None
    page.get_by_role("link", name="accuracy", exact=True).click()
    expect(run).to_have_attribute("open", "")
    expect(run.locator("> summary")).to_be_in_viewport()


def test_light_and_dark_follow_the_system_and_the_button(visit: Any, report: Path) -> None:
    backgrounds = {}
    for scheme in ("light", "dark"):
        page = visit(report, scheme=scheme).page
        background = "getComputedStyle(document.body).backgroundColor"
        before = page.evaluate(background)
        page.locator("#theme").click()
        backgrounds[scheme] = (before, page.evaluate(background))
    assert backgrounds["light"] == tuple(reversed(backgrounds["dark"]))
    assert backgrounds["light"][0] != backgrounds["light"][1]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("which", ["report", "demonstration"])
def test_every_text_can_be_read(visit: Any, request: pytest.FixtureRequest, which: str, scheme: str) -> None:
    page = visit(request.getfixturevalue(which), scheme=scheme).page
    page.evaluate(OPEN_ALL)
    found = page.evaluate(CONTRAST)
    assert len(found) > 500
    assert any("not verified" in each["text"] for each in found)
    assert not [each for each in found if each["ratio"] < LEAST_CONTRAST]


def test_a_text_that_cannot_be_read_would_be_seen(visit: Any, report: Path) -> None:
    """In the page and in its plots; else the test above could not fail."""
    page = visit(report).page
    page.evaluate("document.documentElement.style.setProperty('--muted', '#999999')")
    pale = {each["text"] for each in page.evaluate(CONTRAST) if each["ratio"] < LEAST_CONTRAST}
    assert "per bin" in pale
    assert "results folder" not in pale


@pytest.mark.parametrize("which", ["report", "demonstration"])
def test_the_page_is_never_wider_than_the_window(visit: Any, request: pytest.FixtureRequest, which: str) -> None:
    page = visit(request.getfixturevalue(which)).page
    page.evaluate(OPEN_ALL)
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        beyond = page.evaluate(
            "[...document.querySelectorAll('body *:not(.scroll *, nav *, svg *, .sr, .bar, .bar *)')]"
            ".filter((each) => each.getBoundingClientRect().right > innerWidth + 1)"
            ".map((each) => each.outerHTML.slice(0, 80))"
        )
        assert beyond == [], width


def test_the_letters_of_plots_stay_within_them(visit: Any, report: Path) -> None:
    page = visit(report).page
    page.evaluate(OPEN_ALL)
    cut = page.evaluate(
        "[...document.querySelectorAll('.plot')].flatMap((plot) => [...plot.querySelectorAll('svg text')]"
        ".filter((text) => { const one = text.getBoundingClientRect(), all = plot.getBoundingClientRect();"
        " return one.left < all.left || one.right > all.right || one.top < all.top || one.bottom > all.bottom; })"
        ".map((text) => text.textContent))"
    )
    assert cut == []


def test_paper_has_everything_open_and_nothing_to_click(visit: Any, report: Path) -> None:
    page = visit(report, scheme="dark").page
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator("details.run:not([open])").count() == 0
    expect(page.locator("nav")).to_be_hidden()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    page.set_viewport_size({"width": 720, "height": 1000})  # A4 less its margins
    assert page.evaluate("document.documentElement.scrollWidth") <= 720
    assert len(page.pdf()) > 20_000  # which ends the printing too
    assert page.locator("details.run:not([open])").count() > 0


def test_without_scripts_all_is_there(visit: Any, report: Path) -> None:
    page = visit(report, java_script_enabled=False).page
    expect(page.locator("#results tbody tr")).to_have_count(3)
    expect(page.locator("#all-findings > li")).to_have_count(3)
    assert page.locator("button:visible").count() == 0


def test_a_demonstration_cannot_be_missed(visit: Any, demonstration: Path) -> None:
    for size in (DESK, PHONE):
        page = visit(demonstration, size).page
        expect(page.locator(".banner")).to_be_in_viewport()
        assert page.locator(".banner").bounding_box()["width"] == size[0]
        page.evaluate("scrollTo(0, document.body.scrollHeight)")
        expect(page.locator("nav .chip")).to_be_in_viewport()


@pytest.mark.parametrize(
    ("name", "size", "scheme"),
    [("desktop-light", DESK, "light"), ("desktop-dark", DESK, "dark"), ("phone", PHONE, "light")],
)
def test_screenshots(visit: Any, report: Path, name: str, size: tuple[int, int], scheme: str) -> None:
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    path = SCREENSHOTS / f"report-{name}.png"
    path.unlink(missing_ok=True)
    visit(report, size, scheme).page.screenshot(path=path, full_page=True)
    assert path.stat().st_size > 50_000
