"""The asyncio side of the in-process TensorRT-LLM engine: requests go in and answers come out on a thread of its own.

The LLM API hands results to whichever event loop ran when a request was made. Here one loop, on one thread, makes all
requests and awaits all results; what it learns in one turn goes to the core's thread as one batch, and an eventfd says
that there is one. Only so many requests are with the library at once: enough that its own queue never runs dry, few
enough that a data set of prompts does not become a hundred million Python integers.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import partial
from queue import SimpleQueue
from typing import Any, Final, TypeAlias

from harness.engines.base import Failure, Finish, Int32Array, Requests, Sampling, TokenEvents
from harness.engines.dropping import Line, leave
from harness.engines.trtllm_library import Library, Llm, Result
from harness.engines.trtllm_settings import request_seed, sampling_values

_MADE_PER_TURN: Final = 32
"""Requests made before the loop looks at results again: one takes some tenths of a millisecond."""
_JOIN_S: Final = 10.0
_FINISH: Final = {"stop": Finish.STOP, "length": Finish.LENGTH}


@dataclass(slots=True)
class NewTokens:
    """Tokens of one answer that came together; ``position`` is the first one's."""

    number: int
    position: int
    tokens: list[int]
    at_ns: int


@dataclass(slots=True)
class Done:
    """One whole answer, its end token taken off."""

    number: int
    tokens: list[int]
    first_ns: int
    done_ns: int
    finish: Finish


@dataclass(slots=True)
class Broken:
    """The library is of no more use."""

    error: BaseException


@dataclass(slots=True)
class _Request:
    """One request that is with the library; ``seen`` of its tokens came so far, the first at ``first_ns``.

    ``dropped``: it was aborted, and is told of no more.
    """

    number: int
    stops: tuple[int, ...]
    events: TokenEvents
    result: Result
    seen: int = 0
    first_ns: int = 0
    dropped: bool = False


Told: TypeAlias = NewTokens | Done | Failure | Broken
Check: TypeAlias = Callable[[int, Int32Array, Sampling], Failure | None]


class _Session:
    """The requests between two cancels. All but ``outbox`` belongs to the loop's thread."""

    def __init__(self) -> None:
        self.waiting: Line = deque()
        self.working: dict[int, _Request] = {}
        self.outbox: SimpleQueue[list[Told]] = SimpleQueue()
        self.told: list[Told] = []
        self.over = False


class LoopThread:
    """Owns the loop. ``submit``, ``take``, ``drop``, ``cancel`` and ``close`` are for the core's thread.

    At most ``window`` requests are with the library at once. ``check`` says of a request why it cannot be served.
    """

    def __init__(self, llm: Llm, library: Library, check: Check, window: int) -> None:
        self.descriptor = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self.end_tokens_cut = 0
        """How many answers came with their stop token, which is no part of them."""
        self._llm = llm
        self._library = library
        self._check = check
        self._window = window
        self._session = _Session()
        self._values: tuple[Sampling | None, dict[str, object]] = (None, {})
        self._loop = asyncio.new_event_loop()
        self._loop.set_exception_handler(self._unforeseen)
        self._thread = threading.Thread(target=self._run, name="TensorRT-LLM results", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        self._loop.run_forever()
        self._loop.run_until_complete(_end_other_tasks())
        self._loop.close()

    # -- for the core's thread ----------------------------------------------------------------------------------------

    def submit(self, requests: Requests) -> None:
        """Hands requests over; constant time."""
        self._loop.call_soon_threadsafe(self._enqueue, self._session, requests)

    def waiting(self) -> bool:
        """Whether :meth:`take` has something."""
        return not self._session.outbox.empty()

    def take(self) -> list[Told]:
        """One batch of what came, in order; empty where nothing did."""
        outbox = self._session.outbox
        with contextlib.suppress(BlockingIOError):
            os.eventfd_read(self.descriptor)  # before the queue is looked at: what comes later raises it again
        batch = outbox.get_nowait() if not outbox.empty() else []
        if not outbox.empty():
            os.eventfd_write(self.descriptor, 1)
        return batch

    def drop(self, numbers: Collection[int]) -> None:
        """Aborts some requests, of which nothing more is told once the loop has heard of it."""
        self._loop.call_soon_threadsafe(self._drop, self._session, numbers)

    def cancel(self) -> None:
        """Aborts all requests, of which none is told again: what they still say goes to a session that is over.

        May be called after :meth:`close`.
        """
        over, self._session = self._session, _Session()
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._abort, over)

    def close(self) -> None:
        """Ends the thread; requests are aborted. May be called again."""
        if self._thread.is_alive():
            self.cancel()
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(_JOIN_S)
            os.close(self.descriptor)

    # -- the loop's thread --------------------------------------------------------------------------------------------

    def _enqueue(self, session: _Session, requests: Requests) -> None:
        if not session.over and len(requests):
            session.waiting.append((requests, iter(range(len(requests)))))
            self._admit(session)

    def _admit(self, session: _Session) -> None:
        for _ in range(_MADE_PER_TURN):
            if not session.waiting or len(session.working) >= self._window:
                return
            requests, places = session.waiting[0]
            place = next(places, None)
            if place is None:
                session.waiting.popleft()
            else:
                self._make(session, requests, place)
        self._loop.call_soon(self._admit, session)

    def _make(self, session: _Session, requests: Requests, place: int) -> None:
        number, prompt = int(requests.numbers[place]), requests.prompt(place)
        sampling, events = requests.workload.sampling, requests.workload.token_events
        failure = self._check(number, prompt, sampling)
        if failure is not None:
            self._tell(session, failure)
            return
        try:
            result = self._llm.generate_async(
                {"prompt_token_ids": prompt.tolist()},
                sampling_params=self._parameters(sampling, number),
                streaming=events is not TokenEvents.NONE,
            )
        except (ValueError, TypeError, self._library.request_error) as error:
            self._tell(session, Failure(number, "refused", f"{type(error).__name__}: {error}"))
            return
        request = session.working[number] = _Request(number, sampling.stop_token_ids, events, result)
        task = self._loop.create_task(self._follow(session, request))
        task.add_done_callback(partial(self._ended, session, request))

    def _parameters(self, sampling: Sampling, number: int) -> object:
        if self._values[0] is not sampling:
            self._values = sampling, sampling_values(sampling)
        return self._library.sampling_params(**self._values[1], seed=request_seed(sampling.seed, number))

    async def _follow(self, session: _Session, request: _Request) -> None:
        """Awaits one answer and tells of it as its workload wants."""
        if request.events is TokenEvents.NONE:
            await request.result.aresult()
        else:
            async for output in request.result:
                if not (output.finished or request.dropped):
                    self._tell_fresh(session, request, output.outputs[0].token_ids)
        self._conclude(session, request, time.monotonic_ns())

    def _conclude(self, session: _Session, request: _Request, done_ns: int) -> None:
        if request.dropped:
            return
        answer = request.result.outputs[0]
        finish = _FINISH.get(answer.finish_reason or "")
        if finish is None:
            reason = answer.finish_reason or "unfinished"
            text = f"TensorRT-LLM ended the request after {len(answer.token_ids)} tokens: {reason}"
            self._tell(session, Failure(request.number, reason, text))
            return
        tokens = list(answer.token_ids)
        if tokens and tokens[-1] in request.stops:
            tokens.pop()
            self.end_tokens_cut += 1
            finish = Finish.STOP
        if request.events is TokenEvents.ALL:
            self._tell_fresh(session, request, tokens)
        self._tell(session, Done(request.number, tokens, request.first_ns or done_ns, done_ns, finish))

    def _tell_fresh(self, session: _Session, request: _Request, tokens: list[int]) -> None:
        """Tells what came since the last time of an answer whose tokens so far are given."""
        now_ns, seen = time.monotonic_ns(), request.seen
        there = len(tokens) - 1 if tokens and tokens[-1] in request.stops else len(tokens)
        if there <= seen:
            return
        request.first_ns, request.seen = request.first_ns or now_ns, there
        if request.events is TokenEvents.ALL:
            self._tell(session, NewTokens(request.number, seen, tokens[seen:there], now_ns))
        elif not seen:
            self._tell(session, NewTokens(request.number, 0, tokens[:1], now_ns))

    def _ended(self, session: _Session, request: _Request, task: asyncio.Task[None]) -> None:
        del session.working[request.number]
        error = None if task.cancelled() else task.exception()
        if task.cancelled():
            self._fail(session, request, "cancelled", "TensorRT-LLM gave the request up")
        elif isinstance(error, self._library.request_error):
            self._fail(session, request, "engine_error", str(error))
        elif error is not None:
            self._tell(session, Broken(error))
        self._admit(session)

    def _fail(self, session: _Session, request: _Request, kind: str, message: str) -> None:
        if not request.dropped:
            self._tell(session, Failure(request.number, kind, message))

    def _tell(self, session: _Session, told: Told) -> None:
        if not session.told:
            self._loop.call_soon(self._flush, session)
        session.told.append(told)

    def _flush(self, session: _Session) -> None:
        """Runs after all that this turn of the loop had ready: its batch is what came together."""
        batch, session.told = session.told, []
        session.outbox.put(batch)
        if not session.over:
            os.eventfd_write(self.descriptor, 1)

    def _drop(self, session: _Session, numbers: Collection[int]) -> None:
        leave(session.waiting, numbers)
        for number in numbers:
            request = session.working.get(number)
            if request is not None and not request.dropped:
                request.dropped = True
                request.result.abort()

    def _abort(self, session: _Session) -> None:
        session.over = True
        session.waiting.clear()
        for request in session.working.values():
            request.result.abort()

    def _unforeseen(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """A callback of the loop raised: nobody knows what of its requests will come of it."""
        error = context.get("exception") or RuntimeError(str(context.get("message")))
        self._tell(self._session, Broken(error))


async def _end_other_tasks() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
