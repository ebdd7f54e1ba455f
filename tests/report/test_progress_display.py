"""The display: what it shows, on consoles that record it, and on a terminal that is one."""

from __future__ import annotations

import contextlib
import fcntl
import io
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

import pytest
from rich.console import Console

from harness.events import LegFinished, LegProgress, LegStarted, Occupancy, Running, StepProgress
from harness.report.progress_display import Board
from tests.harness_process import ROOT

MS = 1e6
PROGRESS = LegProgress(
    "a/b/Server/performance",
    elapsed_s=60,
    issued=1200,
    completed=1100,
    failed=3,
    samples_per_s=18.0,
    tokens_per_s=2048.0,
    running=(
        Running("TTFT", 100 * MS, 1000 * MS, 3000 * MS),
        Running("TPOT", 10 * MS, 75 * MS, 80 * MS),
        Running("latency", 100 * MS, 13000 * MS, 12000 * MS),
    ),
    occupancy=Occupancy(running=32, waiting=5, kv_cache=0.25),
)


def shown(board: Board, now: float = 0.0, width: int = 80, *, colour: bool = False) -> str:
    console = Console(width=width, record=True, force_terminal=True, color_system="standard", file=io.StringIO())
    console.print(board.shown(now, width))
    return console.export_text(styles=colour)


@pytest.fixture
def board() -> Board:
    board = Board()
    board.hear(LegStarted("a/b/Server/performance", "somewhere", 300.0), 0.0)
    board.hear(PROGRESS, 60.0)
    return board


def test_all_that_is_known_of_a_leg(board: Board) -> None:
    text = shown(board, 62.0)
    assert "a/b/Server/performance" in text
    assert "1:02 of about 5:00, about 3:58 left" in text
    assert "1,100 of 1,200 issued  3 failed  18.0 samples/s  2,048 tokens/s" in text
    assert "engine: 32 running, 5 waiting, KV cache 25%" in text
    rows = {row.split()[0]: row.split()[1:] for row in text.splitlines() if row.startswith(("TTFT", "TPOT", "latency"))}
    assert rows["TTFT"] == ["100", "ms", "1.00", "s", "3.00", "s", "67%"]
    assert rows["TPOT"] == ["10.0", "ms", "75.0", "ms", "80.0", "ms", "6%"]
    assert rows["latency"] == ["100", "ms", "13.0", "s", "12.0", "s", "-8%"]


def test_failures_and_margins_have_colours(board: Board) -> None:
    text = shown(board, 62.0, colour=True)
    assert re.search(r"\x1b\[1;31m[^\x1b]*3 failed", text)
    for colour, share in ((32, "67%"), (33, "6%"), (31, "-8%")):
        assert re.search(rf"\x1b\[{colour}m *{share}", text)


def test_no_failure_is_no_word_of_it(board: Board) -> None:
    board.hear(replace(PROGRESS, failed=0), 60.0)
    assert "failed" not in shown(board, 60.0)


def test_what_lasts_longer_than_expected_says_so(board: Board) -> None:
    assert "5:20 of about 5:00, 0:20 longer than expected" in shown(board, 320.0)


def test_nothing_is_made_up_where_nothing_is_known() -> None:
    board = Board()
    board.hear(LegStarted("leg", "x", None), 10.0)
    assert shown(board, 75.0).strip().splitlines() == ["leg", "1:05 elapsed"]
    board.hear(LegProgress("leg", 66.0, issued=4, completed=0, failed=0), 76.0)
    lines = [line.rstrip() for line in shown(board, 76.0).strip().splitlines()]
    assert lines == ["leg", "1:06 elapsed", "0 of 4 issued"]


def test_the_legs_before_are_counted(board: Board) -> None:
    for verdict in ("VALID", "INVALID", "VALID"):
        board.hear(LegFinished("x", verdict, ""), 70.0)
    assert shown(board, 70.0).strip() == ""
    board.hear(LegStarted("next", "x", None), 71.0)
    assert "next  after 3 legs: 2 VALID, 1 INVALID" in shown(board, 71.0)


def test_a_step_stands_below_until_it_is_done(board: Board) -> None:
    board.hear(StepProgress("scoring", 10, 40, "answers"), 61.0)
    assert "scoring: 10 of 40 answers  0:04" in shown(board, 65.0)
    board.hear(StepProgress("reading", 3, None, "files"), 61.0)
    assert "reading: 3 files" in shown(board, 61.0)
    board.hear(StepProgress("reading", 4, 4, "files"), 61.0)
    assert "reading" not in shown(board, 61.0)


@pytest.mark.parametrize("width", [1, 2, 5, 20])
def test_no_terminal_is_too_narrow(board: Board, width: int) -> None:
    board.hear(StepProgress("scoring", 10, 40, "answers"), 61.0)
    assert all(len(line) <= width for line in shown(board, 61.0, width).splitlines())


# -- a terminal ---------------------------------------------------------------------------------------------------

PROGRAM = """
import sys, time
from harness.cli.console import ERR, OUT
from harness.events import *
from harness.report.progress import observer
with observer(ERR, quiet="--quiet" in sys.argv) as tell:
    tell(Note("a note [above] all"))
    tell(LegStarted("one/leg", "its folder", 60.0))
    for second in range(4):
        running = (Running("TTFT", 1e6, 2e6, 9e6),)
        tell(LegProgress("one/leg", second, 100, 10 * second, 2, samples_per_s=10.0, running=running))
        time.sleep(0.35)
        if second == 1:
            tell(Note("a second note"))
    tell(LegFinished("one/leg", "INVALID", "for a reason"))
    if "--interrupted" in sys.argv:
        raise KeyboardInterrupt
OUT.print("the result")
"""


@dataclass
class OnTerminal:
    """A program on a terminal of its own, and all that it wrote there."""

    process: subprocess.Popen[bytes]
    master: int
    text: str = ""

    def read_until(self, seen: Callable[[str], bool], timeout_s: float = 30.0) -> None:
        deadline = time.monotonic() + timeout_s
        while not seen(self.text):
            assert time.monotonic() < deadline, self.text
            if select.select([self.master], [], [], 0.1)[0]:
                try:
                    self.text += os.read(self.master, 65536).decode()
                except OSError:  # the end of a terminal
                    return

    def resize(self, rows: int, columns: int) -> None:
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.process.send_signal(signal.SIGWINCH)

    def end(self) -> int:
        self.read_until(lambda _: False if self.process.poll() is None else not self._more())
        return self.process.wait(10)

    def _more(self) -> bool:
        return bool(select.select([self.master], [], [], 0)[0]) and self._read_rest()

    def _read_rest(self) -> bool:
        try:
            piece = os.read(self.master, 65536)
        except OSError:
            return False
        self.text += piece.decode()
        return bool(piece)


@contextlib.contextmanager
def on_terminal(
    *arguments: str, rows: int = 30, columns: int = 100, environ: Mapping[str, str] | None = None
) -> Iterator[OnTerminal]:
    master, end = pty.openpty()
    fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    kept = {name: value for name, value in os.environ.items() if name not in ("CI", "NO_COLOR", "COLUMNS", "LINES")}
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *arguments],
        stdin=end, stdout=end, stderr=end, cwd=ROOT, env={**kept, "TERM": "xterm"} | dict(environ or {}),
    )  # fmt: skip
    os.close(end)
    try:
        yield OnTerminal(process, master)
    finally:
        process.kill()
        process.wait()
        os.close(master)


HIDE, SHOW = "\x1b[?25l", "\x1b[?25h"


def test_a_terminal_has_a_display_below_its_lines() -> None:
    with on_terminal() as terminal:
        assert terminal.end() == 0
    text = terminal.text
    assert text.count("a note [above] all") == 1
    assert "of about 1:00" in text
    assert "2 failed" in text
    assert re.search(r"\x1b\[\d*A|\x1b\[1A", text)  # it is written over
    assert text.index("a second note") < text.rindex("of about 1:00")
    assert "for a reason" in text
    assert text.rindex("the result") > text.rindex(SHOW) > text.index(HIDE)


@pytest.mark.parametrize("environ", [{"TERM": "dumb"}, {"CI": "true"}])
def test_one_that_cannot_be_written_over_has_lines(environ: dict[str, str]) -> None:
    with on_terminal(environ=environ) as terminal:
        assert terminal.end() == 0
    assert HIDE not in terminal.text
    assert "one/leg: 0:00 of about 1:00, 0 of 100 issued, 2 failed" in terminal.text


def test_no_colour_is_none() -> None:
    with on_terminal(environ={"NO_COLOR": "1"}) as terminal:
        assert terminal.end() == 0
    assert "2 failed" in terminal.text
    assert not re.search(r"\x1b\[[\d;]*3[0-7]m", terminal.text)


def test_quiet_has_the_result_alone() -> None:
    with on_terminal("--quiet") as terminal:
        assert terminal.end() == 0
    assert terminal.text.strip() == "the result"


def test_a_tiny_terminal_and_one_that_changes() -> None:
    with on_terminal(rows=3, columns=12) as terminal:
        terminal.read_until(lambda text: HIDE in text)
        terminal.resize(40, 200)
        terminal.read_until(lambda text: "a second note" in text)
        terminal.resize(1, 1)
        assert terminal.end() == 0
    assert "Traceback" not in terminal.text


def test_an_interrupt_gives_the_cursor_back() -> None:
    with on_terminal("--interrupted") as terminal:
        assert terminal.end() != 0
    assert terminal.text.rindex(SHOW) > terminal.text.rindex(HIDE)


def test_a_terminal_that_is_closed_ends_nothing() -> None:
    with on_terminal() as terminal:
        terminal.read_until(lambda text: HIDE in text)
        os.close(terminal.master)
        terminal.master = os.open(os.devnull, os.O_RDONLY)
        assert terminal.process.wait(30) == 0
