"""The sheet that plots are drawn on: its size, its colours, its frames, and the words that stand in every picture."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import FixedFormatter, FixedLocator

WIDTH: Final = 340
HEIGHT: Final = 240
POINTS_PER_INCH: Final = 72
PAPER: Final = {
    "surface": "#fefefe",
    "ink": "#1d232a",
    "muted": "#565f69",
    "rule": "#d5dae0",
    "blue": "#0b5fae",
    "wash": "#bcd6f0",
    "second": "#8a4b9c",
    "good": "#17713a",
    "bad": "#b3261e",
}
"""The colours of pictures by the page's names for them, no two alike: so a picture can follow its page to the dark."""

STYLE: Final[dict[Any, Any]] = {
    "svg.fonttype": "none",
    "text.parse_math": False,
    "svg.hashsalt": "mlperf-inference-harness",
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 10.5,
    "axes.linewidth": 0.8,
    "path.simplify": True,
    "path.simplify_threshold": 0.2,
}
_LEFT, _RIGHT, _BOTTOM, _TOP, _GAP = 48, 16, 54, 18, 12
"""Units around what is drawn; the lowest of them hold the words that stand in every picture."""
_SHARE_OF_HISTOGRAM: Final = 0.3
SMALL: Final = 9.0


def sheet(words: str, title: str) -> Figure:
    """An empty picture with the words that must stand in it, and its title where it is to stand alone."""
    size = (WIDTH / POINTS_PER_INCH, (HEIGHT + _title_room(title)) / POINTS_PER_INCH)
    figure = Figure(figsize=size, dpi=POINTS_PER_INCH, facecolor=PAPER["surface"])
    height = HEIGHT + _title_room(title)
    figure.text(1 - 4 / WIDTH, 5 / height, words, ha="right", va="bottom", fontsize=SMALL, color=PAPER["muted"])
    for at, line in enumerate(title.splitlines()):
        size_of = 10.5 if at == 0 else SMALL
        y = 1 - (8 + 14 * at) / height
        figure.text(8 / WIDTH, y, line, ha="left", va="top", fontsize=size_of, color=PAPER["ink"])
    return figure


def _title_room(title: str) -> int:
    return 14 * len(title.splitlines()) + 6 if title else 0


def frames(figure: Figure, *, split: bool, title: str) -> list[Axes]:
    """One frame, or two above each other: for a histogram, and for what is drawn below on the same axis."""
    height = HEIGHT + _title_room(title)
    width = (WIDTH - _LEFT - _RIGHT) / WIDTH
    room = HEIGHT - _BOTTOM - _TOP
    spans: list[tuple[float, float]]
    if not split:
        spans = [(_BOTTOM, room)]
    else:
        upper = _SHARE_OF_HISTOGRAM * (room - _GAP)
        lower = room - _GAP - upper
        spans = [(_BOTTOM + lower + _GAP, upper), (_BOTTOM, lower)]
    return [_frame(figure, (_LEFT / WIDTH, at / height, width, tall / height)) for at, tall in spans]


def _frame(figure: Figure, place: tuple[float, float, float, float]) -> Axes:
    axes = figure.add_axes(place, facecolor="none")
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(PAPER["muted"])
    axes.tick_params(color=PAPER["muted"], labelcolor=PAPER["ink"], length=3, width=0.8, pad=3, labelsize=SMALL + 1)
    axes.tick_params(axis="y", length=0)
    axes.xaxis.label.set_color(PAPER["ink"])
    axes.grid(visible=True, axis="y", color=PAPER["rule"], linewidth=0.8)
    axes.set_axisbelow(True)
    return axes


def corner(axes: Axes, text: str) -> None:
    """What the vertical axis counts, at the upper left of the picture."""
    at = (4 - _LEFT) / (WIDTH - _LEFT - _RIGHT)
    axes.text(at, 1.04, text, transform=axes.transAxes, va="bottom", fontsize=SMALL, color=PAPER["muted"])


def number_ticks(axis: Axis, ticks: Iterable[float], limits: tuple[float, float]) -> None:
    """Ticks at those values that lie within, written as people write numbers."""
    shown = [float(tick) for tick in ticks if limits[0] <= tick <= limits[1]]
    axis.set_major_locator(FixedLocator(shown))
    axis.set_major_formatter(FixedFormatter([f"{tick:,.6f}".rstrip("0").rstrip(".") for tick in shown]))
