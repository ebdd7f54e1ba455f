"""The figures of the turns of a run, as tables for the terminal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from rich import box
from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table

from harness.ledger.turn_report import Lengths, Spread, TurnReport

_MS: Final = 1e6
_NOT_MEASURED: Final = "-"
_WHOLE: Final = 1000
"""From here on a figure is shown without decimals: the table is to fit 80 columns."""


def turn_tables(report: TurnReport) -> Group:
    """Times and lengths, one line each; then rates, score and counts, and what is to be known of them."""
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 0, 0, 1), pad_edge=False, title="turns", title_justify="left")
    for column in ("", "mean", "p50", "p90", "p99", "max", "of"):
        table.add_column(column, justify="right" if column else "left", no_wrap=True)
    for name, cells in turn_spreads(report):
        table.add_row(name, *cells)
    parts: list[RenderableType] = [table]
    parts += [escape(line) for line in turn_lines(report)]
    return Group(*parts)


def turn_spreads(report: TurnReport) -> Iterator[tuple[str, list[str]]]:
    """Times and lengths by name: mean, p50, p90, p99, the largest, and of how many."""
    for name, spread, unit in _times(report):
        yield name, _cells(spread, unit)
    for name, lengths in (
        ("input tokens", report.input_tokens),
        ("output tokens", report.output_tokens),
        ("cached tokens", report.cached_tokens),
    ):
        yield name, _cells(lengths.tokens, 1, digits=0)


def _times(report: TurnReport) -> Iterator[tuple[str, Spread | None, float]]:
    yield "time to first token, ms", report.ttft_ns, _MS
    yield "time per output token, ms", report.tpot_ns, _MS
    yield "turn, ms", report.latency_ns, _MS
    yield "trajectory, ms", report.trajectory_latency_ns, _MS
    yield "its turns alone, ms", report.trajectory_turns_ns, _MS


def _cells(spread: Spread | None, unit: float, digits: int = 2) -> list[str]:
    if spread is None:
        return [_NOT_MEASURED] * 6
    values = (spread.mean, spread.p50, spread.p90, spread.p99, spread.max)
    shown = (value / unit for value in values)
    return [*(f"{each:,.{digits if each < _WHOLE else 0}f}" for each in shown), f"{spread.count:,}"]


def turn_lines(report: TurnReport) -> Iterator[str]:
    """Counts, rates, scores and lengths, a sentence each."""
    turns, whole = report.turns, report.trajectories
    yield (
        f"turns: {turns.answered:,} answered, {turns.failed:,} failed, {turns.skipped:,} skipped"
        f"{f', {turns.outstanding:,} outstanding' if turns.outstanding else ''}; "
        f"trajectories: {whole.completed:,} of {whole.issued:,} complete"
    )
    yield (
        f"rates: {_number(report.turns_per_s)} turns/s, {_number(report.trajectories_per_s)} trajectories/s, "
        f"{_number(report.output_tokens_per_s)} output tokens/s, over {_number(report.window_s)} s"
    )
    yield f"e2e interactivity: {_number(report.e2e_interactivity)} tokens/s"
    inline = report.inline
    yield f"inline score: {_number(inline.score, 4)} of {inline.scored:,} turns, {inline.missing:,} of them unanswered"
    mean = report.mean_output
    yield (
        f"mean output tokens: {_number(mean.performance_window)} in the performance window "
        f"({mean.performance_window_turns:,} turns), {_number(mean.all_turns)} of all turns"
    )
    reasons = ", ".join(f"{name} {count:,}" for name, count in report.finish_reasons.items())
    yield f"ended by: {reasons or _NOT_MEASURED}; cached prompt tokens: {_percent(report.cached_share)}"
    yield f"lengths: input {_counted(report.input_tokens)}, output {_counted(report.output_tokens)}"
    times = sorted(report.issued_times.values())
    if times:
        often = f"{times[0]:,}" if times[0] == times[-1] else f"{times[0]:,} to {times[-1]:,}"
        yield f"each of {len(times):,} trajectories was issued {often} {'time' if often == '1' else 'times'}"
    yield from report.notes


def _counted(lengths: Lengths) -> str:
    said = [f"{lengths.by_server:,} by the server"] if lengths.by_server else []
    said += [f"{lengths.by_tokenizer:,} by {lengths.tokenizer}"] if lengths.by_tokenizer else []
    said += [f"{lengths.unknown:,} by nobody"] if lengths.unknown else []
    return " and ".join(said) or _NOT_MEASURED


def _number(value: float | None, digits: int = 2) -> str:
    return _NOT_MEASURED if value is None else f"{value:,.{digits}f}"


def _percent(share: float | None) -> str:
    return _NOT_MEASURED if share is None else f"{100 * share:.1f} %"
