"""What a reply to a chat says, as it is logged: the content alone, or the whole of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import orjson

from harness.engines.base import Replies
from harness.errors import RunBroke

EMPTY: Final = "empty_answer"
"""The kind of failure of a reply that says nothing: it is no answer, whatever was counted as its tokens."""


def contents(event: Replies) -> list[bytes]:
    """The content of each reply, as UTF-8. RunBroke where an engine hands over something else than replies."""
    return [_read(number, data)[0] for number, data in _each(event)]


def wholes(event: Replies) -> list[bytes]:
    """The JSON of each reply as the engine made it; empty where it has no content, no reasoning and no tool calls.

    RunBroke where an engine hands over something else than replies.
    """
    return [bytes(data) if any(_read(number, data)) else b"" for number, data in _each(event)]


def _each(event: Replies) -> Iterator[tuple[int, bytes | bytearray]]:
    begin = 0
    for number, end in zip(event.numbers, event.ends, strict=True):
        yield number, event.data[begin:end]
        begin = end


def _read(number: int, data: bytes | bytearray) -> tuple[bytes, bool]:
    """The content of a reply, and whether it says anything else."""
    try:
        said = orjson.loads(data)
        content: str = said["content"]
        return content.encode(), bool(said.get("reasoning") or said.get("tool_calls"))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise RunBroke(
            f"the engine's reply to request {number} is none: {error}", expected="a JSON object with a text as content"
        ) from None
