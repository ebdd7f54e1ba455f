"""A reader that goes away does not end what is being measured."""

from __future__ import annotations

import os
import subprocess
import sys

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
