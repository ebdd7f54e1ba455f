"""Which rate to ask next, and when the search ends: a state machine that is told what runs came to.

Bracket from a first guess, then close in: where a queue grew, what was answered meanwhile tells the capacity, and the
next two probes go just below and just above it; elsewhere the shares over the limit at both ends of the bracket are
interpolated. When the bracket is within the tolerance, a run of full length confirms the rate.
"""

from __future__ import annotations

import dataclasses
import math
import statistics
from dataclasses import dataclass, field
from typing import Final

from harness.runs.search.constraint import LIKELY_SIGMAS, Outcome
from harness.runs.search.shares import Estimate, line
from harness.runs.search.steps import (
    AskFull,
    AskProbe,
    Confirmed,
    Found,
    NoneFound,
    Settings,
    Step,
    Told,
    lowered_to,
    nearest,
)

_UP: Final = (1.25, 1.5, 2.0)
_DOWN: Final = (1.25, 2.0, 4.0)
"""Factors of the first steps that look for the other end of the bracket; the last holds for all after it."""
_BELOW_ANSWERED: Final = (0.97, 0.9, 0.75, 0.5, 0.25)
"""What a growing queue answered is the capacity, if the engine does not answer less for being overrun: so much of it
is tried, one after the other, until a rate passes.
"""
_EDGE: Final = 0.15
"""An interpolated rate keeps this share of the bracket's width from its ends."""
_MANY: Final = 0.5
_FAR: Final = 4.0
"""Where half of the answers or more are over a limit at two rates so far apart, and no queue grows, no rate will do."""
_HALVES: Final = "halves the bracket"
_STEPS: Final = 5
"""By so many steps at once a rate is lowered at most, where no queue grew."""
_VAGUE: Final = 0.5


@dataclass(frozen=True, slots=True)
class Search:
    """A search so far. :meth:`step` says what is next; :meth:`told` and :meth:`confirmed` are what it came to."""

    guess: float
    settings: Settings = field(default_factory=Settings)
    probes: tuple[Told, ...] = ()
    full: tuple[Confirmed, ...] = ()

    def __post_init__(self) -> None:
        if not (self.guess > 0 and math.isfinite(self.guess)):
            raise ValueError(f"a first guess of {self.guess}")

    def told(self, probe: Told) -> Search:
        """The search after one more probe."""
        return dataclasses.replace(self, probes=(*self.probes, probe))

    def confirmed(self, run: Confirmed) -> Search:
        """The search after one more run of full length."""
        return dataclasses.replace(self, full=(*self.full, run))

    @property
    def low(self) -> Told | None:
        """The highest rate that passes, below the lowest that does not."""
        high = self.high
        passing = [p for p in self.probes if p.judged.leans_to_pass and (high is None or p.rate < high.rate)]
        return max(passing, key=lambda probe: probe.rate, default=None)

    @property
    def high(self) -> Told | None:
        """The lowest rate that does not pass. Of one that only leans to it, a rate above that passes says otherwise."""
        passed = max((p.rate for p in self.probes if p.judged.outcome is Outcome.FITS), default=0.0)
        failing = [
            p
            for p in self.probes
            if not p.judged.leans_to_pass and (p.judged.outcome is Outcome.FAILS or p.rate > passed)
        ]
        return min(failing, key=lambda probe: probe.rate, default=None)

    @property
    def capacity(self) -> float | None:
        """The least that was answered a second while a queue grew; None where none did, or where a rate passes at which
        more came and was answered, and no queue was worked off: an engine may answer less for being overrun.
        """
        capacity = min((p.answered for p in self.probes if p.answered is not None), default=None)
        if capacity is None:
            return None
        more = capacity * (1 + self.settings.tolerance / 2)
        fitting = [p.reading.queue for p in self.probes if p.judged.leans_to_pass and p.reading is not None]
        kept_up = [min(queue.came, queue.answered) for queue in fitting if queue.sigmas > -LIKELY_SIGMAS]
        return None if any(rate > more for rate in kept_up) else capacity

    @property
    def width(self) -> float:
        """How wide the bracket is, as a share of its lower end; infinite while an end lacks.

        The capacity is its upper end once a probe asked for more and was not answered more.
        """
        low, high, capacity = self.low, self.high, self.capacity
        if low is None or high is None:
            return math.inf
        if capacity is not None and self._asked_above(capacity):
            return max(0.0, min(high.rate, capacity) / low.rate - 1)
        return high.rate / low.rate - 1

    @property
    def estimate(self) -> Estimate | None:
        """The rate at which the share over the worst limit is what early stopping forgives, from all probes."""
        fit = line(probe.point for probe in self.probes)
        return None if fit is None else fit.at(self.settings.share)

    def _asked_above(self, capacity: float) -> bool:
        """Whether a probe asked for just a little more than the capacity."""
        half = self.settings.tolerance / 2
        return any(capacity * (1 + half) <= p.rate <= capacity * (1 + 8 * half) for p in self.probes)

    def step(self) -> Step:
        """What is next."""
        if self.full:
            return self._after_full()
        if self.width > self.settings.tolerance and len(self.probes) < self.settings.max_probes:
            return self._hopeless() or self._next_probe()
        low = self.low
        if low is None:
            return NoneFound(f"no probe of {len(self.probes)} kept the limits: {self._reason()}")
        return AskFull(lowered_to(self._base(low) * (1 - self.settings.safety)), "full run to confirm")

    # -- probes -----------------------------------------------------------------------------------------------------

    def _next_probe(self) -> AskProbe:
        if not self.probes:
            return AskProbe(nearest(self.guess), "first guess")
        rate, purpose = self._wanted()
        asked, low, high = nearest(rate * self._skew(rate)), self.low, self.high
        if low is not None and high is not None and asked in {probe.asked for probe in self.probes}:
            rate, purpose = math.sqrt(low.rate * high.rate), _HALVES  # the same again would tell the same
            asked = nearest(rate * self._skew(rate))
        return AskProbe(asked, purpose)

    def _skew(self, rate: float) -> float:
        """By how much more must be asked than is to come. LoadGen's arrivals are the same for every rate, only scaled:
        by how much they were off in a probe of about as many queries, they will be again.
        """
        read = [(probe, probe.reading.queries) for probe in self.probes if probe.reading is not None]
        if not read:
            return 1.0
        seconds = statistics.median(queries / probe.asked for probe, queries in read)
        like, _ = min(read, key=lambda each: abs(math.log(each[1] / (rate * seconds))))
        return like.asked / like.rate

    def _wanted(self) -> tuple[float, str]:
        """The rate at which queries are to come, and why."""
        low, high = self.low, self.high
        if low is None and high is not None:
            return self._down(high), "no rate passes yet: lower"
        if low is not None and high is None:
            return low.rate * _factor(_UP, len(self.probes)), "no rate fails yet: higher"
        if low is None or high is None:
            return self.guess, "first guess"
        return self._near_capacity(low.rate, high.rate) or self._between(low, high)

    def _down(self, high: Told) -> float:
        capacity = self.capacity
        below = [] if capacity is None else [capacity * share for share in _BELOW_ANSWERED]
        tried = high.rate * (1 - self.settings.tolerance)
        return next((rate for rate in below if rate < tried), high.rate / _factor(_DOWN, len(self.probes)))

    def _near_capacity(self, low: float, high: float) -> tuple[float, str] | None:
        """Just below what was answered while the queue grew, then just above it: whether more can be answered."""
        capacity, half = self.capacity, self.settings.tolerance / 2
        if capacity is None:
            return None
        if low < capacity * (1 - 1.5 * half) and high > capacity * (1 + half):
            return capacity * (1 - half), "just below what was answered while the queue grew"
        above = capacity * (1 + 2 * half)
        if low < above < high and not self._asked_above(capacity):
            return above, "just above what was answered while the queue grew"
        return None

    def _between(self, low: Told, high: Told) -> tuple[float, str]:
        estimate = self.estimate
        if estimate is None or not low.rate < estimate.rate < high.rate:
            return math.sqrt(low.rate * high.rate), _HALVES
        at = min(max(math.log(estimate.rate / low.rate) / math.log(high.rate / low.rate), _EDGE), 1 - _EDGE)
        return low.rate * (high.rate / low.rate) ** at, "where the share over the limit would be just within it"

    def _hopeless(self) -> NoneFound | None:
        """Whether most answers are over a limit whatever the rate."""
        over = [p for p in self.probes if p.share >= _MANY and p.reading is not None]
        if not over or any(p.judged.leans_to_pass for p in self.probes):
            return None
        lowest = min(over, key=lambda probe: probe.rate)
        grew = lowest.answered is not None
        if grew or max(p.rate for p in self.probes) < _FAR * lowest.rate:
            return None
        return NoneFound(f"at {lowest.rate:.4g} samples/s and no growing queue already {lowest.judged.why}")

    def _reason(self) -> str:
        lowest = min(self.probes, key=lambda probe: probe.rate)
        return f"at {lowest.rate:.4g} samples/s {lowest.judged.why}"

    # -- runs of full length ----------------------------------------------------------------------------------------

    def _base(self, low: Told) -> float:
        """The rate that is confirmed, before the safety step.

        Short runs pass at a little more than the capacity; and of shares over a limit all runs together know more than
        the two that are the bracket.
        """
        capacity, estimate = self.capacity, self.estimate
        if capacity is not None and capacity < low.rate:
            return capacity
        known = estimate is not None and estimate.error < self.settings.tolerance
        return estimate.rate if known and estimate is not None else low.rate

    def _after_full(self) -> Step:
        last = self.full[-1]
        if last.valid:
            return Found(last.rate, self._notes())
        if not last.mendable:
            return NoneFound(f"the full run at {last.rate:.4g} samples/s is INVALID whatever the rate: {last.why}")
        if len(self.full) > self.settings.lowered_at_most:
            return NoneFound(
                f"full runs at {', '.join(f'{run.rate:.4g}' for run in self.full)} samples/s are INVALID, "
                f"the last: {last.why}"
            )
        return AskFull(lowered_to(self._lowered(last)), "lowered: the full run before was INVALID")

    def _lowered(self, last: Confirmed) -> float:
        """A step lower, or more where that run's queue tells the capacity, or all runs together tell the rate."""
        settings = self.settings
        lowered = last.rate * (1 - settings.step)
        if last.answered is not None:
            return min(lowered, last.answered * (1 - settings.safety))
        # LoadGen's arrivals are the same again: what came in bursts will, and this run's own share is where to start.
        fit = line(run.point for run in self.full) or line(run.point for run in self.probes)
        if fit is None or fit.slope_error > _VAGUE or not last.point.tells:
            return lowered
        over = math.log(last.point.share / settings.share) / fit.slope
        wanted = last.rate * math.exp(-over) * (1 - settings.safety)
        return min(lowered, max(wanted, last.rate * (1 - _STEPS * settings.step)))

    def _notes(self) -> tuple[str, ...]:
        if self.high is None:
            return ("no rate that fails was probed: a higher one may do as well",)
        if self.width > self.settings.tolerance:
            return (f"after {len(self.probes)} probes the bracket is still {self.width:.1%} wide",)
        return ()


def _factor(factors: tuple[float, ...], taken: int) -> float:
    return factors[min(taken, len(factors)) - 1]
