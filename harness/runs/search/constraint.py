"""Whether a short run keeps the limits as a run of full length would have to: yes, no, or too few queries to tell."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from harness.rules import early_stopping
from harness.runs.search.limits import PERCENTILE, TPOT
from harness.runs.search.reading import Measured, Reading

SURE_SIGMAS: Final = 3.0
"""A queue that grows by so much is no chance."""
LIKELY_SIGMAS: Final = 1.0
"""A queue that grows by so much may be chance; it speaks against a rate all the same where nothing else is sure."""


class Outcome(str, enum.Enum):
    """What a probe came to."""

    FITS = "pass"
    FAILS = "fail"
    UNDECIDED = "undecided"


@dataclass(frozen=True, slots=True)
class Judged:
    """The outcome, towards what it leans where it is undecided, and why, for people."""

    outcome: Outcome
    leans_to_pass: bool
    why: str

    def __post_init__(self) -> None:
        if self.outcome is not Outcome.UNDECIDED and self.leans_to_pass != (self.outcome is Outcome.FITS):
            raise ValueError(f"{self.outcome.value}, and it leans the other way")


def judge(reading: Reading, full_s: float) -> Judged:
    """Judges a probe by the arithmetic of LoadGen's early stopping and by how its queue would stand after ``full_s``.

    *pass*: early stopping would have passed, and nothing says that the queue grows beyond a limit. *fail*: samples
    failed; so many are over a limit that a share within it is as unlikely as early stopping allows a mistake to be; or
    the queue certainly grows, and would delay answers beyond a limit. Else it is undecided, and leans.
    """
    no = next(_certain(reading, full_s), None)
    if no is not None:
        return Judged(Outcome.FAILS, False, no)
    doubts = list(_doubts(reading, full_s))
    if not doubts:
        return Judged(Outcome.FITS, True, _margin(reading))
    leans = not any(against for against, _ in doubts)
    return Judged(Outcome.UNDECIDED, leans, doubts[0][1])


def within_by_chance(measured: Measured) -> bool:
    """Whether so many over the limit are compatible with a share that is within it.

    Early stopping's own test from the other side: is it sure that *more* than one in a hundred is over. It counts
    queries as if each were by itself; what waits in a queue is late together, so a burst counts as one here.
    """
    if not measured.over:
        return True
    independent = round(measured.queries * measured.bursts / measured.over)
    return not early_stopping.passes(independent, independent - measured.bursts, 1 - PERCENTILE)


def _certain(reading: Reading, full_s: float) -> Iterator[str]:
    """What makes a rate certainly too high."""
    if reading.failed:
        yield f"{reading.failed} of {reading.queries} samples failed"
    for measured in reading.measured:
        if measured.queries and not within_by_chance(measured):
            yield _over(measured)
    if reading.queue.sigmas >= SURE_SIGMAS and _delayed(reading, full_s):
        yield _growth(reading, full_s)


def _doubts(reading: Reading, full_s: float) -> Iterator[tuple[bool, str]]:
    """What keeps a rate from passing, each with whether it speaks against it."""
    for measured in reading.measured:
        if not early_stopping.passes(measured.queries, measured.over, PERCENTILE):
            yield measured.share > 1 - PERCENTILE, f"{_over(measured)}: too few queries to tell"
    if reading.queue.sigmas >= LIKELY_SIGMAS and _delayed(reading, full_s):
        yield True, f"{_growth(reading, full_s)}, or it is chance"


def _delayed(reading: Reading, full_s: float) -> bool:
    """Whether a queue that goes on growing so would bring answers beyond a limit of theirs within a full run."""
    delay_ns = reading.queue.lag * full_s * 1e9
    return any(m.p50_ns + delay_ns > m.limit.limit_ns for m in reading.measured if m.limit.name != TPOT)


def _over(measured: Measured) -> str:
    return f"{measured.over} of {measured.queries} queries over the limit of {measured.limit.name}"


def _growth(reading: Reading, full_s: float) -> str:
    delay_s = reading.queue.lag * full_s
    return f"the queue grows: answers {delay_s:.1f} s later after {full_s:.0f} s"


def _margin(reading: Reading) -> str:
    worst = max(reading.measured, key=lambda m: m.p99_ns / m.limit.limit_ns)
    return f"{worst.limit.name} p99 at {worst.p99_ns / worst.limit.limit_ns:.0%} of its limit"
