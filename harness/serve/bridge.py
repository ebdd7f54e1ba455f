"""Between the event loop that serves and the engine's process: requests go in, pieces of answers come out.

The loop itself reads the engine's socket: a thread that polls would cost a wake-up and a change of hands more a step.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from harness.engines.base import (
    NOT_TOLD,
    Answers,
    Event,
    Failure,
    Finish,
    Int32Array,
    PromptTable,
    Replies,
    Requests,
    Sampling,
    TokenEvents,
    Tokens,
    Workload,
)
from harness.engines.bodies import chat_as_prompt
from harness.engines.connection import Connection
from harness.errors import EngineDied

DATASET: Final = "serve"
"""What a scripted engine knows this server's requests by."""
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
        self.cached_tokens = 0
        """How many of them were not computed anew, once the answer is at its end and where its engine tells."""
        self._cap = cap
        self._interval = interval
        self._pieces: asyncio.Queue[Piece | GenerationFailed] = asyncio.Queue()
        self._held: list[int] = []
        self._count = 0
        self._says_nothing = False
        self._finish: str | None = None

    def say_nothing(self) -> None:
        """Its tokens are counted and not told: a fault that was asked for."""
        self._says_nothing = True

    def end_by(self, finish: str) -> None:
        """It ends by this, whatever the engine says: another."""
        self._finish = finish

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

    def end_counted(self, tokens: int, finish: str, prompt_tokens: int, cached_tokens: int) -> None:
        """As :meth:`end`, of an answer whose tokens were all told as they came; NOT_TOLD counts leave things alone."""
        self.prompt_tokens = self.prompt_tokens if prompt_tokens == NOT_TOLD else prompt_tokens
        self.cached_tokens = max(0, cached_tokens)
        self._count = tokens
        self._put(finish)

    def fail(self, message: str) -> None:
        """Nothing more comes."""
        self._pieces.put_nowait(GenerationFailed(message))

    def _put(self, finish: str | None) -> None:
        told = [] if self._says_nothing else self._held
        self._pieces.put_nowait(Piece(told, self._count, finish and (self._finish or finish)))
        self._held = []


class Bridge:
    """Puts an engine behind the running event loop, whose alone it is.

    ``on_death`` is called once, when the engine is found dead.
    """

    def __init__(self, connection: Connection, *, stream_interval: int, on_death: Callable[[], None]) -> None:
        self._connection = connection
        self._interval = stream_interval
        self._on_death = on_death
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(connection.fileno(), self._receive)
        self._under_way: dict[int, Generation] = {}
        self._numbers = itertools.count()
        self.completed = 0
        self.death: EngineDied | None = None

    @property
    def outstanding(self) -> int:
        """How many answers are under way or wait."""
        return len(self._under_way)

    def generate(
        self, prompt: list[int], sampling: Sampling, *, row: int, streamed: bool, chat: bytes | None = None
    ) -> Generation:
        """Starts an answer; ``row`` is what a scripted engine answers by. Raises GenerationFailed for a dead engine.

        ``chat`` is the chat that the prompt is of, for an engine that reads chats itself. Its tokens are all told as
        they come: engines that keep what they have read of a session end such an answer by counts.
        """
        if self.death is not None:
            raise GenerationFailed(self.death.what)
        number = next(self._numbers)
        interval = self._interval if streamed else None
        generation = self._under_way[number] = Generation(number, len(prompt), sampling.max_new_tokens, interval)
        events = TokenEvents.ALL if streamed or chat is not None else TokenEvents.NONE
        workload = Workload(DATASET, sampling, events, chat_prompts=chat is not None)
        prompts = PromptTable.from_lists([prompt]) if chat is None else _one(chat_as_prompt(chat))
        requests = Requests(workload, (number,), (row,), prompts, (0,))
        self._watch_room(self._connection.submit(requests))
        return generation

    def drop(self, generation: Generation) -> None:
        """Forgets an answer that has an end, or nobody to read it: then the engine works no longer on it."""
        if self._under_way.pop(generation.number, None) is not None and self.death is None:
            self._watch_room(self._connection.drop((generation.number,)))

    def abandon(self, message: str) -> None:
        """Fails all that is under way."""
        for generation in self._under_way.values():
            generation.fail(message)
        self._under_way.clear()

    def close(self) -> None:
        """Lets go of the engine."""
        self._hear_no_more()
        self._under_way.clear()
        self._connection.close()

    def _receive(self) -> None:
        try:
            events = self._connection.receive()
        except EngineDied as death:
            self._die(death)
        else:
            self._deliver(events)

    def _watch_room(self, waits: bool) -> None:
        """Has what waits sent when the socket has room."""
        if waits:
            self._loop.add_writer(self._connection.fileno(), self._flush)

    def _flush(self) -> None:
        self._connection.flush()
        if not self._connection.backlog:
            self._loop.remove_writer(self._connection.fileno())

    def _hear_no_more(self) -> None:
        self._loop.remove_reader(self._connection.fileno())
        self._loop.remove_writer(self._connection.fileno())

    def _die(self, death: EngineDied) -> None:
        self._hear_no_more()
        self.death = death
        self.abandon(death.what)
        self._on_death()

    def _deliver(self, events: list[Event]) -> None:
        for event in events:
            if isinstance(event, Tokens):
                self._tokens(event)
            elif isinstance(event, Answers):
                self._answers(event)
            elif isinstance(event, Replies):
                self._replies(event)
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

    def _replies(self, event: Replies) -> None:
        for place, number in enumerate(event.numbers):
            generation = self._under_way.pop(number, None)
            if generation is not None:
                prompt = event.prompt_tokens[place] if len(event.prompt_tokens) else NOT_TOLD
                cached = event.cached_tokens[place] if len(event.cached_tokens) else NOT_TOLD
                generation.end_counted(event.tokens[place], FINISH[event.finish[place]], prompt, cached)
                self.completed += 1


def _one(prompt: Int32Array) -> PromptTable:
    return PromptTable(prompt, np.zeros(1, np.int64), np.array([len(prompt)], np.int64))
