"""A run's figures as cards: the picture, what it shows in words, and the exact values below; or why there is none."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from matplotlib.figure import Figure as Picture

from harness.ledger.turn_report import AtPlace, Spread, TurnReport
from harness.report.book.content import Distribution, Figure, Limit, Missing, RunView, TimeLine
from harness.report.page.plots import Line, Lines, draw_distribution, draw_lines, quantile, within
from harness.report.wording import exact, number, percentile, scale

_SHARES: Final = (0.5, 0.75, 0.9, 0.95, 0.99, 0.999)
_NS_PER_MS: Final = 1e6
_AT: Final = ("_p50", "_p90", "_p99")
_OVER_TIME: Final = "_over_time"
_SOME: Final = 12
"""So many spans of a time line are told in its table: enough to read its course off."""

Values = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Card:
    """One figure to show. ``drawn`` is what the picture is of, None where there is none: then ``why`` says why."""

    key: str
    title: str
    about: str
    drawn: Distribution | Lines | None
    said: str = ""
    exact: Values = ()
    """Name and value of what the picture shows, with units."""
    why: str = ""

    def picture(self, words: str, *, title: str = "") -> Picture:
        """The picture, with the words that must stand in it. ValueError where there is none."""
        if self.drawn is None:
            raise ValueError(f"{self.key}: nothing to draw: {self.why}")
        if isinstance(self.drawn, Distribution):
            return draw_distribution(self.drawn, words, title=title)
        return draw_lines(self.drawn, words, title=title)


def cards(run: RunView) -> tuple[Card, ...]:
    """Those of a run: how values lie, then how they went over time, in the order that the run has them."""
    limits = {each.key: each.limit for each in run.figures if isinstance(each, Distribution)}
    found: list[Card] = []
    for stem, members in itertools.groupby(run.figures, key=_stem):
        group = list(members)
        lines = [each for each in group if isinstance(each, TimeLine)]
        if lines:
            found.append(_over_time(stem, lines, limits.get(stem.removesuffix(_OVER_TIME))))
        found += [_lying(each) for each in group if isinstance(each, Distribution)]
        found += [_lacking(each) for each in group if isinstance(each, Missing)]
    return (*found, *(turn_cards(run.turns) if run.turns is not None else ()))


def _stem(figure: Figure) -> str:
    """What percentiles over time are of: they are lines of one picture."""
    if isinstance(figure, TimeLine):
        for end in _AT:
            if figure.key.endswith(end):
                return figure.key.removesuffix(end)
    return figure.key


def _lacking(given: Missing) -> Card:
    return Card(given.key, given.title, "", None, why=given.why)


def _lying(given: Distribution) -> Card:
    unit = given.unit
    said = (
        f"{given.count:,} values: p50 {number(given.p50)} {unit}, p90 {number(given.p90)} {unit}, "
        f"p99 {number(given.p99)} {unit}, largest {number(given.max)} {unit}."
    )
    if given.limit is not None:
        said += f" {_held(given, given.limit)}."
    return Card(given.key, given.title, given.about, given, said, tuple(_values(given)))


def _held(given: Distribution, limit: Limit) -> str:
    at, bound = percentile(limit.percentile), "at most" if limit.inclusive else "below"
    value = quantile(given, limit.percentile / 100)
    told = "" if value is None else " It is." if within(limit, value) else " It is not."
    return f"{at} must be {bound} {number(limit.value)} {given.unit}.{told}".removesuffix(".")


def _values(given: Distribution) -> Iterator[tuple[str, str]]:
    unit = given.unit
    yield "values", f"{given.count:,}"
    yield "mean", f"{exact(given.mean)} {unit}"
    yield "smallest", f"{exact(given.quantiles[0][1])} {unit}"
    for share in _SHARES:
        value = quantile(given, share)
        if value is not None:
            yield percentile(round(100 * share, 6)), f"{exact(value)} {unit}"
    yield "largest", f"{exact(given.max)} {unit}"
    if given.limit is not None:
        bound = "at most" if given.limit.inclusive else "below"
        yield f"limit of {percentile(given.limit.percentile)}", f"{bound} {exact(given.limit.value)} {unit}"
        yield "source of the limit", given.limit.source


def _over_time(stem: str, lines: Sequence[TimeLine], limit: Limit | None) -> Card:
    first = lines[0]
    names = [line.key.removeprefix(f"{stem}_") if line.key != stem else "" for line in lines]
    title = first.title.removesuffix(f", {names[0]}") if names[0] else first.title
    factor, unit = scale(first.unit, max(max(line.values) for line in lines))
    drawn = Lines(
        tuple(Line(name, *_with_gaps(line, factor)) for name, line in zip(names, lines, strict=True)),
        x_label="seconds since the first was issued",
        y_label=unit,
        limit=limit.value / factor if names[0] and limit is not None else None,
        filled=not names[0],
    )
    told = "; ".join(f"{name} {_course(line)}".strip() for name, line in zip(names, lines, strict=True))
    about = f"{first.about}; spans of {number(first.span_s)} s".removeprefix("; ")
    return Card(stem, title, about, drawn, f"{told}.", tuple(_course_values(names, lines)))


def _course(line: TimeLine) -> str:
    least, most = min(line.values), max(line.values)
    return f"between {number(least)} and {number(most)} {line.unit}"


def _course_values(names: Sequence[str], lines: Sequence[TimeLine]) -> Iterator[tuple[str, str]]:
    for name, line in zip(names, lines, strict=True):
        before = f"{name}, " if name else ""
        for what, value in (("smallest", min(line.values)), ("largest", max(line.values))):
            yield f"{before}{what}", f"{exact(value)} {line.unit}"
        step = math.ceil(len(line.values) / _SOME)
        for start, value in list(zip(line.starts_s, line.values, strict=True))[::step]:
            yield f"{before}from {number(start)} s", f"{exact(value)} {line.unit}"


def _with_gaps(line: TimeLine, factor: float) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """The middles of the spans and their values over ``factor``, with a nan wherever spans were left out."""
    xs: list[float] = []
    ys: list[float] = []
    for start, value in zip(line.starts_s, line.values, strict=True):
        middle = start + line.span_s / 2
        if xs and middle - xs[-1] > 1.5 * line.span_s:
            xs.append(xs[-1] + line.span_s)
            ys.append(math.nan)
        xs.append(middle)
        ys.append(value / factor)
    return tuple(xs), tuple(ys)


# -- turns -------------------------------------------------------------------------------------------------------------


def turn_cards(report: TurnReport) -> Iterator[Card]:
    """What the turns come to by their place in the trajectory: context grows from turn to turn, and times with it."""
    places = report.by_turn
    yield _by_place("turns_ttft", "Time to first token, by turn", places, [each.ttft_ns for each in places])
    yield _by_place("turns_tpot", "Time per output token, by turn", places, [each.tpot_ns for each in places])
    yield _by_place("turns_latency", "Latency, by turn", places, [each.latency_ns for each in places])
    yield _answered(places)


def _by_place(key: str, title: str, places: Sequence[AtPlace], spreads: Iterable[Spread | None]) -> Card:
    there = [(place.turn + 1, spread) for place, spread in zip(places, spreads, strict=True) if spread is not None]
    if not there:
        return Card(key, title, "", None, why="no turn has such a time")
    xs = tuple(float(turn) for turn, _ in there)
    lines = tuple(
        Line(name, xs, tuple(getattr(spread, name) / _NS_PER_MS for _, spread in there)) for name in ("p50", "p99")
    )
    said = "; ".join(f"{line.name} between {number(min(line.ys))} and {number(max(line.ys))} ms" for line in lines)
    values = tuple(
        (
            f"turn {turn}",
            f"p50 {exact(spread.p50 / _NS_PER_MS)} ms, p99 {exact(spread.p99 / _NS_PER_MS)} ms, of {spread.count:,}",
        )
        for turn, spread in there
    )
    return Card(
        key, title, "of answered turns, at each place in its trajectory", _turns(lines, "ms"), f"{said}.", values
    )


def _answered(places: Sequence[AtPlace]) -> Card:
    key, title = "turns_answered", "Turns at each place"
    if not places:
        return Card(key, title, "", None, why="no turn was issued")
    xs = tuple(float(place.turn + 1) for place in places)
    answered = Line("answered", xs, tuple(float(place.answered) for place in places))
    lost = Line("failed or skipped", xs, tuple(float(place.failed + place.skipped) for place in places))
    values = tuple(
        (f"turn {place.turn + 1}", f"{place.answered:,} answered, {place.failed:,} failed, {place.skipped:,} skipped")
        for place in places
    )
    said = f"{sum(place.answered for place in places):,} answers at {len(places):,} places."
    lines = (answered, lost) if any(lost.ys) else (answered,)
    return Card(key, title, "", _turns(lines, "turns"), said, values)


def _turns(lines: tuple[Line, ...], unit: str) -> Lines:
    return Lines(lines, x_label="turn of the trajectory", y_label=unit)
