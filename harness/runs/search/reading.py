"""What the samples of a run say of its rate: how many were over a limit, and whether the queue grew."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from harness.ledger.sample_times import AnswerTimes, at_share
from harness.ledger.samples import Int64, SampleState
from harness.runs.search.limits import PERCENTILE, TPOT, TTFT, Limit

FILLING: Final = 1 / 3
"""The share of a run that is not judged: meanwhile the queue and the engine's batches fill."""
_NS_PER_S: Final = 1e9

Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Measured:
    """How a limited latency lies in the judged part of a run: ``over`` of ``queries`` break the limit, in ``bursts`` of
    one after the other.
    """

    limit: Limit
    queries: int
    over: int
    bursts: int
    p50_ns: float
    p99_ns: float

    def __post_init__(self) -> None:
        if not 0 <= self.over <= self.queries or not min(1, self.over) <= self.bursts <= self.over:
            raise ValueError(f"{self.over} over the limit, of {self.queries}, in {self.bursts} bursts")

    @property
    def share(self) -> float:
        """The share over the limit; 1 where nothing was measured."""
        return self.over / self.queries if self.queries else 1.0


@dataclass(frozen=True, slots=True)
class Queue:
    """How the queue stood in the judged part of a run. Rates are in queries a second.

    ``grew`` is how many more were unanswered at its end than at its beginning, ``noise`` how many that may be by chance
    where arrivals are random and the queue is as long at both ends: the root of the arrivals. ``came`` and ``answered``
    are the rates of arrivals and of ends.
    """

    grew: int
    noise: float
    came: float
    answered: float

    @property
    def sigmas(self) -> float:
        """How far from chance the growth is."""
        return self.grew / self.noise if self.noise else 0.0

    @property
    def lag(self) -> float:
        """Seconds by which answers come later with each second of the run."""
        return max(0.0, self.came - self.answered) / self.answered if self.answered else math.inf


@dataclass(frozen=True, slots=True)
class Reading:
    """A run of ``queries`` in ``seconds``. What is judged of it is ``measured`` and ``queue``."""

    queries: int
    failed: int
    seconds: float
    latency_p50_ns: float
    measured: tuple[Measured, ...]
    queue: Queue

    @property
    def rate(self) -> float:
        """How many came a second in the judged part: LoadGen's arrivals are random, and not quite what was asked."""
        return self.queue.came

    @property
    def worst(self) -> Measured | None:
        """The limit of which the largest share is over, of equal ones that which its p99 comes nearest."""
        return max(self.measured, key=lambda m: (m.share, m.p99_ns / m.limit.limit_ns), default=None)


def read(columns: Mapping[str, Int64], limits: Sequence[Limit], filling: float = FILLING) -> Reading:
    """The reading of samples.arrow's columns: what came after the share ``filling`` of the run is judged.

    ValueError where there are fewer than two samples.
    """
    issued = columns["issued_ns"]
    if len(issued) < 2:
        raise ValueError(f"{len(issued)} samples")
    begin, end = int(issued.min()), int(issued.max())
    settled = begin + (end - begin) * filling
    done = np.sort(columns["done_ns"][columns["state"] == SampleState.ANSWERED])
    latency = np.sort(AnswerTimes.of(columns).latency_ns)
    judged = AnswerTimes.of({name: column[issued >= settled] for name, column in columns.items()})
    # Of a run that was cut short, what nobody answered is over every limit that its waiting has passed already.
    waiting = issued[columns["state"] == SampleState.OUTSTANDING]
    return Reading(
        queries=len(issued),
        failed=int((columns["state"] == SampleState.FAILED).sum()),
        seconds=(max(end, int(done[-1]) if len(done) else end) - begin) / _NS_PER_S,
        latency_p50_ns=at_share(latency, 0.5) if len(latency) else math.inf,
        measured=tuple(_measured(judged, limit, end - waiting[waiting >= settled]) for limit in limits),
        queue=_queue(issued, done, settled, end),
    )


def _measured(answers: AnswerTimes, limit: Limit, waited: npt.NDArray[Any]) -> Measured:
    values = _values(answers, limit.name)
    over = values >= limit.limit_ns if limit.strict else values > limit.limit_ns
    late = int((waited > limit.limit_ns).sum()) if limit.name != TPOT else 0
    bursts = int(over[:1].sum() + (over[1:] & ~over[:-1]).sum())
    values = np.sort(values)
    return Measured(
        limit,
        queries=len(values) + late,
        over=int(over.sum()) + late,
        bursts=bursts + min(1, late),
        p50_ns=at_share(values, 0.5) if len(values) else math.nan,
        p99_ns=at_share(values, PERCENTILE) if len(values) else math.nan,
    )


def _values(answers: AnswerTimes, name: str) -> npt.NDArray[Any]:
    if name == TTFT:
        return answers.ttft_ns
    return answers.tpot_ns if name == TPOT else answers.latency_ns


def _queue(issued: Int64, done: Int64, begin: float, end: float) -> Queue:
    """The queue from ``begin`` to ``end``; ``done`` is sorted."""
    came = int(((issued > begin) & (issued <= end)).sum())
    answered = int(np.searchsorted(done, end, "right") - np.searchsorted(done, begin, "right"))
    seconds = max(1.0, end - begin) / _NS_PER_S
    return Queue(came - answered, math.sqrt(came), came / seconds, answered / seconds)
