"""A reader that goes away does not end what is being measured."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from rich.markup import escape
from rich.table import Table

from harness.cli.console import ERR, OUT, UnbreakableConsole
from tests.harness_process import ROOT

PROGRAM = """
import sys
from harness.cli.console import ERR, OUT
sys.stdin.readline()
for console in (OUT, ERR):
    console.print("nobody reads this")
    console.print("nor this")
sys.exit(7)
"""


def started(out: int) -> subprocess.Popen[bytes]:
    program = [sys.executable, "-c", PROGRAM]
    process = subprocess.Popen(program, stdin=subprocess.PIPE, stdout=out, stderr=out, cwd=ROOT)
    os.close(out)
    return process


def test_a_pipe_whose_reader_has_gone() -> None:
    reader, writer = os.pipe()
    process = started(writer)
    os.close(reader)
    process.communicate(b"\n", timeout=30)
    assert process.returncode == 7


def test_a_terminal_that_was_closed() -> None:
    terminal, end = os.openpty()
    process = started(end)
    os.close(terminal)
    process.communicate(b"\n", timeout=30)
    assert process.returncode == 7


def test_a_log_on_a_full_disk() -> None:
    process = started(os.open("/dev/full", os.O_WRONLY))
    process.communicate(b"\n", timeout=30)
    assert process.returncode == 7


@pytest.mark.parametrize("console", [OUT, ERR])
@pytest.mark.parametrize("in_table", [False, True])
def test_text_of_others_is_shown_and_not_obeyed(console: UnbreakableConsole, in_table: bool) -> None:
    name = "a\x1b]0;title\x07\x1b[31m\r\x9b2J:smile:"
    table = Table("system")
    table.add_row(escape(name))
    with console.capture() as captured:
        console.print(table if in_table else escape(name))
    printed = captured.get()
    assert "a␛]0;title␇␛[31m␍\ufffd2J:smile:" in printed
    assert not {"\x1b", "\x07", "\r", "\x9b"}.intersection(printed)


def test_lines_stay() -> None:
    with OUT.capture() as captured:
        OUT.print("one\ntwo")
    assert captured.get() == "one\ntwo\n"
