"""What came back for a sample, out of the client's events: text, reasoning and calls of tools, whole or in pieces."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import orjson

from harness.engines.http.calls import Calls

_OUTPUT, _REASONING, _CALLS = 1, 2, 3
"""Places in the client's list of an answer; before them stands its kind."""


@dataclass(frozen=True, slots=True)
class Came:
    """An answer. ``calls`` are whole, as a message has them, () where there are none or none that can be read."""

    content: str = ""
    reasoning: str = ""
    calls: tuple[dict[str, Any], ...] = ()

    @property
    def empty(self) -> bool:
        """Whether nothing was said and nothing called: to the client an answer like all others, and a fast one."""
        return not (self.content or self.reasoning or self.calls)

    @property
    def text(self) -> str:
        """The words as the client's scorers take them: reasoning, if any, before the content."""
        return self.reasoning + self.content

    @property
    def message(self) -> dict[str, Any]:
        """The answer as a message of the assistant's, without what it lacks."""
        said: dict[str, Any] = {
            "content": self.content,
            "reasoning": self.reasoning,
            "tool_calls": list(self.calls),
        }
        return {key: value for key, value in said.items() if value}

    @property
    def reply(self) -> bytes:
        """The same as JSON, as replies are logged."""
        return orjson.dumps(self.message)


def came(data: object) -> Came | None:
    """The answer in a completion's data; None where nothing came back."""
    if not isinstance(data, list) or not data:
        return None
    output, reasoning, calls = (data[at] if len(data) > at else None for at in (_OUTPUT, _REASONING, _CALLS))
    return Came(_joined(output), _joined(reasoning), _called(calls))


def _joined(part: object) -> str:
    """A text, or the chunks of a streamed one."""
    if isinstance(part, list):
        return "".join(chunk for chunk in part if isinstance(chunk, str))
    return part if isinstance(part, str) else ""


def _called(part: object) -> tuple[dict[str, Any], ...]:
    """Calls that came whole, or in pieces, a list of them each time."""
    calls = Calls()
    try:
        calls.take(list(_pieces(part)))
    except (ValueError, TypeError, AttributeError):
        return ()
    return tuple(calls.told())


def _pieces(part: object) -> Iterator[dict[str, Any]]:
    for each in part if isinstance(part, list) else ():
        yield from each if isinstance(each, list) else (each,)
