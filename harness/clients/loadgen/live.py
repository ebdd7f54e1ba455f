"""What a leg tells while it runs: rates of the last seconds, percentiles of the latencies of all answers so far.

Now and then it looks at what the notes grew by, and at nothing twice. Of a sample that was answered nothing is kept
but its count in a histogram, so neither the time of a look nor the memory grows with the length of the run.
"""

from __future__ import annotations

import math
import time
from array import array
from collections.abc import Sequence
from typing import Final

import numpy as np

from harness.clients.loadgen.record import Record
from harness.clients.loadgen.turn_record import TurnRecord
from harness.clients.rates import Rates
from harness.engines.base import NOT_TOLD
from harness.ledger.samples import Int64

GROWTH: Final = 1.02
"""A bucket's upper bound over its lower one. Its middle is told, which is wrong by half of it at most: 1 %."""
LOWEST_NS: Final = 1_000
HIGHEST_NS: Final = 10**15

_BUCKETS: Final = math.ceil(math.log(HIGHEST_NS / LOWEST_NS, GROWTH))
_BUCKETS_AN_E: Final = 1 / math.log(GROWTH)
_OFFLINE: Final = "Offline"
_SHARES: Final = {"p50_ns": 0.5, "p99_ns": 0.99}


class Histogram:
    """Counts of durations in buckets spaced evenly on a logarithmic scale, from 1 us to eleven days."""

    def __init__(self) -> None:
        self._counts = np.zeros(_BUCKETS, np.int64)
        self.count = 0

    def add(self, durations_ns: Int64) -> None:
        """Counts durations; those beyond the scale are counted at its ends."""
        if not len(durations_ns):
            return
        within = np.clip(durations_ns, LOWEST_NS, HIGHEST_NS - 1)
        places = (np.log(within / LOWEST_NS) * _BUCKETS_AN_E).astype(np.int64)
        self._counts += np.bincount(np.minimum(places, _BUCKETS - 1), minlength=_BUCKETS)
        self.count += len(durations_ns)

    def percentiles(self, shares: Sequence[float]) -> list[float]:
        """For each share the duration in ns that it of all are not above, within 1 %. ValueError where nothing was
        counted.
        """
        if not self.count:
            raise ValueError("a percentile of nothing")
        ranks = [max(1, math.ceil(share * self.count)) for share in shares]
        places = np.searchsorted(np.cumsum(self._counts), ranks)
        return [LOWEST_NS * GROWTH ** (place + 0.5) for place in places.tolist()]


class Grown:
    """What a flat array of notes, ``width`` integers each, grew by since it was last looked at.

    Notes are appended whole, by another thread.
    """

    def __init__(self, notes: array[int], width: int) -> None:
        self._notes = notes
        self._width = width
        self._at = 0

    def columns(self) -> Int64:
        """The new notes as columns (width, n): a copy, for an array of which there is a view cannot grow."""
        fresh = self._notes[self._at :]
        self._at += len(fresh)
        columns: Int64 = np.frombuffer(fresh.tobytes(), np.int64).reshape(-1, self._width).T
        return columns


class Latencies:
    """TTFT, TPOT and latency of requests, matched by their ids; those outstanding are all that is kept of them.

    A first token that nobody told by itself came with the answer.
    """

    def __init__(self, prefix: str = "", *, first_tokens: bool = True) -> None:
        self._names = {name: Histogram() for name in ("TTFT", "TPOT", "latency")}
        self._prefix = prefix
        self._first_tokens = first_tokens
        self._ids = np.zeros(0, np.int64)
        """Of what is outstanding, in ascending order; ``_issued_ns`` and ``_first_ns`` (0: not yet) are as long."""
        self._issued_ns = self._ids
        self._first_ns = self._ids

    def issue(self, ids: Int64, at_ns: Int64) -> None:
        """Requests that were issued."""
        if not len(ids):
            return
        ids = np.concatenate((self._ids, ids))
        order = np.argsort(ids, kind="stable")  # which makes use of it that most are in order
        self._ids = ids[order]
        self._issued_ns = np.concatenate((self._issued_ns, at_ns))[order]
        self._first_ns = np.concatenate((self._first_ns, np.zeros(len(at_ns), np.int64)))[order]

    def first(self, ids: Int64, at_ns: Int64) -> None:
        """First tokens that were told before the answer."""
        places, known = self._places(ids)
        at_ns = at_ns[known]
        self._first_ns[places] = at_ns
        self._names["TTFT"].add(at_ns - self._issued_ns[places])

    def done(self, ids: Int64, first_ns: Int64, at_ns: Int64, tokens: Int64) -> None:
        """Answers. ``first_ns`` counts where no first token was told before; ``tokens`` may be NOT_TOLD."""
        places, known = self._places(ids)
        first_ns, at_ns, tokens = first_ns[known], at_ns[known], tokens[known]
        issued_ns, told_ns = self._issued_ns[places], self._first_ns[places]
        self._names["latency"].add(at_ns - issued_ns)
        if self._first_tokens:
            untold = told_ns == 0
            self._names["TTFT"].add((first_ns - issued_ns)[untold])
            several = tokens > 1
            took_ns = at_ns - np.where(untold, first_ns, told_ns)
            self._names["TPOT"].add(took_ns[several] // (tokens[several] - 1))
        self._forget(places)

    def fail(self, ids: Int64) -> None:
        """Requests that will have no answer; nothing of them is counted."""
        self._forget(self._places(ids)[0])

    def told(self) -> list[dict[str, object]]:
        """What is known of each, as :class:`~harness.events.Running` has it."""
        return [
            {"name": self._prefix + name} | dict(zip(_SHARES, of.percentiles(tuple(_SHARES.values())), strict=True))
            for name, of in self._names.items()
            if of.count
        ]

    def _places(self, ids: Int64) -> tuple[Int64, np.ndarray[tuple[int], np.dtype[np.bool_]]]:
        """Where those of the ids stand that are outstanding, and which these are."""
        if not len(self._ids):
            return np.zeros(0, np.int64), np.zeros(len(ids), np.bool_)
        places = np.minimum(np.searchsorted(self._ids, ids), len(self._ids) - 1)
        known = self._ids[places] == ids
        return places[known], known

    def _forget(self, places: Int64) -> None:
        if len(places):
            left = np.ones(len(self._ids), np.bool_)
            left[places] = False
            self._ids, self._issued_ns, self._first_ns = self._ids[left], self._issued_ns[left], self._first_ns[left]


class SampleFigures:
    """Reads the notes of a SUT as they grow. Only in scenarios that are ``timed`` latencies are looked at."""

    def __init__(self, record: Record, *, timed: bool) -> None:
        self._record = record
        self._latencies = Latencies(first_tokens=record.tells_first_tokens) if timed else None
        self._issued, self._firsts, self._dones = (
            Grown(record.issued, 3),
            Grown(record.firsts, 2),
            Grown(record.dones, 6),
        )
        self._issued_many = self._dones_many = self._failures = 0
        self.tokens: int | None = None
        """Of all answers so far; None as long as none has told any."""

    def look(self) -> list[dict[str, object]]:
        """Takes in what came since the last look, and tells the latencies."""
        dones, many = self._dones.columns(), self._record.dones_many[self._dones_many :]
        self._dones_many += len(many)
        self._count_tokens(dones[1])
        for _, tokens, *_ in many:
            self.tokens = (self.tokens or 0) + sum(tokens)
        if self._latencies is None:
            return []
        firsts = self._firsts.columns()
        failures = self._record.failures[self._failures :]
        self._failures += len(failures)
        failed = np.array([failure.number for failure in failures], np.int64)
        # What was issued last: nothing is told of a sample whose issue is not noted.
        self._issue(self._latencies)
        self._latencies.fail(failed)
        self._latencies.first(firsts[0], firsts[1])
        self._latencies.done(dones[0], dones[5], dones[5], dones[1])
        for ids, tokens, *_, at_ns in many:
            times = np.full(len(ids), at_ns, np.int64)
            self._latencies.done(np.asarray(ids, np.int64), times, times, np.asarray(tokens, np.int64))
        return self._latencies.told()

    def _count_tokens(self, tokens: Int64) -> None:
        told = tokens[tokens != NOT_TOLD]
        if len(told):
            self.tokens = (self.tokens or 0) + int(told.sum())

    def _issue(self, latencies: Latencies) -> None:
        singly = self._issued.columns()
        latencies.issue(singly[0], singly[2])
        many = self._record.issued_many[self._issued_many :]
        self._issued_many += len(many)
        for ids, _, at_ns in many:
            latencies.issue(np.asarray(ids, np.int64), np.full(len(ids), at_ns, np.int64))


class TurnFigures:
    """Reads the notes of turns as they grow; each answer's own says when its first token came."""

    def __init__(self, record: TurnRecord) -> None:
        issued, answered, failed = record.notes
        self._issued, self._answered, self._failed = Grown(issued, 3), Grown(answered, 7), Grown(failed, 1)
        self._latencies = Latencies("turn ")
        self._next = 0
        self.answered = 0
        self.tokens: int | None = None
        """Of these answers; None as long as none has told any."""

    def look(self) -> list[dict[str, object]]:
        """Takes in what came since the last look, and tells the latencies."""
        answered, failed, issued = self._answered.columns(), self._failed.columns(), self._issued.columns()
        count = issued.shape[1]
        self._latencies.issue(np.arange(self._next, self._next + count), issued[2])
        self._next += count
        self._latencies.fail(failed[0])
        self.answered += answered.shape[1]
        number, first_ns, done_ns, tokens = answered[:4]
        self._latencies.done(number, first_ns, done_ns, tokens)
        told = tokens[tokens != NOT_TOLD]
        if len(told):
            self.tokens = (self.tokens or 0) + int(told.sum())
        return self._latencies.told()


class LiveFigures:
    """The running figures of a leg, for one line a second. All calls come from one thread."""

    def __init__(self, record: Record, turns: TurnRecord | None, *, scenario: str) -> None:
        self._record = record
        self._samples = SampleFigures(record, timed=scenario != _OFFLINE)
        self._turns = None if turns is None else TurnFigures(turns)
        self._rates = Rates(time.monotonic_ns())

    def look(self, completed: int) -> dict[str, object]:
        """What :class:`~harness.events.LegProgress` tells of samples, ``completed`` of which came back."""
        failed = len(self._record.failures)
        running = self._samples.look()
        tokens = self._samples.tokens
        told: dict[str, object] = {"issued": self._record.issued_count, "completed": completed, "failed": failed}
        answered = completed - failed
        if self._turns is not None:
            running += self._turns.look()
            tokens = self._turns.tokens
            answered = told["turns"] = self._turns.answered
        pace = self._rates.pace(time.monotonic_ns(), answered, tokens)
        told |= {"samples_per_s": pace.answers_per_s, "tokens_per_s": pace.tokens_per_s}
        return told | {"running": running}
