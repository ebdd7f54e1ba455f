"""What ``doctor`` shows people: every check by subject, then how to mend what is not well, the worst first."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

from rich import box
from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table
from rich.text import Text

import harness
from harness.gate.findings import printable
from harness.machine.doctor.check import Check, State, exit_code

SCHEMA = 1
_LONGEST = 1000
_STYLES = {State.FAIL: "bold red", State.WARN: "yellow", State.UNKNOWN: "magenta", State.OK: "green"}
_WORST_FIRST = list(State)


def rendered(checks: Sequence[Check], named: str) -> Group:
    """All of it. ``named`` is what the machine was held against."""
    table = Table(box=box.SIMPLE_HEAD, title=f"This machine, held against {escape(named)}", title_justify="left")
    for column in ("check", "", "read"):
        table.add_column(column, overflow="fold", no_wrap=column != "read")
    for subject, some in itertools.groupby(checks, key=lambda one: one.subject):
        table.add_section()
        table.add_row(f"[bold]{subject}[/]")
        for one in some:
            table.add_row(f"  {one.name}", f"[{_STYLES[one.state]}]{one.state.value}[/]", _read(one))
    parts: list[RenderableType] = [table, *_mends(checks), _counts(checks)]
    return Group(*parts)


def as_json(checks: Sequence[Check], systems: Sequence[str], benchmarks: Sequence[str], round_: str) -> dict[str, Any]:
    """The same as data; ``exit_code`` is what the verb ends with."""
    return {
        "schema_version": SCHEMA,
        "harness_version": harness.__version__,
        "round": round_,
        "systems": list(systems),
        "benchmarks": list(benchmarks),
        "exit_code": exit_code(checks),
        "counts": {state.value: _count(checks, state) for state in _WORST_FIRST},
        "checks": [
            {
                "subject": one.subject,
                "name": one.name,
                "state": one.state.value,
                "read": None if one.state is State.UNKNOWN else one.read,
                "source": one.source,
                "expected": one.expected,
                "why": one.why,
                "authority": one.authority,
                "mend": one.mend,
                "missing": one.missing,
            }
            for one in checks
        ],
    }


def _mends(checks: Sequence[Check]) -> Iterator[Text]:
    """Each check that is not well with what was expected and why, and its mend on a line of its own."""
    lacking = sorted((one for one in checks if one.mend is not None), key=_badness)
    for one in lacking:
        found = one.source if one.state is State.UNKNOWN else one.read
        yield Text.assemble((one.state.value, _STYLES[one.state]), f" {one.name}: {printable(found)}")
        yield Text.assemble(("  expected: ", "dim"), printable(one.expected))
        yield Text.assemble(("  because: ", "dim"), f"{one.why} ({one.authority})")
        yield Text.assemble(("  mend: ", "dim"), one.mend or "")
    if lacking:
        yield Text()


def _badness(one: Check) -> tuple[int, bool]:
    """What is missing stands before what spoils: nothing starts without it."""
    return _WORST_FIRST.index(one.state), not one.missing


def _counts(checks: Sequence[Check]) -> Text:
    counts = ", ".join(f"{_count(checks, state)} {state.value}" for state in _WORST_FIRST)
    said = {
        0: "nothing that would spoil or forbid a run was found",
        1: "a run would be spoilt or may not be filed",
        3: "something is missing that a run needs",
    }[exit_code(checks)]
    return Text(f"{counts}: {said}")


def _count(checks: Sequence[Check], state: State) -> int:
    return sum(one.state is state for one in checks)


def _read(one: Check) -> str:
    """What was read and where, or why nothing was."""
    source = f"[dim]{escape(printable(one.source, _LONGEST))}[/]"
    return source if one.state is State.UNKNOWN else f"{escape(printable(one.read, _LONGEST))}  {source}"
