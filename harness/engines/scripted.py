"""An engine that answers by a script: deterministic, for tests and for measuring the harness itself. Never submittable.

What it answers, how long it takes and which rows go wrong are settings. With no service time and no faults it is the
*no-op*: a :class:`Requests` of n becomes one :class:`Answers` of n without a loop over requests.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Final

import numpy as np

from harness.engines.base import (
    NOT_TOLD,
    Answers,
    EngineInfo,
    Event,
    Failure,
    Finish,
    PromptTable,
    Requests,
    TokenEvents,
    Tokens,
    Workload,
)
from harness.engines.scripted_answers import ANY_ROW, CountingScript, Script
from harness.engines.scripted_chats import CountingReplies, RecordedReplies, ReplyScript, ScriptedChats
from harness.engines.scripted_files import read_script
from harness.engines.scripted_running import NEVER_NS, Running, Slots, come_to, tell, whole
from harness.engines.scripted_settings import NO_FAULTS, Faults, ScriptedSettings
from harness.events import Occupancy

UNBOUNDED_SLOTS: Final = 1 << 20
STOP, LENGTH = (int(Finish.STOP),), (int(Finish.LENGTH),)


@dataclass(frozen=True, slots=True)
class _Course:
    """What a workload comes to here, looked up once.

    ``at_once``: there are neither service times nor faults. ``told``: of how many tokens of an answer, at most, it is
    told as they come. ``quick``: all at once, told whole, and for any row. ``chats`` is None for prompts of token ids.
    """

    workload: Workload
    script: Script
    cap: int
    faults: Faults
    at_once: bool
    told: int
    quick: bool
    chats: ScriptedChats | None


class ScriptedCore:
    """The scripted engine as an :class:`~harness.engines.base.EngineCore`.

    Answers are told verbatim, so a stop token inside a script does not end it; the output cap does. ``clock`` is
    CLOCK_MONOTONIC in nanoseconds unless a test puts its own there.
    """

    def __init__(self, settings: ScriptedSettings, clock: Callable[[], int] = time.monotonic_ns) -> None:
        self._settings = settings
        self._clock = clock
        self._counting = CountingScript(settings.length, settings.vocab_size)
        self._scripts: dict[str, Script] = {}
        self._replies: dict[str, ReplyScript] = {}
        for name, path in settings.answers.items():
            script = read_script(path, settings.vocab_size)
            if isinstance(script, RecordedReplies):
                self._replies[name] = script
            else:
                self._scripts[name] = script
        self._course: _Course | None = None
        self._all_fit: PromptTable | None = None
        self._ready: list[Event] = []
        self._agenda: list[tuple[int, int, Running]] = []
        self._entries = 0
        self._slots = Slots([0] * (settings.slots or 0))

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
        if course.chats is not None:
            requests, failures = course.chats.fitting(requests)
            self._ready.extend(failures)
        elif not self._fits(requests, course.script):
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

    def gauges(self) -> Occupancy:
        """Of what the script has under way, as many run as there are slots; there is no cache."""
        under_way = len(self._agenda)
        running = min(under_way, self._settings.slots or UNBOUNDED_SLOTS)
        return Occupancy(running, under_way - running)

    def drop(self, numbers: Collection[int]) -> None:
        """Forgets these requests; their places stay taken for as long as the script says."""
        self._agenda = [entry for entry in self._agenda if entry[2].number not in numbers]
        heapq.heapify(self._agenda)

    def cancel(self) -> None:
        """Forgets all requests and frees all slots."""
        self._ready = []
        self._agenda = []
        self._slots = Slots([0] * (self._settings.slots or 0))

    def _course_of(self, workload: Workload) -> _Course:
        if self._course is not None and self._course.workload is workload:
            return self._course
        settings = self._settings
        chats = None
        if workload.bodies:
            replies = self._replies.get(workload.dataset) or CountingReplies(settings.length)
            chats = ScriptedChats(workload, replies, settings.max_total_tokens)
        script = self._scripts.get(workload.dataset, self._counting)
        faults = settings.faults_of(workload.dataset)
        at_once = settings.first_token.mean_s == 0 and settings.per_token.mean_s == 0 and faults is NO_FAULTS
        told = {TokenEvents.NONE: 0, TokenEvents.FIRST: 1, TokenEvents.ALL: NEVER_NS}[workload.token_events]
        quick = at_once and told <= 1 and script.rows == ANY_ROW and chats is None
        cap = workload.sampling.max_new_tokens
        self._course = _Course(workload, script, cap, faults, at_once, told, quick, chats)
        return self._course

    def _fits(self, requests: Requests, script: Script) -> bool:
        """Whether all can be served. For the common cases no request is looked at."""
        limit = self._settings.max_total_tokens
        prompts = requests.prompts
        if prompts is not self._all_fit and prompts.flat.size >= limit and not requests.workload.chat_prompts:
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
            if length >= limit and not requests.workload.chat_prompts:  # a chat's bytes are no tokens
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
        if course.chats is not None:
            self._ready.append(course.chats.answered(requests, now))
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

    def _enter(self, running: Running) -> None:
        self._entries += 1  # equal times are told in order of entry, and two requests are never compared
        heapq.heappush(self._agenda, (running.due_ns(), self._entries, running))

    def _tell_due(self) -> list[Event]:
        """In rounds, so that one :class:`Tokens` never holds two tokens of one answer."""
        events: list[Event] = []
        done: list[Running] = []
        now = self._clock()
        while self._agenda and self._agenda[0][0] <= now:
            due: list[Running] = []
            while self._agenda and self._agenda[0][0] <= now:
                due.append(heapq.heappop(self._agenda)[2])
            told = [running for running in due if running.told < running.to_tell]
            if told:
                events.append(tell(told, now))
            for running in due:
                if running.fault is not None:
                    events.append(come_to(running))
                elif running.told < running.to_tell or (running in told):
                    self._enter(running)
                else:
                    done.append(running)
        events.extend(whole(done, now))
        return events


def _begin(number: int, row: int, course: _Course) -> Running:
    kept, reply, prompt_tokens = course.faults.shortened(row), None, NOT_TOLD
    if course.chats is not None:
        reply, tokens, finish = course.chats.reply(row, kept)
        answer = course.chats.ids(tokens)
        (prompt_tokens,) = course.chats.prompt_tokens((row,))
    else:
        answer, _ = course.script.one(row, course.cap)
        finish = Finish.LENGTH if len(answer) >= course.cap else Finish.STOP
        if kept is not None:
            answer, finish = answer[:kept], Finish.STOP
    fault = "die" if row == course.faults.die else "fail" if row in course.faults.fail else None
    to_tell = 0 if fault else min(course.told, len(answer))
    return Running(number, row, answer, finish, to_tell, fault, reply, prompt_tokens)
