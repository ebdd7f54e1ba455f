"""The chat with tools of stand-ins: its template, Qwen3's vocabulary, and the session, which the engine keeps."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Final

import orjson

from harness.engines.chats import qwen3_vocab, tool_chat
from harness.engines.chats.problems import BadChat
from harness.engines.chats.tool_prompts import SESSION
from harness.serve.chat_words import Reader
from harness.serve.plain_chat import PlainReader
from harness.serve.qwen3_vl_chat import Qwen3Codec, refuse_what_cannot_be
from harness.serve.refusal import Refusal
from harness.serve.requests import ChatRequest

REMEMBERED: Final = 8_192
"""Messages whose ids are kept: each turn of an agent has all that went before."""


class ToolChat:
    """See the module. The answer's text is taken apart as the template puts one together."""

    gpt_oss = False
    stop_ids: tuple[int, ...] = (qwen3_vocab.END_OF_TURN, qwen3_vocab.END_OF_TEXT)

    def __init__(self, codec: Qwen3Codec) -> None:
        self._codec = codec
        self._ids = functools.lru_cache(REMEMBERED)(lambda text: tuple(codec.encode(text)))

    def prompt(self, request: ChatRequest) -> list[int]:
        """The ids up to where the answer begins. Raises Refusal."""
        refuse_what_cannot_be(request)
        if not request.messages:
            raise Refusal("there are no messages")
        try:
            return [token for text in _texts(request) for token in self._ids(text)]
        except BadChat as problem:
            raise Refusal(str(problem)) from None

    def chat(self, request: ChatRequest, session: str | None = None) -> bytes:
        """The chat's JSON, and under :data:`SESSION` which session it is of."""
        return orjson.dumps(request.received() | ({SESSION: session} if session else {}))

    def reader(self, request: ChatRequest) -> Reader:
        """For one answer."""
        return PlainReader(self._codec.decoder(skip_special=request.skip_special_tokens))


def _texts(request: ChatRequest) -> Iterator[str]:
    """Each of them begins and ends with a token that no text has: their ids one after the other are the chat's."""
    chat = request.received()
    yield tool_chat.tools_text(chat.get("tools", ()))
    for place, message in enumerate(chat["messages"]):
        yield tool_chat.message_text(place, message)
    yield tool_chat.BEGINNING
