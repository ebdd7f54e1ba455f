"""A chat for models whose own template is not here, and for scripts.

The prompt: a line ``<|role|>`` before each message's text, one for the tools as JSON, and one for the answer.
The answer: ``<think>...</think>`` is reasoning and ``<tool_call>{"name": ..., "arguments": {...}}</tool_call>`` a call,
as models of the Qwen family write them; all else is content.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Final

from harness.serve.chat_words import Part, Reader, Word, text_of, tools_of
from harness.serve.refusal import Refusal
from harness.serve.requests import ChatRequest
from harness.serve.texts import Codec, Decoder

AT_ONCE: Final = 32
"""Characters of a call's arguments that are told in one piece: they are known when the call ends, and real servers tell
them as they come."""
TAGS: Final = {"<think>": "</think>", "<tool_call>": "</tool_call>"}


class PlainChat:
    """See the module."""

    gpt_oss = False
    stop_ids: tuple[int, ...] = ()

    def __init__(self, codec: Codec) -> None:
        self._codec = codec

    def prompt(self, request: ChatRequest) -> list[int]:
        """The ids of the lines."""
        if not request.messages:
            raise Refusal("there are no messages")
        lines = [f"<|{message.role}|>\n{text_of(message)}\n" for message in request.messages]
        if tools := tools_of(request):
            lines.insert(0, f"<|tools|>\n{json.dumps(tools)}\n")
        return self._codec.encode("".join(lines) + ("<|assistant|>\n" if request.add_generation_prompt else ""))

    def chat(self, request: ChatRequest, session: str | None = None) -> None:
        """The engine gets ids."""

    def reader(self, request: ChatRequest) -> Reader:
        """For one answer."""
        return PlainReader(self._codec.decoder(skip_special=request.skip_special_tokens))


class PlainReader:
    """Finds the tags in an answer's text. What may be the beginning of one waits for what comes."""

    def __init__(self, decoder: Decoder) -> None:
        self._decoder = decoder
        self._text = ""
        self._inside: str | None = None

    def feed(self, ids: Sequence[int], *, last: bool) -> list[Word]:
        """What these ids add."""
        self._text += self._decoder.feed(ids, last=last)
        return list(self._words(last=last))

    def _words(self, *, last: bool) -> Iterator[Word]:
        while self._text:
            tags = [TAGS[self._inside]] if self._inside else list(TAGS)
            place, tag = min(((self._text.find(tag), tag) for tag in tags if tag in self._text), default=(-1, ""))
            whole = place >= 0
            end = place if whole else len(self._text) - (0 if last else _begun(self._text, tags))
            if self._inside == "<tool_call>":
                if not whole and not last:
                    return
                yield from _call(self._text[:end])
            elif end:
                yield Word(Part.REASONING if self._inside else Part.CONTENT, self._text[:end])
            self._text = self._text[end + len(tag) :]
            if not whole:
                return
            self._inside = None if self._inside else tag


def _begun(text: str, tags: Sequence[str]) -> int:
    """How many characters at the end of a text may be the beginning of a tag."""
    longest = max(map(len, tags)) - 1
    return next((n for n in range(min(longest, len(text)), 0, -1) if text.endswith(tuple(t[:n] for t in tags))), 0)


def _call(text: str) -> Iterator[Word]:
    """The call that a text spells, or the text itself as content."""
    try:
        call = json.loads(text)
        name, arguments = call["name"], call.get("arguments", {})
    except (ValueError, RecursionError, TypeError, KeyError, AttributeError):
        yield Word(Part.CONTENT, text)
        return
    yield Word(Part.CALL, str(name))
    told = arguments if isinstance(arguments, str) else json.dumps(arguments)
    for start in range(0, max(1, len(told)), AT_ONCE):
        yield Word(Part.ARGUMENTS, told[start : start + AT_ONCE])
