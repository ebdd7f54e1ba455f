"""The rate to expect of Offline: what a short run answers a second, and a full run that is sized by it.

LoadGen asks all at once, a tenth more than the expected rate would answer in the minimum duration. A rate that is too
low ends before that and is INVALID, one that is too high only takes longer.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from harness.ledger.samples import Int64, SampleState
from harness.runs.search.steps import AskFull, AskProbe, Found, NoneFound, Step, nearest

_FROM, _TO = 0.1, 0.9
"""Between these shares of its answers a run is steady: before, batches fill; after, they empty."""
_ENOUGH: Final = 0.5
"""A probe that took this share of the time it was meant to take is believed."""
_DIGITS: Final = 4


@dataclass(frozen=True, slots=True)
class OfflineSettings:
    """``headroom``: how far above the measured rate LoadGen is told to expect; ``step``: by how much a rate is raised
    at least whose full run ended too early, ``raised_at_most`` times.
    """

    headroom: float = 0.02
    max_probes: int = 3
    step: float = 0.02
    raised_at_most: int = 3

    def __post_init__(self) -> None:
        if not 0 <= self.headroom < 1 or not 0 < self.step < 1:
            raise ValueError("shares are between 0 and 1")
        if self.max_probes < 1 or self.raised_at_most < 0:
            raise ValueError("counts are not below 0")


@dataclass(frozen=True, slots=True)
class Pace:
    """What a run of Offline answered: samples a second while it was steady, how long it took, and what failed."""

    answered: float
    seconds: float
    failed: int = 0


@dataclass(frozen=True, slots=True)
class OfflineTold:
    """A short run: the rate that sized it, what it answered, and whether it was as long as it was meant to be."""

    asked: float
    pace: Pace
    meant_s: float

    @property
    def enough(self) -> bool:
        """Whether it was long enough to be believed."""
        return self.pace.seconds >= _ENOUGH * self.meant_s


@dataclass(frozen=True, slots=True)
class OfflineRun:
    """A run of full length. ``mendable``: a higher rate may make it VALID; ``why`` it is not."""

    rate: float
    valid: bool
    mendable: bool = True
    why: str = ""
    pace: Pace | None = None


@dataclass(frozen=True, slots=True)
class OfflineSearch:
    """A search so far. :meth:`step` says what is next; :meth:`told` and :meth:`confirmed` are what it came to."""

    guess: float
    settings: OfflineSettings = OfflineSettings()
    probes: tuple[OfflineTold, ...] = ()
    full: tuple[OfflineRun, ...] = ()

    def __post_init__(self) -> None:
        if not (self.guess > 0 and math.isfinite(self.guess)):
            raise ValueError(f"a first guess of {self.guess}")

    def told(self, probe: OfflineTold) -> OfflineSearch:
        """The search after one more short run."""
        return dataclasses.replace(self, probes=(*self.probes, probe))

    def confirmed(self, run: OfflineRun) -> OfflineSearch:
        """The search after one more run of full length."""
        return dataclasses.replace(self, full=(*self.full, run))

    def step(self) -> Step:
        """What is next."""
        if self.full:
            return self._after_full()
        if not self.probes:
            return AskProbe(nearest(self.guess), "first guess")
        last = self.probes[-1]
        if last.pace.failed:
            return NoneFound(f"{last.pace.failed} samples failed: a rate mends nothing of that")
        if not last.pace.answered:
            return NoneFound(f"nothing was answered within {last.pace.seconds:.0f} s")
        if not last.enough and len(self.probes) < self.settings.max_probes:
            return AskProbe(nearest(last.pace.answered), "the probe before was too short: by what it answered")
        return AskFull(raised(last.pace.answered * (1 + self.settings.headroom)), "full run to confirm")

    def _after_full(self) -> Step:
        last = self.full[-1]
        if last.valid:
            return Found(last.rate)
        if not last.mendable:
            return NoneFound(f"the full run at {last.rate:.4g} samples/s is INVALID whatever the rate: {last.why}")
        if len(self.full) > self.settings.raised_at_most:
            rates = ", ".join(f"{run.rate:.4g}" for run in self.full)
            return NoneFound(f"full runs at {rates} samples/s are INVALID, the last: {last.why}")
        measured = 0.0 if last.pace is None else last.pace.answered * (1 + self.settings.headroom)
        return AskFull(
            raised(max(measured, last.rate * (1 + self.settings.step))), "raised: the full run was too short"
        )


def pace(columns: Mapping[str, Int64]) -> Pace:
    """The pace of a run of Offline, from samples.arrow's columns."""
    answered = columns["state"] == SampleState.ANSWERED
    done = np.sort(columns["done_ns"][answered])
    failed = int((columns["state"] == SampleState.FAILED).sum())
    if len(done) < 2:
        return Pace(0.0, 0.0, failed)
    begin = int(columns["issued_ns"].min())
    first, last = int(len(done) * _FROM), int((len(done) - 1) * _TO)
    steady_s = (int(done[last]) - int(done[first])) / 1e9
    whole_s = (int(done[-1]) - begin) / 1e9
    rate = (last - first) / steady_s if steady_s > 0 else len(done) / whole_s
    return Pace(rate, whole_s, failed)


def raised(rate: float) -> float:
    """Four digits and not below."""
    close = nearest(rate)
    unit = math.pow(10, math.floor(math.log10(rate)) - _DIGITS + 1)
    return close if close >= rate else nearest(close + unit)
