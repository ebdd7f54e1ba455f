"""Answers as responses: whole, and as the events of a stream."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from harness.serve import shapes
from harness.serve.bridge import Generation, GenerationFailed
from harness.serve.chat_words import Part, Reader, Word
from harness.serve.line import Line
from harness.serve.texts import Decoder

FIRST_EVENT_BLANK: Final = b" "
"""trtllm-serve puts one behind the first event of a chat, but not of gpt-oss's."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What an answer is to tell: the model's name, ids (completions without detokenizing), counts, their details."""

    model: str
    ids: bool
    usage: bool
    usage_always: bool
    gpt_oss: bool = False

    def counts(self, prompt_tokens: int, completion_tokens: int) -> shapes.Content:
        """The usage."""
        return shapes.usage(prompt_tokens, completion_tokens, details=not self.gpt_oss)


async def whole_completion(generation: Generation, asked: Asked, decoder: Decoder | None) -> shapes.Content:
    """The one response. ``decoder`` None: no text."""
    ids, finish = await _whole(generation)
    text = "" if decoder is None else decoder.feed(ids, last=True)
    counts = asked.counts(generation.prompt_tokens, len(ids))
    return shapes.completion(asked.model, text, ids if asked.ids else None, finish, counts)


async def completion_events(
    generation: Generation, asked: Asked, decoder: Decoder | None
) -> AsyncGenerator[bytes, None]:
    """The events of a completion; an answer that breaks is told in the stream."""
    count = 0
    try:
        async for piece in generation:
            count = piece.count
            text = "" if decoder is None else decoder.feed(piece.tokens, last=piece.finish is not None)
            counts = asked.counts(generation.prompt_tokens, count) if asked.usage_always else None
            ids = piece.tokens if asked.ids else None
            yield shapes.event(shapes.completion_chunk(asked.model, text, ids, piece.finish, counts))
    except GenerationFailed as failure:
        yield shapes.broken_stream(str(failure))
        return
    if asked.usage:
        yield shapes.event(shapes.usage_chunk(asked.model, asked.counts(generation.prompt_tokens, count)))
    yield shapes.DONE


async def whole_chat(generation: Generation, asked: Asked, reader: Reader) -> shapes.Content:
    """The one response."""
    ids, finish = await _whole(generation)
    words = reader.feed(ids, last=True)
    calls = _calls(words)
    message: dict[str, Any] = {}
    content, reasoning = _joined(words, Part.CONTENT), _joined(words, Part.REASONING)
    if content or not asked.gpt_oss:
        message["content"] = content
    if reasoning or not asked.gpt_oss:
        message["reasoning" if asked.gpt_oss else "reasoning_content"] = reasoning
    if calls:
        message["tool_calls"] = calls
        finish = "tool_calls"
    return shapes.chat(asked.model, message, finish, asked.counts(generation.prompt_tokens, len(ids)))


async def chat_events(generation: Generation, asked: Asked, reader: Reader, line: Line) -> AsyncGenerator[bytes, None]:
    """The events of a chat: the role alone goes out with the first token. One that breaks is cut, without a word."""
    deltas = _Deltas(gpt_oss=asked.gpt_oss)
    count = 0
    try:
        async for piece in generation:
            counts = asked.counts(generation.prompt_tokens, piece.count) if asked.usage_always else None
            if not count:
                blank = b"" if asked.gpt_oss else FIRST_EVENT_BLANK
                none_yet = asked.counts(generation.prompt_tokens, 0) if asked.usage_always else None
                role = shapes.chat_chunk(asked.model, {"role": "assistant"}, None, none_yet)
                yield shapes.event(role, blank)
            count = piece.count or count
            told = deltas.of(reader.feed(piece.tokens, last=piece.finish is not None), piece.finish)
            for delta, finish in told:
                yield shapes.event(shapes.chat_chunk(asked.model, delta, finish, counts))
    except GenerationFailed:
        line.cut()
        await asyncio.Event().wait()  # until the client is found gone: nothing may follow, an end of the stream neither
    if asked.usage:
        yield shapes.event(shapes.usage_chunk(asked.model, asked.counts(generation.prompt_tokens, count)))
    yield shapes.DONE


class _Deltas:
    """Words as deltas. gpt-oss's end has a chunk of its own; elsewhere the last delta has it, and always a content."""

    def __init__(self, *, gpt_oss: bool) -> None:
        self._gpt_oss = gpt_oss
        self._calls = 0

    def of(self, words: Sequence[Word], finish: str | None) -> list[tuple[dict[str, Any], str | None]]:
        told = self._merged(words)
        if self._gpt_oss:
            return [(delta, None) for delta in told] + ([({}, finish)] if finish else [])
        if not told:
            told = [{"content": "", "reasoning_content": ""}]
        if finish and self._calls:
            finish = "tool_calls"
        return [(delta, None) for delta in told[:-1]] + [(told[-1], finish)]

    def _merged(self, words: Sequence[Word]) -> list[dict[str, Any]]:
        deltas: list[dict[str, Any]] = []
        if not self._gpt_oss and any(word.part in {Part.CONTENT, Part.REASONING} for word in words):
            deltas.append(
                {"content": _joined(words, Part.CONTENT), "reasoning_content": _joined(words, Part.REASONING)}
            )
        for word in words:
            if word.part is Part.CALL:
                self._calls += 1
                deltas.append(self._call({"name": word.text, "arguments": ""}, shapes.tool_call_id()))
            elif word.part is Part.ARGUMENTS:
                deltas.append(self._call({"arguments": word.text}, None))
            elif self._gpt_oss:
                deltas.append({word.part.value: word.text})
        return deltas

    def _call(self, function: dict[str, str], call_id: str | None) -> dict[str, Any]:
        named = {} if call_id is None else {"id": call_id}
        return {"tool_calls": [named | {"type": "function", "index": self._calls - 1, "function": function}]}


async def _whole(generation: Generation) -> tuple[list[int], str | None]:
    ids: list[int] = []
    finish = None
    async for piece in generation:
        ids += piece.tokens
        finish = piece.finish
    return ids, finish


def _joined(words: Sequence[Word], part: Part) -> str:
    return "".join(word.text for word in words if word.part is part)


def _calls(words: Sequence[Word]) -> list[shapes.Content]:
    calls: list[tuple[str, list[str]]] = []
    for word in words:
        if word.part is Part.CALL:
            calls.append((word.text, []))
        elif word.part is Part.ARGUMENTS:
            calls[-1][1].append(word.text)
    return [shapes.tool_call(name, "".join(arguments)) for name, arguments in calls]
