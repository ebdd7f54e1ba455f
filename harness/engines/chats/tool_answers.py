"""What an answer's text says, where a model writes its thoughts and calls between tags, as the Qwen family does.

``<think>...</think>`` is reasoning, ``<tool_call>{"name": ..., "arguments": {...}}</tool_call>`` a call; all else is
content, and so is a call that is no JSON.
"""

from __future__ import annotations

import re
from typing import Any, Final, TypeAlias

import orjson

Said: TypeAlias = dict[str, Any]

_TAGGED: Final = re.compile(
    r"<think>(?P<thought>.*?)(?:</think>|\Z)|<tool_call>(?P<call>.*?)(?:</tool_call>|\Z)", re.DOTALL
)


def said(text: str) -> Said:
    """A reply as :class:`~harness.engines.base.Replies` have it: content, and if there are any reasoning and calls."""
    content: list[str] = []
    reasoning: list[str] = []
    calls: list[dict[str, Any]] = []
    at = 0
    for found in _TAGGED.finditer(text):
        content.append(text[at : found.start()])
        at = found.end()
        if found["call"] is None:
            reasoning.append(found["thought"])
        elif (function := _function(found["call"])) is not None:
            calls.append({"id": f"call_{len(calls)}", "type": "function", "function": function})
        else:
            content.append(found[0])
    reply: Said = {"content": "".join((*content, text[at:]))}
    if any(reasoning):
        reply["reasoning"] = "".join(reasoning)
    if calls:
        reply["tool_calls"] = calls
    return reply


def _function(text: str) -> dict[str, str] | None:
    """The name and, as JSON, the arguments of a call; None for what is no call."""
    try:
        call = orjson.loads(text)
        name, arguments = call["name"], call.get("arguments", {})
    except (orjson.JSONDecodeError, TypeError, KeyError, AttributeError):
        return None
    if not isinstance(name, str) or not isinstance(arguments, dict | str):
        return None
    return {"name": name, "arguments": arguments if isinstance(arguments, str) else orjson.dumps(arguments).decode()}
