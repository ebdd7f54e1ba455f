"""An engine that answers by a script: deterministic, for tests and for measuring the harness itself. Never submittable.

What it answers, how long it takes and which rows go wrong are settings. With no service time and no faults it is the
*no-op*: a :class:`Requests` of n becomes one :class:`Answers` of n without a loop over requests.
"""

from __future__ import annotations

import heapq
import os
import sys
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from harness.engines.base import (
    Answers,
    EngineInfo,
    Event,
    Failure,
    Finish,
    Int32Array,
    PromptTable,
    Requests,
    TokenEvents,
    Tokens,
    Workload,
)
from harness.engines.scripted_answers import ANY_ROW, CountingScript, RecordedScript, Script, read_answers
from harness.engines.scripted_settings import NO_FAULTS, Faults, ScriptedSettings
from harness.errors import RunBroke

EXIT_SCRIPTED_DEATH: Final = 86
UNBOUNDED_SLOTS: Final = 1 << 20
NEVER_NS: Final = 1 << 62
STOP, LENGTH = (int(Finish.STOP),), (int(Finish.LENGTH),)


@dataclass(frozen=True, slots=True)
class _Course:
    """What a workload comes to here, looked up once.

    ``at_once``: there are neither service times nor faults. ``told``: of how many tokens of an answer, at most, it is
    told as they come. ``quick``: all at once, told whole, and for any row.
    """

    workload: Workload
    script: Script
    cap: int
    faults: Faults
    at_once: bool
    told: int
    quick: bool


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
        self._course: _Course | None = None
        self._all_fit: PromptTable | None = None
        self._ready: list[Event] = []
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
        course = self._course
        if course is None or course.workload is not requests.workload:
            course = self._course_of(requests.workload)
        if course.quick and requests.prompts is self._all_fit and len(requests.rows) == 1:
            answer, address = course.script.one(requests.rows[0], course.cap)
            length, now = len(answer), (self._clock(),)
            finish = LENGTH if length >= course.cap else STOP
            self._ready.append(Answers(requests.numbers, answer, (length,), now, now, finish, address))
            return
        if not self._fits(requests, course.script):
            requests = self._without_unfit(requests, course.script)
        if course.at_once:
            self._answer(requests, course)
        else:
            self._schedule(requests, course)

    def step(self) -> list[Event]:
        """Tells all that is due."""
        events, self._ready = self._ready, []
        if self._agenda:
            events.extend(self._tell_due())
        return events

    def wait_s(self) -> float | None:
        """Until the next thing is due."""
        if self._ready:
            return 0.0
        if not self._agenda:
            return None
        return max(0, self._agenda[0][0] - self._clock()) / 1e9

    def descriptor(self) -> None:
        """Nothing comes from elsewhere."""

    def counters(self) -> dict[str, int]:
        """Nothing is counted."""
        return {}

    def drop(self, numbers: Collection[int]) -> None:
        """Forgets these requests; their places stay taken for as long as the script says."""
        self._agenda = [entry for entry in self._agenda if entry[2].number not in numbers]
        heapq.heapify(self._agenda)

    def cancel(self) -> None:
        """Forgets all requests and frees all slots."""
        self._ready = []
        self._agenda = []
        self._slots = _Slots([0] * (self._settings.slots or 0))

    def _course_of(self, workload: Workload) -> _Course:
        if self._course is not None and self._course.workload is workload:
            return self._course
        if workload.bodies:
            raise RunBroke("the scripted engine answers prompts of token ids, not chats")
        settings = self._settings
        script = self._scripts.get(workload.dataset, self._counting)
        faults = settings.faults_of(workload.dataset)
        at_once = settings.first_token.mean_s == 0 and settings.per_token.mean_s == 0 and faults is NO_FAULTS
        told = {TokenEvents.NONE: 0, TokenEvents.FIRST: 1, TokenEvents.ALL: NEVER_NS}[workload.token_events]
        quick = at_once and told <= 1 and script.rows == ANY_ROW
        self._course = _Course(workload, script, workload.sampling.max_new_tokens, faults, at_once, told, quick)
        return self._course

    def _fits(self, requests: Requests, script: Script) -> bool:
        """Whether all can be served. For the common cases no request is looked at."""
        limit = self._settings.max_total_tokens
        prompts = requests.prompts
        if prompts is not self._all_fit and prompts.flat.size >= limit:
            if len(prompts) and int(prompts.lengths.max()) >= limit:
                return False  # perhaps none of these, but then only time is lost
            self._all_fit = prompts
        return (
            script.rows == ANY_ROW or not requests.rows or 0 <= min(requests.rows) <= max(requests.rows) < script.rows
        )

    def _without_unfit(self, requests: Requests, script: Script) -> Requests:
        limit = self._settings.max_total_tokens
        fit: list[int] = []
        for i, (number, row) in enumerate(zip(requests.numbers, requests.rows, strict=True)):
            length = int(requests.prompts.lengths[requests.prompt_rows[i]])
            if length >= limit:
                message = f"the prompt of row {row} has {length} tokens; prompt and answer together may have {limit}"
                self._ready.append(Failure(number, "prompt_too_long", message))
            elif not 0 <= row < script.rows:
                message = f"no scripted answer for row {row} of {requests.workload.dataset!r}"
                self._ready.append(Failure(number, "no_such_row", message))
            else:
                fit.append(i)
        return Requests(
            requests.workload,
            [requests.numbers[i] for i in fit],
            [requests.rows[i] for i in fit],
            requests.prompts,
            [requests.prompt_rows[i] for i in fit],
        )

    def _answer(self, requests: Requests, course: _Course) -> None:
        """Tokens and answers of requests that take no time; first tokens alone would say nothing more."""
        numbers, n, now = requests.numbers, len(requests.rows), self._clock()
        if not n:
            return
        batch = course.script.many(requests.rows, course.cap)
        if course.told > 1:
            for at in range(batch.longest):
                which, tokens = batch.at(at, numbers)
                self._ready.append(Tokens(which, (at,) * len(which), tokens, now))
        times = (now,) * n
        self._ready.append(Answers(numbers, batch.tokens, batch.ends, times, times, batch.finish))

    def _schedule(self, requests: Requests, course: _Course) -> None:
        settings, faults = self._settings, course.faults
        dataset = requests.workload.dataset
        rows = np.asarray(requests.rows, np.int64)
        first_ns = settings.first_token.draw_ns(rows, f"{settings.seed}/{dataset}/first")
        gap_ns = settings.per_token.draw_ns(rows, f"{settings.seed}/{dataset}/token")
        arrived = self._clock()
        for number, row, first, gap in zip(
            requests.numbers, requests.rows, first_ns.tolist(), gap_ns.tolist(), strict=True
        ):
            running = _begin(number, row, course)
            running.gap_ns = gap
            wait = int(first + faults.slow.get(row, 0.0) * 1e9)
            service = NEVER_NS if row in faults.hang else wait + int(max(0, len(running.answer) - 1) * gap)
            running.first_due_ns = self._slots.take(arrived, service) + wait
            if row not in faults.hang and running.first_due_ns < NEVER_NS:
                self._enter(running)

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


def _begin(number: int, row: int, course: _Course) -> _Running:
    answer, _ = course.script.one(row, course.cap)
    finish = Finish.LENGTH if len(answer) >= course.cap else Finish.STOP
    shortened = course.faults.shortened(row)
    if shortened is not None:
        answer, finish = answer[:shortened], Finish.STOP
    fault = "die" if row == course.faults.die else "fail" if row in course.faults.fail else None
    return _Running(number, row, answer, finish, 0 if fault else min(course.told, len(answer)), 0, 0.0, fault)


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
