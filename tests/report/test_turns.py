"""The table of turns: what was not measured shows as such, and failures are never out of sight."""

from __future__ import annotations

from pathlib import Path

import pytest
from rich.console import Console

from harness.benchmarks.qwen3_6_27b.store import Library
from harness.report.turns import turn_tables
from harness.runs.turn_figures import write_turn_figures
from tests.runs.made_turns import SKIPPED, A, F, MadeTurn, keep, small_library, turns_of


@pytest.fixture
def library(tmp_path: Path) -> Library:
    return small_library(tmp_path)


def shown(folder: Path, library: Library, rows: list[int], turns: list[list[MadeTurn]], width: int = 140) -> str:
    keep(folder, library, turns_of(library, rows, turns))
    console = Console(width=width, force_terminal=False)
    with console.capture() as capture:
        console.print(turn_tables(write_turn_figures(folder, library)))
    return capture.get()


def test_what_is_shown(tmp_path: Path, library: Library) -> None:
    a = [MadeTurn(A, 0, 100, 400, 4, 5000, 0, 2), MadeTurn(A, 500, 550, 650, 3, 9000, 4500, 0)]
    found = shown(tmp_path, library, [0], [a])
    lines = [" ".join(line.split()) for line in found.splitlines()]
    assert "time to first token, ms 75.00 50.00 100.00 100.00 100.00 2" in lines
    assert "time per output token, ms 75.00 50.00 100.00 100.00 100.00 2" in lines
    assert "trajectory, ms 650.00 650.00 650.00 650.00 650.00 1" in lines
    assert "input tokens 7,000 5,000 9,000 9,000 9,000 2" in lines
    for said in (
        "turns: 2 answered, 0 failed, 0 skipped; trajectories: 1 of 1 complete",
        "rates: 3.08 turns/s, 1.54 trajectories/s, 10.77 output tokens/s, over 0.65 s",
        "e2e interactivity: 12.73 tokens/s",
        "inline score: 1.0000 of 1 turns, 0 of them unanswered",
        "mean output tokens: 3.50 in the performance window (2 turns), 3.50 of all turns",
        "ended by: stop 1, tool_calls 1; cached prompt tokens: 32.1 %",
        "lengths: input 2 by the server, output 2 by the server",
        "each of 3 trajectories was issued 0 to 1 times",
    ):
        assert said in lines, lines


def test_what_was_not_measured_and_what_failed(tmp_path: Path, library: Library) -> None:
    found = shown(tmp_path, library, [0], [[MadeTurn(F, 0), SKIPPED]])
    lines = [" ".join(line.split()) for line in found.splitlines()]
    assert "turn, ms - - - - - -" in lines
    assert "turns: 0 answered, 1 failed, 1 skipped; trajectories: 0 of 1 complete" in lines
    assert "rates: - turns/s, - trajectories/s, - output tokens/s, over - s" in lines
    assert "e2e interactivity: - tokens/s" in lines
    assert "ended by: -; cached prompt tokens: -" in lines
    assert "turns without an answer, which count 0 in the inline score: 1" in lines


def test_long_times_and_many_tokens_fit_a_narrow_terminal(tmp_path: Path, library: Library) -> None:
    """Half a minute a turn, over two turns of a trajectory."""
    long = 127_468
    minute = [MadeTurn(A, 0, 30_000, 34_000, 1_024, long, 0, 2), MadeTurn(A, 35_000, 65_000, 69_000, 999, long, 0)]
    found = shown(tmp_path, library, [0], [minute], width=80)
    lines = [" ".join(line.split()) for line in found.splitlines()]
    assert "time to first token, ms 30,000 30,000 30,000 30,000 30,000 2" in lines
    assert "trajectory, ms 69,000 69,000 69,000 69,000 69,000 1" in lines
    assert "input tokens 127,468 127,468 127,468 127,468 127,468 2" in lines
    assert "output tokens 1,012 999 1,024 1,024 1,024 2" in lines
    assert "\N{HORIZONTAL ELLIPSIS}" not in found
    assert max(map(len, found.split("turns: ")[0].splitlines())) <= 80


def test_trajectories_that_were_issued_equally_often(tmp_path: Path, library: Library) -> None:
    turn = MadeTurn(A, 0, 100, 400, 4, 5000, 0, 2)
    each = [[turn] * len(library.turns(row)) for row in range(3)]
    assert "each of 3 trajectories was issued 1 time\n" in shown(tmp_path, library, [0, 1, 2], each)
