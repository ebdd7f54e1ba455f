from __future__ import annotations

import io

import pytest
from rich.console import Console

from harness.events import LegFinished, LegProgress, LegStarted, Note
from harness.report import progress
from harness.report.progress import LinePrinter


@pytest.fixture
def out() -> io.StringIO:
    return io.StringIO()


@pytest.fixture
def printer(out: io.StringIO) -> LinePrinter:
    return LinePrinter(Console(file=out, width=200))


def test_each_event_is_a_line(printer: LinePrinter, out: io.StringIO) -> None:
    printer(Note("starting [the] engine"))
    printer(LegStarted("a/leg", "a folder", None))
    printer(LegFinished("a/leg", "VALID", "12.50 Tokens/s"))
    assert out.getvalue().splitlines() == [
        "starting [the] engine",
        "a/leg: started, in a folder",
        "a/leg: VALID, 12.50 Tokens/s",
    ]


def test_progress_is_told_every_ten_seconds(
    printer: LinePrinter, out: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    for second in range(25):
        now[0] = 100.0 + second
        printer(LegProgress("leg", elapsed_s=second, issued=9, completed=second, failed=second // 20))
    assert out.getvalue().splitlines() == [
        "leg: 0 s, 0 of 9 issued",
        "leg: 10 s, 10 of 9 issued",
        "leg: 20 s, 20 of 9 issued, 1 failed",
    ]


def test_turns_are_told_where_samples_have_them(printer: LinePrinter, out: io.StringIO) -> None:
    printer(LegProgress("leg", elapsed_s=9, issued=2, completed=1, failed=0, turns=57))
    assert out.getvalue() == "leg: 9 s, 1 of 2 issued, 57 turns answered\n"
