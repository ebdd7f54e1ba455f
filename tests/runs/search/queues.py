"""A queue with several places and fixed service times, by discrete events: what a scripted engine is, without waiting.

Arrivals are LoadGen's kind: one unrolled sequence of exponential gaps for each seed, scaled by the rate.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from harness.ledger.samples import Int64, SampleState
from harness.rules import early_stopping
from harness.runs.search.constraint import judge
from harness.runs.search.legs import fewest_queries
from harness.runs.search.limits import PERCENTILE, TTFT, Limit
from harness.runs.search.reading import read
from harness.runs.search.steps import AskFull, AskProbe, Confirmed, Found, NoneFound, Settings, Told
from harness.runs.search.strategy import Search

ANSWER_TOKENS = 8


@dataclass(frozen=True)
class Queue:
    """``places`` serve for ``service_s`` each; the first token is there ``first_s`` after a request was taken."""

    places: int
    service_s: float
    first_s: float

    @property
    def capacity(self) -> float:
        """Requests a second that it can answer at most."""
        return self.places / self.service_s

    def ttft_s(self, arrivals: np.ndarray) -> np.ndarray:
        """Of requests that arrive then. With fixed service times, a request starts when the one ``places`` before it
        has ended, or when it arrives; within every ``places``-th request that is a running maximum.
        """
        starts = np.empty(len(arrivals))
        for place in range(min(self.places, len(arrivals))):
            own = arrivals[place :: self.places]
            busy = np.arange(len(own)) * self.service_s
            starts[place :: self.places] = np.maximum.accumulate(own - busy) + busy
        return starts - arrivals + self.first_s

    def columns(self, arrivals: np.ndarray) -> dict[str, Int64]:
        """What samples.arrow would have of them."""
        first = arrivals + self.ttft_s(arrivals)
        times = {
            "issued_ns": arrivals,
            "first_token_ns": first,
            "done_ns": first + self.service_s - self.first_s,
        }
        n = len(arrivals)
        return {name: (value * 1e9).astype(np.int64) for name, value in times.items()} | {
            "answer_tokens": np.full(n, ANSWER_TOKENS),
            "state": np.full(n, int(SampleState.ANSWERED)),
        }


def arrivals(rate: float, queries: int, seed: int) -> np.ndarray:
    """When LoadGen would hand them over, in seconds."""
    return np.cumsum(np.random.default_rng(seed).exponential(size=queries)) / rate


def highest_rate(queue: Queue, limit_s: float, queries: int = 2_000_000) -> float:
    """The rate at which one in a hundred of very many first tokens is over a limit, by bisection.

    One long sequence of arrivals, whose mean gap is made exactly one; the queue is full before any is counted.
    """
    gaps = np.random.default_rng(20_261_201).exponential(size=queries)
    unit = np.cumsum(gaps * (queries / gaps.sum()))
    low, high = 0.3 * queue.capacity, queue.capacity
    while high / low > 1.0001:
        rate = math.sqrt(low * high)
        over = (queue.ttft_s(unit / rate) >= limit_s)[queries // 10 :].mean()
        low, high = (low, rate) if over > 1 - PERCENTILE else (rate, high)
    return low


@dataclass(frozen=True)
class Simulated:
    """A search on such a queue, with LoadGen's verdict on its full runs."""

    queue: Queue
    limit_s: float
    probe_s: float
    full_s: float = 600.0

    @property
    def limits(self) -> tuple[Limit, ...]:
        return (Limit(TTFT, self.limit_s * 1e9, strict=True),)

    def search(self, guess: float, seed: int) -> tuple[Found | NoneFound, Search]:
        """The end of a search, and all that it was told."""
        queries = int(guess * self.full_s)
        share = max(early_stopping.allowed_over(queries, PERCENTILE), 1) / queries
        state = Search(guess, Settings(share=share))
        while True:
            step = state.step()
            if isinstance(step, AskProbe):
                state = state.told(self.probe(step.rate, seed))
            elif isinstance(step, AskFull):
                state = state.confirmed(self.full(step.rate, seed))
            else:
                return step, state

    def probe(self, rate: float, seed: int) -> Told:
        queries = max(math.ceil(rate * self.probe_s), fewest_queries())
        reading = read(self.queue.columns(arrivals(rate, queries, seed)), self.limits)
        return Told(rate, judge(reading, self.full_s), reading)

    def full(self, rate: float, seed: int) -> Confirmed:
        at = arrivals(rate, math.ceil(rate * self.full_s), seed)
        over = int((self.queue.ttft_s(at) >= self.limit_s).sum())
        valid = early_stopping.passes(len(at), over, PERCENTILE)
        return Confirmed(
            rate, valid, why="too many over the limit", reading=read(self.queue.columns(at), self.limits, 0.0)
        )
