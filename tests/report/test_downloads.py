from __future__ import annotations

import io

from rich.console import Console

from harness.benchmarks.download import FileProgress
from harness.report.downloads import telling


def told(*, terminal: bool) -> str:
    out = io.StringIO()
    with telling(Console(file=out, force_terminal=terminal, width=120)) as tell:
        for done in (1_000_000, 2_000_000, 5_000_000):
            tell(FileProgress("perf/[a].parquet", done, 5_000_000))
        tell(FileProgress("acc/b.npy", 10, 10))
    return out.getvalue()


def test_a_log_gets_few_lines_and_the_end_of_every_file() -> None:
    assert told(terminal=False).splitlines() == [
        "perf/[a].parquet: 1.0 of 5.0 MB",
        "perf/[a].parquet: 5.0 of 5.0 MB",
        "acc/b.npy: 0.0 of 0.0 MB",
    ]


def test_a_terminal_gets_bars() -> None:
    text = told(terminal=True)
    assert "perf/[a].parquet" in text
    assert "━" in text
    assert "5.0/5.0 MB" in text
