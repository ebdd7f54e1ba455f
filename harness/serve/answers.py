"""Answers as responses: whole, and as the events of a stream."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field

from harness.serve.bridge import Generation, GenerationFailed
from harness.serve.chat_words import Reader
from harness.serve.line import Line
from harness.serve.manners import Manner
from harness.serve.shapes import DONE, Content, event
from harness.serve.texts import Decoder
from harness.serve.wording import Wording


@dataclass(frozen=True, slots=True)
class Asked:
    """What an answer is to tell: the model's name, ids (of completions), counts, their details."""

    manner: Manner
    model: str
    ids: bool
    usage: bool
    usage_always: bool
    gpt_oss: bool = False
    """Whether it is a chat of gpt-oss's, where those are worded in a way of their own."""
    answer: str = field(default_factory=lambda: uuid.uuid4().hex)

    def counts(self, generation: Generation, completion_tokens: int) -> Content:
        """The usage."""
        return self.manner.shapes.usage(
            generation.prompt_tokens, completion_tokens, generation.cached_tokens, details=not self.gpt_oss
        )

    def wording(self) -> Wording:
        """How a chat's answer is put."""
        return self.manner.of_gpt_oss() if self.gpt_oss and self.manner.of_gpt_oss else self.manner.wording()


async def whole_completion(generation: Generation, asked: Asked, decoder: Decoder | None) -> Content:
    """The one response. ``decoder`` None: no text."""
    ids, count, finish = await _whole(generation)
    text = "" if decoder is None else decoder.feed(ids, last=True)
    counts = asked.counts(generation, count)
    told = ids if asked.ids else None
    return asked.manner.shapes.completion(asked.model, asked.answer, text, told, finish, counts)


async def completion_events(
    generation: Generation, asked: Asked, decoder: Decoder | None
) -> AsyncGenerator[bytes, None]:
    """The events of a completion; an answer that breaks is told in the stream."""
    shapes = asked.manner.shapes
    count = 0
    try:
        async for piece in generation:
            count = piece.count
            text = "" if decoder is None else decoder.feed(piece.tokens, last=piece.finish is not None)
            counts = asked.counts(generation, count) if asked.usage_always else None
            ids = piece.tokens if asked.ids else None
            yield event(shapes.completion_chunk(asked.model, asked.answer, text, ids, piece.finish, counts))
    except GenerationFailed as failure:
        yield shapes.broken_stream(str(failure))
        return
    if asked.usage:
        counts = asked.counts(generation, count)
        yield event(shapes.usage_chunk(asked.model, asked.answer, counts, of_chat=False))
    yield DONE


async def whole_chat(generation: Generation, asked: Asked, reader: Reader) -> Content:
    """The one response."""
    ids, count, finish = await _whole(generation)
    message, finish = asked.wording().message(reader.feed(ids, last=True), finish)
    counts = asked.counts(generation, count)
    return asked.manner.shapes.chat(asked.model, asked.answer, message, finish, counts)


async def chat_events(generation: Generation, asked: Asked, reader: Reader, line: Line) -> AsyncGenerator[bytes, None]:
    """The events of a chat: the role alone goes out with the first token."""
    shapes, wording = asked.manner.shapes, asked.wording()
    count = 0
    try:
        async for piece in generation:
            counts = asked.counts(generation, piece.count) if asked.usage_always else None
            if not count:
                none_yet = asked.counts(generation, 0) if asked.usage_always else None
                role = shapes.chat_chunk(asked.model, asked.answer, dict(wording.first), None, none_yet)
                yield event(role, wording.blank)
            count = piece.count or count
            told = wording.deltas(reader.feed(piece.tokens, last=piece.finish is not None), piece.finish)
            for delta, finish in told:
                yield event(shapes.chat_chunk(asked.model, asked.answer, delta, finish, counts))
    except GenerationFailed as failure:
        if not asked.manner.breaks_chats:
            yield shapes.broken_stream(str(failure))
            return
        line.cut()
        await asyncio.Event().wait()  # until the client is found gone: nothing may follow, an end of the stream neither
    if asked.usage:
        counts = asked.counts(generation, count)
        yield event(shapes.usage_chunk(asked.model, asked.answer, counts, of_chat=True))
    yield DONE


async def _whole(generation: Generation) -> tuple[list[int], int, str | None]:
    ids: list[int] = []
    count, finish = 0, None
    async for piece in generation:
        ids += piece.tokens
        count, finish = piece.count, piece.finish
    return ids, count, finish
