"""Readings and probes of a search that never were."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from harness.ledger.samples import Int64, SampleState
from harness.runs.search.constraint import Judged, Outcome
from harness.runs.search.limits import TPOT, TTFT, Limit
from harness.runs.search.reading import Measured, Queue, Reading
from harness.runs.search.steps import Told

LIMIT = Limit(TTFT, 3e9, strict=True)
TOKENS = Limit(TPOT, 80e6, strict=True)


def measured(queries: int = 2000, over: int = 0, *, bursts: int | None = None, limit: Limit = LIMIT) -> Measured:
    """Of so many queries so many over the limit, each by itself unless said otherwise."""
    return Measured(limit, queries, over, over if bursts is None else bursts, limit.limit_ns / 10, limit.limit_ns / 2)


def queue(rate: float = 10.0, *, answered: float | None = None, queries: int = 2000) -> Queue:
    """A queue at which queries come at a rate, and are answered as fast or not."""
    answered = rate if answered is None else answered
    return Queue(round(queries * (1 - answered / rate)), math.sqrt(queries), rate, answered)


def reading(*parts: Measured, failed: int = 0, **of_queue: Any) -> Reading:
    """A probe of 3000 queries."""
    return Reading(3000, failed, 100.0, 1e9, parts or (measured(),), queue(**of_queue))


def told(rate: float, outcome: str, *, over: int = 0, answered: float | None = None) -> Told:
    """A probe at a rate, and what it came to: ``pass``, ``fail``, or undecided and ``leans`` to one of them."""
    word, _, leaning = outcome.partition(" ")
    judged = Judged(Outcome(word), (leaning or word) == "pass", f"it was {outcome}")
    return Told(rate, judged, reading(measured(over=over), rate=rate, answered=answered))


def columns(issued_s: np.ndarray, ttft_s: np.ndarray, rest_s: float = 0.014, **states: list[int]) -> dict[str, Int64]:
    """samples.arrow's columns of answers of eight tokens; ``failed`` and ``outstanding`` are places of others."""
    state = np.full(len(issued_s), int(SampleState.ANSWERED))
    first = ((issued_s + ttft_s) * 1e9).astype(np.int64)
    done = first + int(rest_s * 1e9)
    tokens = np.full(len(issued_s), 8)
    for name, places in states.items():
        state[places] = SampleState[name.upper()]
        for column in (first, done, tokens):
            column[places] = -1
    return {
        "issued_ns": (issued_s * 1e9).astype(np.int64),
        "first_token_ns": first,
        "done_ns": done,
        "answer_tokens": tokens,
        "state": state,
    }
