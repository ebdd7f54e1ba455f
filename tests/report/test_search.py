from __future__ import annotations

import io

from rich.console import Console

from harness.ledger.search import LimitEcho
from harness.report.search import search_table
from tests.ledger.made_searches import search, search_run


def printed(*args: object, **changes: object) -> str:
    console = Console(file=io.StringIO(), width=140)
    console.print(search_table(search(*args, **changes)))  # type: ignore[arg-type]
    return console.file.getvalue()  # type: ignore[attr-defined]


def row(text: str, number: int) -> list[str]:
    return next(line.split() for line in text.splitlines() if line.strip().startswith(f"{number} ") and ":" not in line)


def test_each_run_with_its_rates_and_limits() -> None:
    text = printed(search_run(), search_run(kind="full", outcome="VALID", run="BOX/gpt-oss-120b/Server/performance#2"))
    cells = ("1", "71.3", "70.9", "8,556", "121", "310", "|", "1,987", "12.3", "|", "14", "0.05%", "pass")
    assert row(text, 1) == [*cells]
    assert row(text, 2)[-3:] == ["full", "run", "VALID"]
    assert "1: first guess; TTFT p99 at 66% of its limit" in text
    assert "first guess 71.3 (configured); 1 probe, 1 full run\n" in text
    assert "found: target_qps 70.9, whose run is VALID (BOX/gpt-oss-120b/Server/performance#2)" in text
    assert "not verified by MLCommons" in text
    assert "of 3,000" in text and "of 80" in text
    assert max(map(len, text.splitlines()[:6])) <= 80


def test_a_run_without_answers_and_one_of_offline_have_empty_cells() -> None:
    nothing = LimitEcho(name="TTFT", limit_ms=3000, p50_ms=None, p99_ms=None, queries=0, over=0)
    text = printed(search_run(limits=[nothing], came=None, seconds=None, outcome="fail", former=True))
    assert row(text, 1) == ["1", "71.3", "8,556", "fail,", "from", "before"]
    offline = printed(search_run(limits=[], came=None, outcome="measured"))
    assert row(offline, 1) == ["1", "71.3", "70.8", "8,556", "121", "measured"]


def test_how_it_ended_or_did_not() -> None:
    assert "none found: no probe of 10 kept the limits" in printed(found=None, why="no probe of 10 kept the limits")
    assert "not ended: the next search takes its probes" in printed(found=None, ended_at=None)
    short = printed(test_run=True, notes=["the bracket is wide [still]"])
    assert "(short ones: --test_run)" in short
    assert "whose short run is VALID" in short
    assert "note: the bracket is wide [still]" in short
