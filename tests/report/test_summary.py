"""The book in short: verdicts, results, and the words that no figure goes without, at the width of any terminal."""

from __future__ import annotations

import dataclasses

import pytest
from rich.console import Console

from harness.errors import UnknownName
from harness.report.book.content import Book, Margin
from harness.report.book.results import Wanted
from harness.report.compare import Comparison, compare
from harness.report.selection import part_of, refuse_unknown
from harness.report.summary import summary, tightest
from tests.report.page import made


def shown(book: Book, comparison: Comparison | None = None, width: int = 160) -> str:
    console = Console(width=width, force_terminal=False)
    with console.capture() as capture:
        console.print(summary(book, comparison))
    return capture.get()


def test_what_is_shown() -> None:
    out = shown(made.book())
    lines = [" ".join(line.split()) for line in out.splitlines()]
    assert "gpt-oss-120b on GB300-NVL4_GB300-288GB_aarch64x4_TRT, closed" in lines
    assert "not verified by MLCommons Association" in lines
    assert "MLPerf Open · not verified by MLCommons Association" in lines
    assert "Server VALID 12,345.68 Tokens/s p99 TPOT: 95.0 % exact_match 83.45 (at least 82.30)" in lines
    assert "SingleStream INVALID 71.25 tokens/s p99 TTFT: 204.0 %, not kept —" in lines
    assert "Offline missing — — —" in lines
    assert "3 rows, 4 runs; findings: 1 would reject, 1 to review, 1 noted" in lines
    assert made.NASTY in lines
    assert lines[-1] == "Figures not verified by MLCommons Association."
    assert "Demonstration" not in out


def test_a_demonstration_says_so_first_and_at_each_table() -> None:
    out = shown(made.demonstration())
    assert out.startswith("Demonstration, never a submission\n")
    assert out.count("Demonstration, never a submission") == 4


def test_a_comparison_says_what_changed_and_what_forbids_a_percent() -> None:
    book = made.book()
    out = shown(book, compare(made.earlier(book), book))
    assert "against Acme, autumn round (v6.0, results):" in out
    assert "gpt-oss-120b/Server: +12.23 %, better" in out
    assert "not comparable (accelerator, nodes)" in out
    assert "CPU-torch/llama/Offline: only before" in out


def test_a_narrow_terminal_cuts_no_result_off() -> None:
    out = shown(made.book(rows=(made.row(system="BOX"),)), width=80)
    assert "12,345.68" in out and "VALID" in out


def test_the_tightest_limit_is_a_missed_one_and_else_an_upper_one() -> None:
    duration, ttft, tpot = (
        Margin("duration", "s", 600.5, 600, "at least", True, ""),
        Margin("TTFT", "ms", 200, 300, "below", True, ""),
        Margin("TPOT", "ms", 14, 15, "below", True, ""),
    )
    missed = dataclasses.replace(duration, measured=10, met=False)
    assert tightest(()) is None
    assert tightest((duration,)) == duration
    assert tightest((duration, ttft, tpot)) == tpot
    assert tightest((ttft, missed)) == missed


# -- a part of it ------------------------------------------------------------------------------------------------------


def test_a_part_has_the_rows_that_are_asked_for_their_runs_and_those_named_so() -> None:
    book = made.book()
    part = part_of(book, Wanted(scenarios=["Server"]))
    assert [row.scenario for row in part.rows] == ["Server"]
    assert [run.key for run in part.runs] == ["server-performance-1", "server-accuracy-1"]
    torch = part_of(book, Wanted(systems=["CPU-torch"]))
    assert [run.key for run in torch.runs] == ["broken-1"]
    assert part_of(book, Wanted()) == book


def test_names_that_nothing_has_are_refused() -> None:
    book = made.book()
    refuse_unknown(book, Wanted(systems=["CPU-torch"], benchmarks=["qwen3.6-27b"], scenarios=["Offline"]))
    tree = made.performance_run(key="filed", title="closed/Acme/results/BOX/gpt-oss-120b/Server/performance/run_1")
    for wanted in (Wanted(scenarios=["results"]), Wanted(systems=["closed"])):
        with pytest.raises(UnknownName):
            refuse_unknown(made.book(runs=(tree,)), wanted)
    with pytest.raises(UnknownName, match="unknown scenario 'Serve'"):
        refuse_unknown(book, Wanted(scenarios=["Serve"]))
