from __future__ import annotations

import io

import pytest
from rich.console import Console

from harness.events import (
    LegFinished,
    LegProgress,
    LegStarted,
    Note,
    Occupancy,
    Running,
    StepProgress,
    ignore,
)
from harness.report import progress
from harness.report import progress_words as words
from harness.report.progress import LinePrinter, lines, observer, shows_a_display
from harness.report.progress_display import LiveDisplay

MS = 1e6


@pytest.fixture
def out() -> io.StringIO:
    return io.StringIO()


@pytest.fixture
def printer(out: io.StringIO) -> LinePrinter:
    return LinePrinter(Console(file=out, width=400))


def test_each_event_is_a_line(printer: LinePrinter, out: io.StringIO) -> None:
    printer(Note("starting [the] engine"))
    printer(LegStarted("a/leg", "a folder", None))
    printer(LegStarted("a/leg", "a folder", 75.0))
    printer(LegFinished("a/leg", "VALID", "12.50 Tokens/s"))
    assert out.getvalue().splitlines() == [
        "starting [the] engine",
        "a/leg: started, in a folder",
        "a/leg: started, in a folder, about 1:15",
        "a/leg: VALID, 12.50 Tokens/s",
    ]


def test_progress_is_told_every_ten_seconds(
    printer: LinePrinter, out: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [3.0]  # a machine that was started just now
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    for second in range(25):
        now[0] = 3.0 + second
        printer(LegProgress("leg", elapsed_s=second, issued=9, completed=second, failed=second // 20))
    assert out.getvalue().splitlines() == [
        "leg: 0:00, 0 of 9 issued",
        "leg: 0:10, 10 of 9 issued",
        "leg: 0:20, 20 of 9 issued, 1 failed",
    ]


def test_turns_are_told_where_samples_have_them(printer: LinePrinter, out: io.StringIO) -> None:
    printer(LegProgress("leg", elapsed_s=9, issued=2, completed=1, failed=0, turns=57, samples_per_s=3.5))
    assert out.getvalue() == "leg: 0:09, 1 of 2 issued, 57 turns answered, 3.50 turns/s\n"


def test_a_line_has_every_figure_that_is_known(printer: LinePrinter, out: io.StringIO) -> None:
    printer(LegStarted("leg", "x", 600.0))
    printer(
        LegProgress(
            "leg",
            elapsed_s=61,
            issued=1200,
            completed=1100,
            failed=3,
            samples_per_s=18.04,
            tokens_per_s=12345.6,
            running=(Running("TTFT", 120 * MS, 2900.4 * MS, 3000 * MS), Running("latency", 1.5 * MS, 12 * MS)),
            occupancy=Occupancy(running=64, waiting=None, kv_cache=0.4),
        )
    )
    assert out.getvalue().splitlines()[1] == (
        "leg: 1:01 of about 10:00, 1,100 of 1,200 issued, 3 failed, 18.0 samples/s, 12,346 tokens/s; "
        "TTFT p50 120 ms, p99 2.90 s (limit 3.00 s); latency p50 1.50 ms, p99 12.0 ms; "
        "engine: 64 running, KV cache 40%"
    )


def test_a_step_that_cannot_be_counted_is_its_name(printer: LinePrinter, out: io.StringIO) -> None:
    printer(StepProgress("making it", 0, None, "rows"))
    assert out.getvalue() == "making it\n"


def test_lines_are_told_on_a_terminal_too(out: io.StringIO) -> None:
    lines(Console(file=out, force_terminal=True, no_color=True))(Note("a note"))
    lines(Console(file=out), quiet=True)(Note("another"))
    assert out.getvalue() == "a note\n"


def test_a_step_is_a_line(printer: LinePrinter, out: io.StringIO) -> None:
    printer(StepProgress("scoring", 1200, 6396, "answers"))
    assert out.getvalue() == "scoring: 1,200 of 6,396 answers\n"


@pytest.mark.parametrize(
    ("told", "said"),
    [
        (Occupancy(), ""),
        (Occupancy(running=0), "engine: 0 running"),
        (Occupancy(waiting=1234, kv_cache=1.0), "engine: 1,234 waiting, KV cache 100%"),
    ],
)
def test_an_engine_is_as_full_as_it_says(told: Occupancy, said: str) -> None:
    assert words.occupancy(told) == said


@pytest.mark.parametrize(
    ("seconds", "said"), [(-3, "0:00"), (59.6, "1:00"), (600, "10:00"), (3599, "59:59"), (36061, "10:01:01")]
)
def test_a_clock(seconds: float, said: str) -> None:
    assert words.clock(seconds) == said


def test_quiet_tells_nobody(out: io.StringIO) -> None:
    with observer(Console(file=out), quiet=True) as tell:
        assert tell is ignore
        tell(Note("something"))
    assert out.getvalue() == ""


class Terminal(io.StringIO):
    """A file that says it is one."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("environ", "display"),
    [
        ({"TERM": "xterm"}, True),
        ({"TERM": "xterm", "NO_COLOR": "1"}, True),
        ({"TERM": "dumb"}, False),
        ({"TERM": "xterm", "CI": "true"}, False),
    ],
)
def test_there_is_a_display_where_someone_sees_it(
    environ: dict[str, str], display: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CI", raising=False)
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    console = Console(file=Terminal())
    assert shows_a_display(console) is display
    with observer(console) as tell:
        assert isinstance(tell, LiveDisplay if display else LinePrinter)


def test_a_pipe_that_is_told_to_be_a_terminal_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert not shows_a_display(Console(file=io.StringIO()))
