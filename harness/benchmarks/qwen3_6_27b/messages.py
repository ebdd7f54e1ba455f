"""Rows as messages of a chat completion, each with its fields in the order in which the mlcommons client writes them.

That client leaves out what is null, ``content`` of an assistant that only calls tools too, and sends everything else as
the row has it (mlcommons/endpoints ea332753, ``openai/types.py``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

from harness.benchmarks.qwen3_6_27b.rows import Row

Message: TypeAlias = Mapping[str, Any]

_ORDER: Final = ("role", "content", "name", "tool_calls", "tool_call_id", "reasoning_content")


def of_row(row: Row) -> tuple[Message, ...]:
    """The messages that a row is: one, or of a tool's row one for each result."""
    if row.role == "tool":
        return tuple(_ordered({"role": "tool", **result}) for result in row.said["tool_results"])
    return (_ordered(row.said),)


def of_system(text: str) -> Message:
    """The message of a system prompt."""
    return {"role": "system", "content": text}


def _ordered(said: Mapping[str, Any]) -> Message:
    return {name: said[name] for name in _ORDER if said.get(name) is not None}
