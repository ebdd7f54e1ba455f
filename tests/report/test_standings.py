from __future__ import annotations

import io
from pathlib import Path

from rich.console import Console

from harness.ledger import RunId, StoredRun
from harness.ledger.standing import RowStanding, Standing, Word
from harness.report.standings import standings_tables
from tests.ledger.made_records import finished


def run(*, short: bool = False) -> StoredRun:
    run_id = RunId(system="BOX [1]", benchmark="b", scenario="Offline", leg="performance", attempt=2)
    return StoredRun(Path(), finished(run_id, test_run=short))


def shown(*rows: RowStanding) -> list[str]:
    console = Console(file=io.StringIO(), width=120)
    console.print(standings_tables(rows))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().splitlines()


def test_scenarios_down_and_legs_across() -> None:
    stale = Standing(Word.STALE, run(), 1, "changed since: config.seed [x]")
    legs = {"performance": Standing(Word.VALID, run(), 2), "accuracy": stale, "TEST07": Standing(Word.MISSING, None, 0)}
    other = {**legs, "performance": Standing(Word.INVALID, run(short=True), 1)}
    lines = shown(RowStanding("BOX [1]", "b", "Offline", legs), RowStanding("BOX [1]", "b", "Server", other))
    assert lines[0].strip() == "b on BOX [1]"
    cells = [line.split() for line in lines if line.split()[:1] in (["scenario"], ["Offline"], ["Server"])]
    assert cells == [
        ["scenario", "performance", "accuracy", "TEST07"],
        ["Offline", "VALID", "(2", "attempts)", "stale", "missing"],
        ["Server", "INVALID", "(short)", "stale", "missing"],
    ]
    reasons = [line for line in lines if "changed since" in line]
    assert reasons == ["stale, changed since: config.seed [x] (Offline accuracy, Server accuracy)"]


def test_a_table_for_each_system() -> None:
    missing = {"performance": Standing(Word.MISSING, None, 0)}
    lines = shown(RowStanding("A", "b", "Offline", missing), RowStanding("B", "b", "Offline", missing))
    assert [line.strip() for line in lines if " on " in line] == ["b on A", "b on B"]
