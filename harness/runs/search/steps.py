"""What a search is told of its runs, what it may ask next, and how it may end."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, TypeAlias

from harness.runs.search.constraint import SURE_SIGMAS, Judged
from harness.runs.search.limits import PERCENTILE
from harness.runs.search.reading import Reading
from harness.runs.search.shares import Point

_DIGITS: Final = 4


@dataclass(frozen=True, slots=True)
class Settings:
    """What ends a search. ``tolerance``: how wide the bracket may be, as a share; ``safety``: how far below it the run
    of full length asks; ``step``: by how much a rate is lowered whose full run is INVALID, ``lowered_at_most`` times;
    ``share``: what early stopping lets be over a limit in a run of full length.
    """

    tolerance: float = 0.01
    max_probes: int = 10
    safety: float = 0.005
    step: float = 0.01
    lowered_at_most: int = 3
    share: float = 1 - PERCENTILE

    def __post_init__(self) -> None:
        if not 0 < self.tolerance < 1 or not 0 <= self.safety < 1 or not 0 < self.step < 1:
            raise ValueError("shares are between 0 and 1")
        if self.max_probes < 1 or self.lowered_at_most < 0:
            raise ValueError("counts are not below 0")


@dataclass(frozen=True, slots=True)
class Told:
    """A probe that was asked for ``asked`` samples a second, and what it came to. ``reading`` is None where it was cut
    so short that it says nothing more.
    """

    asked: float
    judged: Judged
    reading: Reading | None

    @property
    def rate(self) -> float:
        """The rate at which queries really came; the one asked for where that is not known."""
        return self.asked if self.reading is None else self.reading.rate

    @property
    def answered(self) -> float | None:
        """Samples a second that were answered while the queue certainly grew: the capacity."""
        return _answered(self.reading)

    @property
    def point(self) -> Point:
        """What it says of how the share over the worst limit goes with the rate: nothing where the queue grew."""
        return _point(self.rate, None if self.answered is not None else self.reading)

    @property
    def share(self) -> float:
        """The worst limit's share over it; 1 where nothing is known."""
        worst = None if self.reading is None else self.reading.worst
        return 1.0 if worst is None else worst.share


@dataclass(frozen=True, slots=True)
class Confirmed:
    """A run of full length at a rate, and its reading, None where there is none.

    ``mendable`` is whether a lower rate may make an INVALID one VALID; ``why`` it is INVALID.
    """

    rate: float
    valid: bool
    mendable: bool = True
    why: str = ""
    reading: Reading | None = None

    @property
    def answered(self) -> float | None:
        """What it answered a second while its queue certainly grew."""
        return _answered(self.reading)

    @property
    def point(self) -> Point:
        """As that of a probe."""
        return _point(self.rate, None if self.answered is not None else self.reading)


@dataclass(frozen=True, slots=True)
class AskProbe:
    """Next: a short run at a rate, in samples a second."""

    rate: float
    purpose: str


@dataclass(frozen=True, slots=True)
class AskFull:
    """Next: a run of full length at a rate."""

    rate: float
    purpose: str


@dataclass(frozen=True, slots=True)
class Found:
    """The end: the full run at this rate is VALID. ``notes`` are what a reader should know."""

    rate: float
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NoneFound:
    """The end: no rate was found, and why."""

    why: str


Step: TypeAlias = AskProbe | AskFull | Found | NoneFound


def _answered(reading: Reading | None) -> float | None:
    if reading is None or reading.queue.sigmas < SURE_SIGMAS or reading.queue.answered <= 0:
        return None
    return reading.queue.answered


def _point(rate: float, reading: Reading | None) -> Point:
    worst = None if reading is None else reading.worst
    return Point(rate, 1.0, 0) if worst is None else Point(rate, worst.share, worst.bursts)


def nearest(rate: float) -> float:
    """Four digits, as people write a rate."""
    return float(f"{rate:.{_DIGITS}g}")


def lowered_to(rate: float) -> float:
    """Four digits and not above."""
    close = nearest(rate)
    unit = math.pow(10, math.floor(math.log10(rate)) - _DIGITS + 1)
    return close if close <= rate else nearest(close - unit)
