"""A model's reply as it was logged: text, reasoning and tool calls."""

from __future__ import annotations

import json
from dataclasses import dataclass

from harness.benchmarks.qwen3_6_27b.bfcl.table import Json


@dataclass(frozen=True, slots=True)
class Answer:
    """``tool_calls`` are as the server sent them, put together where they came in pieces; () where there are none."""

    content: str = ""
    reasoning: str = ""
    tool_calls: tuple[Json, ...] = ()

    @property
    def empty(self) -> bool:
        """Whether nothing was said at all, which is no answer."""
        return not (self.content or self.reasoning or self.tool_calls)

    @property
    def text(self) -> str:
        """All that was said in words; the reference, too, puts the reasoning before it."""
        return self.reasoning + self.content


def read_answer(data: bytes) -> Answer:
    """The reply that :class:`harness.engines.base.Replies` describes. ValueError for bytes that are none."""
    try:
        told = json.loads(data)
    except RecursionError:
        raise ValueError("nested too deep") from None
    if not isinstance(told, dict):
        raise ValueError(f"a {type(told).__name__}, no object")
    calls = told.get("tool_calls") or []
    if not isinstance(calls, list):
        raise ValueError(f"tool_calls is a {type(calls).__name__}, no list")
    return Answer(_text(told, "content"), _text(told, "reasoning"), tuple(calls))


def _text(told: dict[str, Json], key: str) -> str:
    value = told.get(key)
    if value is not None and not isinstance(value, str):
        raise ValueError(f"{key} is a {type(value).__name__}, no text")
    return value or ""
