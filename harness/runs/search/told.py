"""What a search writes down of the runs that it made."""

from __future__ import annotations

import math

from harness.ledger import RunRecord
from harness.ledger.search import LimitEcho, SearchRun
from harness.runs.search.offline import Pace
from harness.runs.search.reading import Measured, Reading

_NS_PER_MS = 1e6


def server_run(record: RunRecord, purpose: str, reading: Reading | None, outcome: str, reason: str) -> SearchRun:
    """A run of a search by the rate at which queries come."""
    queries = 0 if record.counts is None else record.counts.issued
    return SearchRun(
        run=str(record.id),
        kind="full" if record.probe is None else "probe",
        purpose=purpose,
        rate=_rate(record),
        came=None if reading is None else reading.rate,
        sustained=None if reading is None else reading.queue.answered,
        queries=queries,
        seconds=None if reading is None else reading.seconds,
        limits=[] if reading is None else [_limit(measured) for measured in reading.measured],
        outcome=outcome,
        reason=reason,
    )


def offline_run(record: RunRecord, purpose: str, pace: Pace | None, outcome: str, reason: str) -> SearchRun:
    """A run of a search of Offline's rate."""
    return SearchRun(
        run=str(record.id),
        kind="full" if record.probe is None else "probe",
        purpose=purpose,
        rate=_rate(record),
        came=None,
        sustained=None if pace is None else pace.answered,
        queries=0 if record.counts is None else record.counts.issued,
        seconds=None if pace is None else pace.seconds,
        limits=[],
        outcome=outcome,
        reason=reason,
    )


def _rate(record: RunRecord) -> float:
    if record.rate is None:
        raise ValueError(f"{record.id} has no rate")
    return record.rate.target_qps


def _limit(measured: Measured) -> LimitEcho:
    return LimitEcho(
        name=measured.limit.name,
        limit_ms=measured.limit.limit_ns / _NS_PER_MS,
        p50_ms=_ms(measured.p50_ns),
        p99_ms=_ms(measured.p99_ns),
        queries=measured.queries,
        over=measured.over,
    )


def _ms(ns: float) -> float | None:
    return None if math.isnan(ns) else ns / _NS_PER_MS
