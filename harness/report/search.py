"""What a search for a rate probed, and what it found, for the terminal."""

from __future__ import annotations

from collections.abc import Iterator

from rich import box
from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table

from harness.ledger.search import SearchEcho, SearchRun
from harness.report.tables import UNVERIFIED

_COLOURS = {"pass": "green", "VALID": "green", "fail": "red", "INVALID": "red", "undecided": "yellow"}
_LEGEND = (
    "samples/s asked and come, the 50th and 99th percentile of what is limited, the largest share over a limit; "
    "of probes without their first third"
)


def search_table(echo: SearchEcho) -> Group:
    """Each run in order, why it was made and what it came to; then the conclusion. It fits eighty letters."""
    row = f"{echo.benchmark} {echo.scenario} on {echo.system}, search {echo.search}"
    table = Table(box=box.SIMPLE_HEAD, title=escape(row), title_justify="left", padding=(0, 1, 0, 0))
    limits = {each.name: each.limit_ms for run in echo.runs for each in run.limits}
    for column in ("", "asked", "came" if limits else "answered", "queries", "s"):
        table.add_column(column, justify="right", no_wrap=True)
    for name, limit_ms in limits.items():
        table.add_column(f"{name}, ms\nof {_short(limit_ms)}", justify="right", no_wrap=True)
    if limits:
        table.add_column("over", justify="right", no_wrap=True)
    table.add_column("outcome")
    for number, run in enumerate(echo.runs, 1):
        cells = [*(_limit(run, name) for name in limits), *([_over(run)] if limits else [])]
        table.add_row(str(number), *_figures(run, came=bool(limits)), *cells, _outcome(run))
    parts: list[RenderableType] = [table, *([_LEGEND] if limits else [])]
    return Group(*parts, *map(escape, _reasons(echo)), *map(escape, _conclusion(echo)), UNVERIFIED)


def _figures(run: SearchRun, *, came: bool) -> Iterator[str]:
    for rate in (run.rate, run.came if came else run.sustained):
        yield "" if rate is None else f"{rate:.4g}"
    yield f"{run.queries:,}"
    yield "" if run.seconds is None else f"{run.seconds:.0f}"


def _limit(run: SearchRun, name: str) -> str:
    found = next((each for each in run.limits if each.name == name), None)
    if found is None or found.p50_ms is None or found.p99_ms is None:
        return ""
    return f"{_short(found.p50_ms)} | {_short(found.p99_ms)}"


def _over(run: SearchRun) -> str:
    shares = [each.over / each.queries for each in run.limits if each.queries]
    return f"{max(shares):.2%}" if shares else ""


def _short(ms: float) -> str:
    return f"{ms:,.0f}" if ms >= 100 else f"{ms:.3g}"


def _outcome(run: SearchRun) -> str:
    kind = "full run " if run.kind == "full" else ""
    former = ", from before" if run.former else ""
    return f"{kind}[{_COLOURS.get(run.outcome, 'white')}]{escape(run.outcome)}[/]{former}"


def _reasons(echo: SearchEcho) -> Iterator[str]:
    for number, run in enumerate(echo.runs, 1):
        yield f"{number}: {run.purpose}; {run.reason}"


def _conclusion(echo: SearchEcho) -> Iterator[str]:
    probes, full = len(echo.probes), len(echo.runs) - len(echo.probes)
    runs = f"{probes} probe{'' if probes == 1 else 's'}, {full} full run{'' if full == 1 else 's'}"
    came = f"first guess {echo.guess:.4g} ({echo.guess_from}); {runs}"
    yield came + (" (short ones: --test_run)" if echo.test_run else "")
    if echo.found is not None:
        short = " short" if echo.test_run else ""
        yield f"found: target_qps {echo.found:g}, whose{short} run is VALID ({echo.runs[-1].run})"
    elif echo.ended_at is None:
        yield "not ended: the next search takes its probes as they are"
    else:
        yield f"none found: {echo.why}"
    yield from (f"note: {note}" for note in echo.notes)
