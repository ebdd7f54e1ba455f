"""A plan as tables for the terminal: each leg's size, its early stopping, what is wrong, and the sums."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator
from typing import Any

from rich import box
from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table

from harness.ledger.sizes import LegSize, MatrixSize, Stopping
from harness.report.progress_words import clock

_UNKNOWN = "[dim]?[/]"


def plan_tables(plan: MatrixSize, *, engines: bool = False) -> RenderableType:
    """A table for each system and benchmark, below it why times are not known, early stopping, faults and advice; then
    the sums. With ``engines`` also what was calculated of the engines.
    """
    if not plan.legs:
        return "no legs"
    parts: list[RenderableType] = []
    for (system, benchmark), members in itertools.groupby(plan.legs, key=lambda leg: (leg.system, leg.benchmark)):
        legs = list(members)
        parts += [_table(f"{benchmark} on {system}", legs), *_reasons(legs)]
    if engines:
        parts += map(escape, plan.notes)
    parts += [f"[red]cannot be VALID[/]: {escape(fault)}" for fault in plan.faults]
    return Group(*parts, _sums(plan))


def plan_json(plan: MatrixSize) -> dict[str, Any]:
    """The same as plain data: times in seconds, sizes in bytes, rates in samples/s."""
    return {
        **dataclasses.asdict(plan),
        "known_s": plan.known_s,
        "unknown_legs": plan.unknown_legs,
        "can_be_valid": plan.can_be_valid,
    }


def _table(title: str, legs: list[LegSize]) -> Table:
    table = Table(
        box=box.SIMPLE_HEAD, title=escape(title), title_justify="left", padding=0, pad_edge=False, show_edge=False
    )
    for column in ("leg", "target", "answers", "samples", "takes", "warm-up", "logs", "prompts"):
        table.add_column(column, justify="left" if column == "leg" else "right", no_wrap=True)
    for leg in legs:
        name = escape(_short(leg))
        table.add_row(
            f"[red]{name}[/]" if leg.faults else name,
            _UNKNOWN if leg.rate is None else f"{leg.rate.value:.4g}",
            _UNKNOWN if leg.answers is None else f"{leg.answers.value:.4g}",
            _UNKNOWN if leg.issued is None else f"{leg.issued:,}",
            _UNKNOWN if leg.expected_s is None else clock(leg.expected_s),
            _UNKNOWN if leg.warmup_s is None else clock(leg.warmup_s),
            _bytes(leg.logged_bytes),
            _UNKNOWN if leg.library_bytes is None else _bytes(leg.library_bytes),
        )
    return table


def _short(leg: LegSize) -> str:
    return f"{leg.scenario} {leg.leg}"


def _reasons(legs: list[LegSize]) -> list[str]:
    """Each line once, with the legs that it is said of."""
    said: dict[str, list[str]] = {}
    for leg in legs:
        for line in _of_leg(leg):
            said.setdefault(line, []).append(_short(leg))
    return [f"{line} ({escape(', '.join(names))})" for line, names in said.items()]


def _of_leg(leg: LegSize) -> Iterator[str]:
    if leg.unknown:
        yield f"time not known: {escape(leg.unknown)}"
    if leg.answers is not None and leg.expected_s is not None:
        yield f"answers: {escape(leg.answers.origin)}"
    if leg.stopping is not None:
        yield from _stopping(leg.stopping)
    for fault in leg.faults:
        yield f"[red]cannot be VALID[/]: {escape(fault)}"
    for advice in leg.advice:
        yield f"[yellow]{escape(advice)}[/]"


def _stopping(stopping: Stopping) -> Iterator[str]:
    if stopping.allowed_over >= 0:
        yield (
            f"p{stopping.percentile * 100:g} by early stopping: of {stopping.queries:,} queries "
            f"{stopping.allowed_over:,} may be over the limit ({stopping.allowed_share:.3%})"
        )
    for at in stopping.at_shares:
        if at.queries is not None and at.queries > stopping.queries:
            takes = "" if at.seconds is None else f", which take {clock(at.seconds)}"
            yield f"with {at.share:.2%} over it would take {at.queries:,} queries{takes}"


def _sums(plan: MatrixSize) -> str:
    unknown = f", and {plan.unknown_legs} legs whose time nothing tells" if plan.unknown_legs else ""
    free = "free space not readable" if plan.free_bytes is None else f"{_bytes(plan.free_bytes)} free"
    starts = "1 start of an engine comes" if plan.starts == 1 else f"{plan.starts} starts of engines come"
    return (
        f"{len(plan.legs)} legs: {clock(plan.known_s)}{unknown}; {starts} on top; "
        f"disk up to {_bytes(plan.needed_bytes)} in {escape(plan.results)} ({free})"
    )


def _bytes(size: int) -> str:
    return f"{size / (1 << 30):.1f} GiB" if size >= 1 << 30 else f"{size / (1 << 20):.0f} MiB"
