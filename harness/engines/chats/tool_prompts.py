"""Chats with tools as token ids: by turns, each tokenized only where it goes beyond the turn before.

A turn of a trajectory repeats all that was said so far. Messages begin and end with tokens that cut a text, so their
ids are the same in whatever chat they stand, and what a session's chat before had of them is taken over.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import orjson

from harness.engines.base import Int32Array
from harness.engines.chats import qwen3_vocab
from harness.engines.chats.problems import BAD_CHAT, BadChat
from harness.engines.chats.tool_chat import BEGINNING, message_text, tools_text

Chat = Mapping[str, Any]
SESSION: Final = "session"
"""A field of a chat that is a prompt itself: the name of the session that it is a turn of. It is not rendered."""


def prompt_text(chat: Chat | bytes) -> str:
    """A chat (an object with ``messages`` and maybe ``tools``, or its JSON) up to where the answer begins.

    It is what transformers renders of it by the stand-in's template. Raises BadChat.
    """
    return "".join((*_texts(parsed(chat)), BEGINNING))


def prompt_ids(chat: Chat | bytes) -> list[int]:
    """The token ids of :func:`prompt_text`. Raises BadChat, and MissingError where the vocabulary is not installed."""
    ids: list[int] = Conversations(1).ids(parsed(chat), None).tolist()
    return ids


def session_of(chat: Chat) -> str | None:
    """What a chat says under :data:`SESSION`; None where it says nothing. Raises BadChat."""
    found = chat.get(SESSION)
    if found is not None and not isinstance(found, str):
        raise BadChat(BAD_CHAT, f"{SESSION} is no text")
    return found


def parsed(chat: Chat | memoryview | bytes) -> Chat:
    """A chat of which the JSON is given, or the chat itself. Raises BadChat for what is no object."""
    if isinstance(chat, Mapping):
        return chat
    try:
        found = orjson.loads(chat)
    except orjson.JSONDecodeError as error:
        raise BadChat(BAD_CHAT, f"not JSON: {error}") from error
    if not isinstance(found, dict):
        raise BadChat(BAD_CHAT, "not a JSON object")
    return found


@dataclass(frozen=True, slots=True)
class _Read:
    """The chat of a session that was read last: its texts, and how many of ``ids`` they make up to each one's end."""

    texts: list[str]
    ends: list[int]
    ids: Int32Array


class Conversations:
    """The ids of chats; of ``most`` sessions, those read last, what was read is kept."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._read: OrderedDict[Hashable, _Read] = OrderedDict()
        self.encoded = 0
        """Characters that were tokenized since this was made."""

    def ids(self, chat: Chat, session: Hashable | None) -> Int32Array:
        """The ids of a chat, int32, up to where its answer begins; None is no session. Raises BadChat."""
        texts = list(_texts(chat))
        before = self._read.pop(session, _NOTHING)
        same = _common(before.texts, texts)
        parts, ends = [before.ids[: before.ends[same - 1] if same else 0]], before.ends[:same]
        for place, text in enumerate(texts[same:], same):
            parts.append(self._encode(place, text))
            ends.append((ends[-1] if ends else 0) + len(parts[-1]))
        ids = np.concatenate(parts)
        if session is not None:
            self._read[session] = _Read(texts, ends, ids)
            if len(self._read) > self._most:
                self._read.popitem(last=False)
        return np.concatenate((ids, np.array(qwen3_vocab.encode(BEGINNING), np.int32)))

    def forget(self) -> None:
        """Keeps nothing of any session."""
        self._read.clear()

    def _encode(self, place: int, text: str) -> Int32Array:
        self.encoded += len(text)
        try:
            return np.array(qwen3_vocab.encode(text), np.int32)
        except UnicodeEncodeError as error:
            raise BadChat(BAD_CHAT, f"part {place} of the chat is no Unicode text: {error.reason}") from error


_NOTHING = _Read([], [], np.zeros(0, np.int32))


def _common(before: Sequence[str], now: Sequence[str]) -> int:
    """How many texts two chats have in common from the first on."""
    pairs = enumerate(zip(before, now, strict=False))
    return next((place for place, (old, new) in pairs if old != new), min(len(before), len(now)))


def _texts(chat: Chat) -> Iterator[str]:
    """The tools, "" where there are none, and each message."""
    messages, tools = chat.get("messages"), chat.get("tools")
    if not isinstance(messages, Sequence) or isinstance(messages, str) or not messages:
        raise BadChat(BAD_CHAT, "there is no list of messages")
    if tools and not (isinstance(tools, Sequence) and all(isinstance(tool, Mapping) for tool in tools)):
        raise BadChat(BAD_CHAT, "tools is no list of objects")
    yield tools_text(tools or ())
    for place, message in enumerate(messages):
        if not isinstance(message, Mapping):
            raise BadChat(BAD_CHAT, f"message {place} is no object")
        yield message_text(place, message)
