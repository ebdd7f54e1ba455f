from __future__ import annotations

import io

import pytest
from rich.console import Console

from harness.benchmarks.download import FileProgress
from harness.report.downloads import telling


class Terminal(io.StringIO):
    """A file that says it is one."""

    def isatty(self) -> bool:
        return True


def told(*, terminal: bool, silent: bool = False) -> str:
    out = Terminal() if terminal else io.StringIO()
    with telling(Console(file=out, force_terminal=terminal, width=120), silent=silent) as tell:
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


def test_a_terminal_gets_bars(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    text = told(terminal=True)
    assert "perf/[a].parquet" in text
    assert "━" in text
    assert "5.0/5.0 MB" in text


@pytest.mark.parametrize("terminal", [False, True])
def test_who_wants_quiet_gets_nothing(terminal: bool) -> None:
    assert told(terminal=terminal, silent=True) == ""
