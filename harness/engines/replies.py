"""What a reply to a chat says, as it is logged: the content alone."""

from __future__ import annotations

from typing import Final

import orjson

from harness.engines.base import Replies
from harness.errors import RunBroke

EMPTY: Final = "empty_answer"
"""The kind of failure of a reply without content: it is no answer, whatever was counted as its tokens."""


def contents(event: Replies) -> list[bytes]:
    """The content of each reply, as UTF-8. RunBroke where an engine hands over something else than replies."""
    found = []
    begin = 0
    for number, end in zip(event.numbers, event.ends, strict=True):
        found.append(_content(number, event.data[begin:end]))
        begin = end
    return found


def _content(number: int, data: bytes | bytearray) -> bytes:
    try:
        content: str = orjson.loads(data)["content"]
        return content.encode()
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise RunBroke(
            f"the engine's reply to request {number} is none: {error}", expected="a JSON object with a text as content"
        ) from None
