"""An engine that answers by a script: deterministic, for tests and for measuring the harness itself. Never submittable.

What it answers, how long it takes and which rows go wrong are settings. With no service time and no faults it is the
*no-op*: a :class:`Requests` of n becomes one :class:`Answers` of n without a loop over requests.
"""

from __future__ import annotations

import heapq
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

import numpy as np

from harness.engines.base import (
    Answers,
    EngineInfo,
    Event,
    Failure,
    Finish,
    Int32Array,
    Int64Array,
    Requests,
    TokenEvents,
    Tokens,
    Workload,
)
from harness.engines.scripted_settings import NO_FAULTS, Faults, ScriptedSettings, read_answers

EXIT_SCRIPTED_DEATH: Final = 86
UNBOUNDED_SLOTS: Final = 1 << 20
NEVER_NS: Final = 1 << 62


class Script(Protocol):
    """Which answer belongs to a row."""

    def __contains__(self, row: int) -> bool:
        """Whether there is an answer for this row."""

    def one(self, row: int, cap: int) -> Int32Array:
        """The first ``cap`` ids of the answer of one row; a view."""

    def many(self, rows: Int64Array, cap: int) -> tuple[Int32Array, Int64Array]:
        """The same for n rows: all ids in one new array, and where each answer ends in it."""


class CountingScript:
    """Every answer has ``length`` ids and counts up from its row, modulo the vocabulary."""

    def __init__(self, length: int, vocab_size: int) -> None:
        self._vocab_size = vocab_size
        self._length = length
        self._counted: Int32Array = np.arange(vocab_size + length, dtype=np.int64).__mod__(vocab_size).astype(np.int32)

    def __contains__(self, row: int) -> bool:
        return row >= 0

    def one(self, row: int, cap: int) -> Int32Array:
        """A view into one table: nothing is computed."""
        first = row % self._vocab_size
        return self._counted[first : first + min(self._length, cap)]

    def many(self, rows: Int64Array, cap: int) -> tuple[Int32Array, Int64Array]:
        """n equal lengths, so one gather from the table."""
        length = min(self._length, cap)
        ends = np.arange(1, len(rows) + 1, dtype=np.int64) * length
        places = (rows % self._vocab_size)[:, None] + np.arange(length)
        return self._counted[places].reshape(-1), ends


class RecordedScript:
    """Answers that were written before, as :func:`read_answers` reads them."""

    def __init__(self, tokens: Int32Array, ends: Int64Array) -> None:
        self._tokens = tokens
        self._ends = ends
        self._starts = np.concatenate((np.zeros(1, np.int64), ends[:-1])) if len(ends) else ends

    def __contains__(self, row: int) -> bool:
        return 0 <= row < len(self._ends)

    def one(self, row: int, cap: int) -> Int32Array:
        """A view into the file's array."""
        start = int(self._starts[row])
        return self._tokens[start : min(int(self._ends[row]), start + cap)]

    def many(self, rows: Int64Array, cap: int) -> tuple[Int32Array, Int64Array]:
        """A ragged gather: the place of each id is its answer's start plus its position in the answer."""
        starts = self._starts[rows]
        lengths = np.minimum(self._ends[rows] - starts, cap)
        ends = np.cumsum(lengths)
        places = np.repeat(starts - (ends - lengths), lengths) + np.arange(int(lengths.sum()))
        return self._tokens[places], ends


@dataclass(slots=True)
class _Running:
    """A request under way. ``fault`` is what it comes to instead of an answer."""

    number: int
    row: int
    answer: Int32Array
    finish: Finish
    to_tell: int
    first_due_ns: int
    gap_ns: float
    fault: str | None = None
    told: int = 0
    first_ns: int = 0

    def due_ns(self) -> int:
        """When the next thing of it is to be told: a token, or the whole."""
        last = self.told if self.told < self.to_tell else len(self.answer) - 1
        return self.first_due_ns + int(max(0, last) * self.gap_ns)


@dataclass(slots=True)
class _Slots:
    """When each of the places at which the engine works becomes free; a heap."""

    free_ns: list[int] = field(default_factory=list)

    def take(self, arrived_ns: int, service_ns: int) -> int:
        """The time at which a request that arrived then starts; its place is busy for ``service_ns`` from there."""
        if not self.free_ns:
            return arrived_ns
        start = max(arrived_ns, self.free_ns[0])
        heapq.heapreplace(self.free_ns, min(NEVER_NS, start + service_ns))
        return start


class ScriptedCore:
    """The scripted engine as an :class:`~harness.engines.base.EngineCore`.

    Answers are told verbatim, so a stop token inside a script does not end it; the output cap does. ``clock`` is
    CLOCK_MONOTONIC in nanoseconds unless a test puts its own there.
    """

    def __init__(self, settings: ScriptedSettings, clock: Callable[[], int] = time.monotonic_ns) -> None:
        self._settings = settings
        self._clock = clock
        self._counting = CountingScript(settings.length, settings.vocab_size)
        self._scripts: dict[str, Script] = {
            name: RecordedScript(*read_answers(path, settings.vocab_size)) for name, path in settings.answers.items()
        }
        self._timeless = settings.first_token.mean_s == 0 and settings.per_token.mean_s == 0
        self._at_once: list[Requests] = []
        self._failures: list[Event] = []
        self._agenda: list[tuple[int, int, _Running]] = []
        self._entries = 0
        self._slots = _Slots([0] * (settings.slots or 0))

    def info(self) -> EngineInfo:
        """A scripted engine is never submittable."""
        settings = self._settings
        return EngineInfo(
            kind="scripted",
            vocab_size=settings.vocab_size,
            max_total_tokens=settings.max_total_tokens,
            slots=settings.slots or UNBOUNDED_SLOTS,
            checkpoint=None,
            versions={"numpy": np.__version__},
            settings=settings.to_json(),
            not_submittable=("scripted engine",),
        )

    def submit(self, requests: Requests) -> None:
        """Takes them; see :class:`~harness.engines.base.EngineCore`."""
        if not self._fits(requests):
            requests = self._without_unfit(requests)
        faults = self._settings.faults_of(requests.workload.dataset)
        if self._timeless and faults is NO_FAULTS:
            self._at_once.append(requests)
        else:
            self._schedule(requests, faults)

    def step(self) -> list[Event]:
        """Tells all that is due."""
        events = self._failures
        self._failures = []
        if self._at_once:
            taken, self._at_once = self._at_once, []
            for requests in _joined(taken):
                events.extend(self._answer(requests))
        if self._agenda:
            events.extend(self._tell_due())
        return events

    def wait_s(self) -> float | None:
        """Until the next thing is due."""
        if self._at_once or self._failures:
            return 0.0
        if not self._agenda:
            return None
        return max(0, self._agenda[0][0] - self._clock()) / 1e9

    def cancel(self) -> None:
        """Forgets all requests and frees all slots."""
        self._at_once = []
        self._failures = []
        self._agenda = []
        self._slots = _Slots([0] * (self._settings.slots or 0))

    def _script(self, dataset: str) -> Script:
        return self._scripts.get(dataset, self._counting)

    def _fits(self, requests: Requests) -> bool:
        """Whether all can be served. The common case is decided without a look at each request."""
        limit = self._settings.max_total_tokens
        if requests.prompts.flat.size >= limit and any(
            requests.prompts.lengths[row] >= limit for row in requests.prompt_rows
        ):
            return False
        script = self._script(requests.workload.dataset)
        return all(row in script for row in requests.rows)

    def _without_unfit(self, requests: Requests) -> Requests:
        script = self._script(requests.workload.dataset)
        limit = self._settings.max_total_tokens
        fit: list[int] = []
        for i, (number, row) in enumerate(zip(requests.numbers, requests.rows, strict=True)):
            length = int(requests.prompts.lengths[requests.prompt_rows[i]])
            if length >= limit:
                message = f"the prompt of row {row} has {length} tokens; prompt and answer together may have {limit}"
                self._failures.append(Failure(number, "prompt_too_long", message))
            elif row not in script:
                message = f"no scripted answer for row {row} of {requests.workload.dataset!r}"
                self._failures.append(Failure(number, "no_such_row", message))
            else:
                fit.append(i)
        return Requests(
            requests.workload,
            [requests.numbers[i] for i in fit],
            [requests.rows[i] for i in fit],
            requests.prompts,
            [requests.prompt_rows[i] for i in fit],
        )

    def _answer(self, requests: Requests) -> Iterator[Event]:
        """Tokens and answers of requests that take no time."""
        workload = requests.workload
        cap = workload.sampling.max_new_tokens
        script = self._script(workload.dataset)
        now = self._clock()
        if len(requests) == 1:
            answer = script.one(requests.rows[0], cap)
            if len(answer) and workload.token_events is TokenEvents.FIRST:
                yield Tokens(requests.numbers, (0,), answer[:1], now)
            elif workload.token_events is TokenEvents.ALL:
                for at in range(len(answer)):
                    yield Tokens(requests.numbers, (at,), answer[at : at + 1], now)
            finish = Finish.LENGTH if len(answer) >= cap else Finish.STOP
            yield Answers(requests.numbers, answer, (len(answer),), (now,), (now,), (finish,))
        elif len(requests):
            yield from _answer_many(requests, *script.many(np.asarray(requests.rows, np.int64), cap), now)

    def _schedule(self, requests: Requests, faults: Faults) -> None:
        settings = self._settings
        dataset = requests.workload.dataset
        rows = np.asarray(requests.rows, np.int64)
        first_ns = settings.first_token.draw_ns(rows, f"{settings.seed}/{dataset}/first")
        gap_ns = settings.per_token.draw_ns(rows, f"{settings.seed}/{dataset}/token")
        arrived = self._clock()
        for number, row, first, gap in zip(
            requests.numbers, requests.rows, first_ns.tolist(), gap_ns.tolist(), strict=True
        ):
            running = self._begin(number, row, requests.workload, faults)
            running.gap_ns = gap
            wait = int(first + faults.slow.get(row, 0.0) * 1e9)
            service = NEVER_NS if row in faults.hang else wait + int(max(0, len(running.answer) - 1) * gap)
            running.first_due_ns = self._slots.take(arrived, service) + wait
            if row not in faults.hang and running.first_due_ns < NEVER_NS:
                self._enter(running)

    def _begin(self, number: int, row: int, workload: Workload, faults: Faults) -> _Running:
        cap = workload.sampling.max_new_tokens
        answer = self._script(workload.dataset).one(row, cap)
        finish = Finish.LENGTH if len(answer) >= cap else Finish.STOP
        shortened = faults.shortened(row)
        if shortened is not None:
            answer, finish = answer[:shortened], Finish.STOP
        told = {TokenEvents.NONE: 0, TokenEvents.FIRST: min(1, len(answer)), TokenEvents.ALL: len(answer)}
        fault = "die" if row == faults.die else "fail" if row in faults.fail else None
        to_tell = 0 if fault else told[workload.token_events]
        return _Running(number, row, answer, finish, to_tell, 0, 0.0, fault)

    def _enter(self, running: _Running) -> None:
        self._entries += 1  # equal times are told in order of entry, and two requests are never compared
        heapq.heappush(self._agenda, (running.due_ns(), self._entries, running))

    def _tell_due(self) -> list[Event]:
        """In rounds, so that one :class:`Tokens` never holds two tokens of one answer."""
        events: list[Event] = []
        done: list[_Running] = []
        now = self._clock()
        while self._agenda and self._agenda[0][0] <= now:
            due: list[_Running] = []
            while self._agenda and self._agenda[0][0] <= now:
                due.append(heapq.heappop(self._agenda)[2])
            told = [running for running in due if running.told < running.to_tell]
            if told:
                events.append(_tell(told, now))
            for running in due:
                if running.fault is not None:
                    events.append(_come_to(running))
                elif running.told < running.to_tell or (running in told):
                    self._enter(running)
                else:
                    done.append(running)
        if done:
            events.append(_answers(done, now))
        return events


def _joined(taken: list[Requests]) -> Iterator[Requests]:
    """Neighbours of one workload as one, so that many small requests cost as little as one large one."""
    first = 0
    for i in range(1, len(taken) + 1):
        if i < len(taken) and taken[i].workload is taken[first].workload:
            continue
        group = taken[first:i]
        first = i
        if len(group) == 1:
            yield group[0]
        else:
            numbers = [number for requests in group for number in requests.numbers]
            rows = [row for requests in group for row in requests.rows]
            yield Requests(group[0].workload, numbers, rows, group[0].prompts, ())


def _answer_many(requests: Requests, tokens: Int32Array, ends: Int64Array, now: int) -> Iterator[Event]:
    workload = requests.workload
    lengths = np.diff(ends, prepend=0)
    told = {TokenEvents.NONE: 0, TokenEvents.FIRST: 1, TokenEvents.ALL: int(lengths.max())}[workload.token_events]
    for at in range(told):
        which = np.flatnonzero(lengths > at)
        numbers = requests.numbers if len(which) == len(requests) else [requests.numbers[i] for i in which.tolist()]
        places = (ends - lengths)[which] + at
        yield Tokens(numbers, [at] * len(which), tokens[places], now)
    finish = np.where(lengths >= workload.sampling.max_new_tokens, int(Finish.LENGTH), int(Finish.STOP))
    times = [now] * len(requests)
    yield Answers(requests.numbers, tokens, ends.tolist(), times, times, finish.tolist())


def _tell(told: Sequence[_Running], now: int) -> Tokens:
    positions = [running.told for running in told]
    tokens = np.fromiter((running.answer[running.told] for running in told), np.int32, len(told))
    for running in told:
        running.first_ns = running.first_ns or now
        running.told += 1
    return Tokens([running.number for running in told], positions, tokens, now)


def _answers(done: Sequence[_Running], now: int) -> Answers:
    """A first token that nobody asked to be told was there when it was due."""
    return Answers(
        numbers=[running.number for running in done],
        tokens=np.concatenate([running.answer for running in done]),
        ends=np.cumsum([len(running.answer) for running in done]).tolist(),
        first_ns=[running.first_ns or running.first_due_ns for running in done],
        done_ns=[now] * len(done),
        finish=[running.finish for running in done],
    )


def _come_to(running: _Running) -> Failure:
    if running.fault == "die":
        sys.stderr.write(f"scripted fault: the engine dies at row {running.row}\n")
        sys.stderr.flush()
        os._exit(EXIT_SCRIPTED_DEATH)  # as a crash would: nothing is told, nothing is closed
    return Failure(running.number, "scripted", f"scripted fault: row {running.row} fails")
