"""A chat with tools as text, for stand-ins: one template in two spellings, Jinja for servers and Python for us.

It is of no published model. Every message stands between ``<|im_start|>`` and ``<|im_end|>``, tokens that cut a text
wherever they stand, so that a longer chat begins with the very ids of the shorter one that it goes on from::

    <|im_start|>tools\\n[{"type": "function", ...}]<|im_end|>\\n
    <|im_start|>user\\nWhich files are there?<|im_end|>\\n
    <|im_start|>assistant\\n<think>List them.</think><tool_call>{"name": "ls", "arguments": {}}</tool_call><|im_end|>\\n
    <|im_start|>tool call_0\\na.py<|im_end|>\\n
    <|im_start|>assistant\\n
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from harness.engines.chats.problems import BAD_CHAT, BadChat

TEMPLATE: Final = (
    "{%- if tools -%}{{- '<|im_start|>tools\\n' + (tools | tojson) + '<|im_end|>\\n' -}}{%- endif -%}"
    "{%- for message in messages -%}"
    "{{- '<|im_start|>' + message.role -}}"
    "{%- if message.tool_call_id -%}{{- ' ' + message.tool_call_id -}}{%- endif -%}"
    "{{- '\\n' -}}"
    "{%- if message.reasoning_content -%}{{- '<think>' + message.reasoning_content + '</think>' -}}{%- endif -%}"
    "{%- if message.content is string -%}{{- message.content -}}"
    "{%- else -%}{%- for part in message.content or [] -%}{{- part.text -}}{%- endfor -%}{%- endif -%}"
    "{%- for call in message.tool_calls or [] -%}"
    "{{- '<tool_call>{\"name\": ' + (call.function.name | tojson) + ', \"arguments\": ' -}}"
    "{%- if call.function.arguments is string -%}{{- call.function.arguments -}}"
    "{%- else -%}{{- call.function.arguments | tojson -}}{%- endif -%}"
    "{{- '}</tool_call>' -}}"
    "{%- endfor -%}"
    "{{- '<|im_end|>\\n' -}}"
    "{%- endfor -%}"
    "{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\\n' -}}{%- endif -%}"
)
"""What a checkpoint carries for servers; the ids of a chat's ``tool_call_id`` and ``content`` may be left out."""
BEGINNING: Final = "<|im_start|>assistant\n"
"""What an answer goes on from."""
ROLES: Final = ("system", "user", "assistant", "tool")


def tools_text(tools: Sequence[Mapping[str, Any]]) -> str:
    """The tools of a chat, before its messages; "" for none."""
    return f"<|im_start|>tools\n{_json(tools)}<|im_end|>\n" if tools else ""


def message_text(place: int, message: Mapping[str, Any]) -> str:
    """One message. Raises BadChat for one that has not the form of a chat completion's; ``place`` is for the error."""
    role = message.get("role")
    if role not in ROLES:
        raise BadChat(BAD_CHAT, f"message {place} has the role {role!r}, not one of {', '.join(ROLES)}")
    answers = _text(place, message, "tool_call_id")
    thought = _text(place, message, "reasoning_content")
    return "".join(
        (
            f"<|im_start|>{role}{answers and f' {answers}'}\n",
            thought and f"<think>{thought}</think>",
            *_content(place, message.get("content")),
            *_calls(place, message.get("tool_calls")),
            "<|im_end|>\n",
        )
    )


def _text(place: int, message: Mapping[str, Any], field: str) -> str:
    found = message.get(field) or ""
    if not isinstance(found, str):
        raise BadChat(BAD_CHAT, f"{field} of message {place} is no text")
    return found


def _content(place: int, content: object) -> Iterator[str]:
    if content is None or isinstance(content, str):
        yield content or ""
        return
    if not isinstance(content, Sequence):
        raise BadChat(BAD_CHAT, f"the content of message {place} is neither a text nor a list of parts")
    for part in content:
        text = part.get("text") if isinstance(part, Mapping) and part.get("type") == "text" else None
        if not isinstance(text, str):
            raise BadChat(BAD_CHAT, f"a part of message {place} is no text, and this model takes no other")
        yield text


def _calls(place: int, calls: object) -> Iterator[str]:
    listed = calls or ()
    if not isinstance(listed, Sequence) or isinstance(calls, str):
        raise BadChat(BAD_CHAT, f"tool_calls of message {place} is no list")
    for call in listed:
        function = call.get("function") if isinstance(call, Mapping) else None
        if not isinstance(function, Mapping) or not isinstance(function.get("name"), str):
            raise BadChat(BAD_CHAT, f"a tool call of message {place} names no function")
        arguments = function.get("arguments")
        spelled = arguments if isinstance(arguments, str) else _json(arguments)
        yield f'<tool_call>{{"name": {_json(function["name"])}, "arguments": {spelled}}}</tool_call>'


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
