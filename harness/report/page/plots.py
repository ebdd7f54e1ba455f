"""Figures as pictures, by matplotlib: how values lie, and how they went over time or from turn to turn.

What is drawn here is not saved: :mod:`harness.report.page.svg` does that.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedFormatter, FixedLocator, LogLocator, MaxNLocator, NullLocator

from harness.report.book.content import Distribution, Limit
from harness.report.page.paper import PAPER, SMALL, STYLE, corner, frames, number_ticks, sheet
from harness.report.wording import number, percentile, scale

_FEWEST_NINES: Final = 2.0
_MOST_NINES: Final = 4.0
_ROOM_FOR_ALL: Final = 0.15
"""100 % is endlessly far; it is drawn so much above the greatest share that has a place."""
_SHARE_TICKS: Final = ((0.5, "50 %"), (0.9, "90 %"), (0.99, "99 %"), (0.999, "99.9 %"), (0.9999, "99.99 %"))
_FAR: Final = 4.0
"""A limit so many times above the greatest value would leave no room for the values."""
_ALIKE: Final = 1e-6
"""Values that differ by so little are drawn as one."""
_DECADES_FOR_POWERS: Final = 1.6

XScale = Literal["linear", "log"]


@dataclass(frozen=True, slots=True)
class Line:
    """Points of one line: ``xs`` rise, a gap is a nan in ``ys``. ``name`` stands at its end; none where it is alone."""

    name: str
    xs: tuple[float, ...]
    ys: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Lines:
    """A picture of lines over one axis. ``unit`` is that of the ys; ``filled`` paints what is below a lone line."""

    lines: tuple[Line, ...]
    x_label: str
    y_label: str
    limit: float | None = None
    filled: bool = False


def draw_distribution(given: Distribution, words: str, *, title: str = "") -> Figure:
    """How values lie: the histogram above and, on the same axis, the share of values that are no larger.

    That axis stretches towards 100 %, since limits are of percentiles near it. ``words`` stand in the picture.
    """
    with mpl.rc_context(STYLE):
        figure = sheet(words, title)
        factor, unit = scale(given.unit, given.max)
        both = bool(given.counts) and given.unit != "tokens"
        x_scale: XScale = "log" if given.log and given.quantiles[0][1] > _ALIKE else "linear"
        framed = frames(figure, split=both, title=title)
        if given.counts:
            _histogram(framed[0], given, factor)
        if both or not given.counts:
            _quantiles(framed[-1], given, factor)
        for axes in framed:
            _x_axis(axes, given, factor, x_scale)
            _limit_line(axes, given, factor, unit, named=axes is framed[0])
        if both:
            framed[0].tick_params(labelbottom=False)
        framed[-1].set_xlabel(unit, labelpad=2)
        return figure


def draw_lines(given: Lines, words: str, *, title: str = "") -> Figure:
    """Lines over time, or over turns, from 0 upwards. ``words`` stand in the picture."""
    with mpl.rc_context(STYLE):
        figure = sheet(words, title)
        (axes,) = frames(figure, split=False, title=title)
        colours = itertools.cycle((PAPER["blue"], PAPER["second"], PAPER["muted"]))
        for line, colour in zip(given.lines, colours, strict=False):
            _line(axes, line, colour, filled=given.filled)
        top = max(y for line in given.lines for y in line.ys if not math.isnan(y))
        if given.limit is not None and given.limit <= _FAR * top:
            top = max(top, given.limit)
            axes.axhline(given.limit, color=PAPER["bad"], linewidth=1, linestyle=(0, (4, 3)))
        axes.set_ylim(0, top * 1.1 or 1)
        number_ticks(axes.yaxis, MaxNLocator(5).tick_values(0, top * 1.1 or 1), axes.get_ylim())
        number_ticks(axes.xaxis, MaxNLocator(6, integer=True).tick_values(*axes.get_xlim()), axes.get_xlim())
        axes.set_xlabel(given.x_label, labelpad=2)
        corner(axes, given.y_label)
        if len(given.lines) > 1:
            _legend(axes, given.lines)
        return figure


def _histogram(axes: Axes, given: Distribution, factor: float) -> None:
    edges = np.asarray(given.edges) / factor
    axes.stairs(given.counts, edges, fill=True, facecolor=PAPER["wash"], edgecolor=PAPER["blue"], linewidth=0.8)
    top = max(given.counts) * 1.08
    axes.set_ylim(0, top)
    corner(axes, "per bin")
    few = 2 if given.unit != "tokens" else 4
    number_ticks(axes.yaxis, MaxNLocator(few, integer=True).tick_values(0, top), (0, top))


def _nines(share: float, most: float) -> float:
    """0 of nothing, 1 of 90 %, 2 of 99 % …, at most ``most``."""
    return most if share >= 1 else min(-math.log10(1 - share), most)


def _quantiles(axes: Axes, given: Distribution, factor: float) -> None:
    held = 0.0 if given.limit is None else _nines(given.limit.percentile / 100, _MOST_NINES)
    most = max(_FEWEST_NINES, min(math.log10(given.count), _MOST_NINES), held) + _ROOM_FOR_ALL
    xs = [value / factor for _, value in given.quantiles]
    ys = [_nines(share, most) for share, _ in given.quantiles]
    axes.plot(xs, ys, color=PAPER["blue"], linewidth=1.6, solid_joinstyle="round")
    axes.set_ylim(0, most * 1.04)
    ticks = [(_nines(share, most), label) for share, label in _SHARE_TICKS if _nines(share, math.inf) <= most + 1e-9]
    axes.yaxis.set_major_locator(FixedLocator([at for at, _ in ticks]))
    axes.yaxis.set_major_formatter(FixedFormatter([label for _, label in ticks]))
    _marker(axes, given, factor, most)


def _marker(axes: Axes, given: Distribution, factor: float, most: float) -> None:
    """The percentile that a limit is of, the 99th without one; green within the limit, red beyond it."""
    at = 99.0 if given.limit is None else given.limit.percentile
    value = quantile(given, at / 100)
    if value is None:
        return
    colour = PAPER["ink"] if given.limit is None else PAPER["good" if within(given.limit, value) else "bad"]
    y = _nines(at / 100, most)
    axes.plot([value / factor], [y], marker="o", markersize=6, color=colour, markeredgecolor=PAPER["surface"])
    _, unit = scale(given.unit, given.max)
    axes.annotate(
        f"{percentile(at)} {number(value / factor)} {unit}",
        (value / factor, y),
        xytext=(-8, 5),
        textcoords="offset points",
        ha="right",
        va="bottom",
        fontsize=SMALL + 1,
        color=colour,
    )


def within(limit: Limit, value: float) -> bool:
    """Whether a value keeps a limit."""
    return value <= limit.value if limit.inclusive else value < limit.value


def quantile(given: Distribution, share: float) -> float | None:
    """The value at a share, where it is among those that are kept, or follows from them; None where it does not."""
    for known, value in given.quantiles:
        if math.isclose(known, share, abs_tol=1e-9):
            return value
    if len(given.quantiles) != given.count + 1:
        return None
    return max((value for known, value in given.quantiles if known < share), default=None)


def _x_range(given: Distribution) -> tuple[float, float]:
    """From the least to the greatest value, or to the limit where that is near."""
    least, most = given.quantiles[0][1], given.max
    if given.limit is not None and given.limit.value <= _FAR * most:
        most = max(most, given.limit.value * (1.1 if given.log else 1.03))
    if given.limit is not None and given.limit.value < least:
        least = given.limit.value * 0.97
    if math.isclose(least, most, rel_tol=_ALIKE, abs_tol=_ALIKE):
        room = 0.1 * abs(most) if abs(most) > _ALIKE else 1.0
        return least - room, most + room
    return least, most


def _x_axis(axes: Axes, given: Distribution, factor: float, x_scale: XScale) -> None:
    least, most = (value / factor for value in _x_range(given))
    if x_scale == "log":
        axes.set_xscale("log")
        axes.set_xlim(least * 0.95, most * 1.05)
        decades = math.log10(most / least)
        subs = (1.0,) if decades > 4 else (1.0, 3.0) if decades > _DECADES_FOR_POWERS else (1.0, 2.0, 5.0)
        ticks: Iterable[float] = LogLocator(subs=subs).tick_values(least, most)
        axes.xaxis.set_minor_locator(NullLocator())
    else:
        room = 0.02 * (most - least)
        axes.set_xlim(least - room, most + room)
        ticks = MaxNLocator(5, integer=given.unit == "tokens").tick_values(least, most)
    number_ticks(axes.xaxis, ticks, axes.get_xlim())


def _limit_line(axes: Axes, given: Distribution, factor: float, unit: str, *, named: bool) -> None:
    if given.limit is None:
        return
    at, high = given.limit.value / factor, axes.get_xlim()[1]
    beyond = at > high
    if not beyond:
        axes.axvline(at, color=PAPER["bad"], linewidth=1.1, linestyle=(0, (4, 3)))
    if not named:
        return
    said = f"{percentile(given.limit.percentile)} limit {number(at)} {unit}{' →' if beyond else ''}"
    place = axes.transAxes.inverted().transform(axes.transData.transform((min(at, high), 0)))[0]
    axes.text(
        min(max(place, 0.1), 1.0),  # beyond what the corner says
        1.04,
        said,
        transform=axes.transAxes,
        ha="right" if place > 0.5 else "left",
        va="bottom",
        fontsize=SMALL,
        color=PAPER["bad"],
    )


def _line(axes: Axes, line: Line, colour: str, *, filled: bool) -> None:
    alone = [
        at for at, y in enumerate(line.ys) if not math.isnan(y) and all(math.isnan(y) for y in _beside(line.ys, at))
    ]
    if filled:  # one shape for what is below and for its edge: half as large
        axes.fill_between(line.xs, line.ys, facecolor=PAPER["wash"], edgecolor=colour, linewidth=1)
    else:
        axes.plot(line.xs, line.ys, color=colour, linewidth=1.4, solid_joinstyle="round")
    axes.plot([line.xs[at] for at in alone], [line.ys[at] for at in alone], "o", color=colour, markersize=3.5)
    axes.margins(x=0.01)


def _beside(values: Sequence[float], at: int) -> Sequence[float]:
    return [*values[max(at - 1, 0) : at], *values[at + 1 : at + 2]]


def _legend(axes: Axes, lines: Sequence[Line]) -> None:
    """The lines' names, each in the colour of its line, at the upper right: above what is drawn."""
    colours = (PAPER["blue"], PAPER["second"], PAPER["muted"])
    right = 1.0
    for line, colour in reversed(list(zip(lines, colours, strict=False))):
        axes.text(
            right, 1.04, line.name, transform=axes.transAxes, ha="right", va="bottom", fontsize=SMALL, color=colour
        )
        right -= 0.04 + 0.021 * len(line.name)
