"""Between the event loop that serves and the engine's process: requests go in, pieces of answers come out.

One thread polls the engine and hands all that a poll brought to the loop in one call, so what a step of the engine
tells of thirty answers costs the loop one wake-up.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Final

from harness.engines.base import (
    Answers,
    Engine,
    Event,
    Failure,
    Finish,
    PromptTable,
    Requests,
    Sampling,
    TokenEvents,
    Tokens,
    Workload,
)
from harness.errors import EngineDied

DATASET: Final = "serve"
"""What a scripted engine knows this server's requests by."""
POLL_S: Final = 60.0
FINISH: Final = {int(Finish.STOP): "stop", int(Finish.LENGTH): "length", int(Finish.TOOL_CALLS): "tool_calls"}


class GenerationFailed(Exception):
    """There will be no (more of the) answer; the message says why."""


@dataclass(frozen=True, slots=True)
class Piece:
    """The next tokens of an answer. ``count`` is how many there are with these; ``finish`` is set in the last."""

    tokens: list[int]
    count: int
    finish: str | None


class Generation:
    """One answer under way; iterate over its pieces once."""

    def __init__(self, number: int, prompt_tokens: int, cap: int, interval: int | None) -> None:
        """``interval`` None: the answer comes in one piece."""
        self.number = number
        self.prompt_tokens = prompt_tokens
        self._cap = cap
        self._interval = interval
        self._pieces: asyncio.Queue[Piece | GenerationFailed] = asyncio.Queue()
        self._held: list[int] = []
        self._count = 0

    async def __aiter__(self) -> AsyncIterator[Piece]:
        while True:
            piece = await self._pieces.get()
            if isinstance(piece, GenerationFailed):
                raise piece
            yield piece
            if piece.finish is not None:
                return

    def hear(self, token: int) -> None:
        """One more token. It goes out with those before it where it is the first, or every n-th.

        The last that the cap allows goes out with the end, which comes at once.
        """
        self._held.append(token)
        self._count += 1
        due = self._interval is not None and (self._count == 1 or self._count % self._interval == 0)
        if due and self._count < self._cap:
            self._put(None)

    def end(self, tokens: list[int], finish: str) -> None:
        """The whole answer; what was not told of it goes out. Where a stop token ended it, that may be nothing."""
        self._held += tokens[self._count :]
        self._count = len(tokens)
        self._put(finish)

    def fail(self, message: str) -> None:
        """Nothing more comes."""
        self._pieces.put_nowait(GenerationFailed(message))

    def _put(self, finish: str | None) -> None:
        self._pieces.put_nowait(Piece(self._held, self._count, finish))
        self._held = []


class Bridge:
    """Puts an engine behind an event loop. All methods are the loop's, but for what the polling thread does.

    ``on_death`` is called once, in the loop, when the engine is found dead.
    """

    def __init__(self, engine: Engine, *, stream_interval: int, on_death: Callable[[], None]) -> None:
        self._engine = engine
        self._interval = stream_interval
        self._on_death = on_death
        self._loop = asyncio.get_running_loop()
        self._under_way: dict[int, Generation] = {}
        self._numbers = 0
        self._closing = False
        self._thread = threading.Thread(target=self._poll, name="engine")
        self.completed = 0
        self.death: EngineDied | None = None
        self._thread.start()

    @property
    def outstanding(self) -> int:
        """How many answers are under way or wait."""
        return len(self._under_way)

    def generate(self, prompt: list[int], sampling: Sampling, *, row: int, streamed: bool) -> Generation:
        """Starts an answer; ``row`` is what a scripted engine answers by. Raises GenerationFailed for a dead engine."""
        if self.death is not None:
            raise GenerationFailed(self.death.what)
        number = self._numbers
        self._numbers += 1
        generation = Generation(number, len(prompt), sampling.max_new_tokens, self._interval if streamed else None)
        self._under_way[number] = generation
        workload = Workload(DATASET, sampling, TokenEvents.ALL if streamed else TokenEvents.NONE)
        self._engine.submit(Requests(workload, (number,), (row,), PromptTable.from_lists([prompt]), (0,)))
        return generation

    def drop(self, generation: Generation) -> None:
        """Forgets one whose client is gone: the engine still ends it, and nobody is told."""
        self._under_way.pop(generation.number, None)

    def abandon(self, message: str) -> None:
        """Fails all that is under way."""
        for generation in self._under_way.values():
            generation.fail(message)
        self._under_way.clear()

    def close(self) -> None:
        """Ends the thread and lets go of the engine."""
        self._closing = True
        self._engine.wake()
        self._thread.join()
        self._engine.close()

    def _poll(self) -> None:
        while not self._closing:
            try:
                events = self._engine.poll(POLL_S)
            except EngineDied as death:
                self._loop.call_soon_threadsafe(self._die, death)
                return
            if events:
                self._loop.call_soon_threadsafe(self._deliver, events)

    def _die(self, death: EngineDied) -> None:
        self.death = death
        self.abandon(death.what)
        self._on_death()

    def _deliver(self, events: list[Event]) -> None:
        for event in events:
            if isinstance(event, Tokens):
                self._tokens(event)
            elif isinstance(event, Answers):
                self._answers(event)
            elif isinstance(event, Failure):
                generation = self._under_way.pop(event.number, None)
                if generation is not None:
                    generation.fail(event.message)

    def _tokens(self, event: Tokens) -> None:
        for number, token in zip(event.numbers, event.tokens.tolist(), strict=True):
            generation = self._under_way.get(number)
            if generation is not None:
                generation.hear(token)

    def _answers(self, event: Answers) -> None:
        start = 0
        for number, end, finish in zip(event.numbers, event.ends, event.finish, strict=True):
            generation = self._under_way.pop(number, None)
            if generation is not None:
                generation.end(event.tokens[start:end].tolist(), FINISH[finish])
                self.completed += 1
            start = end
