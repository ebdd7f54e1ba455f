from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.engines.chats.tool_answers import said


def call(number: int, name: str, arguments: str) -> dict[str, Any]:
    return {"id": f"call_{number}", "type": "function", "function": {"name": name, "arguments": arguments}}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", {"content": ""}),
        ("A < b\n", {"content": "A < b\n"}),
        ("<think>Hm.</think>Yes.", {"content": "Yes.", "reasoning": "Hm."}),
        ("<think></think>Yes.", {"content": "Yes."}),
        ("<think>cut of", {"content": "", "reasoning": "cut of"}),
        ("So <think>a</think>b<think>c</think>", {"content": "So b", "reasoning": "ac"}),
        (
            'I look.<tool_call>\n{"name": "ls", "arguments": {"at": "\u00e9"}}\n</tool_call> Then.',
            {"content": "I look. Then.", "tool_calls": [call(0, "ls", '{"at":"\u00e9"}')]},
        ),
        (
            '<tool_call>{"name": "a"}</tool_call><tool_call>{"name": "b", "arguments": "{}"}</tool_call>',
            {"content": "", "tool_calls": [call(0, "a", "{}"), call(1, "b", "{}")]},
        ),
        ('<tool_call>{"name": "a"}', {"content": "", "tool_calls": [call(0, "a", "{}")]}),
        ('<tool_call>{"name": "a", "argum', {"content": '<tool_call>{"name": "a", "argum'}),
        ('<tool_call>{"name": 5}</tool_call>', {"content": '<tool_call>{"name": 5}</tool_call>'}),
        ('<tool_call>["a"]</tool_call>.', {"content": '<tool_call>["a"]</tool_call>.'}),
        (
            '<tool_call>{"name": "a", "arguments": [1]}</tool_call>',
            {"content": '<tool_call>{"name": "a", "arguments": [1]}</tool_call>'},
        ),
        (
            '<think><tool_call>{"name": "a"}</tool_call></think>',
            {"content": "", "reasoning": '<tool_call>{"name": "a"}</tool_call>'},
        ),
    ],
)
def test_what_an_answer_says(text: str, expected: dict[str, Any]) -> None:
    assert said(text) == expected


pieces = st.sampled_from(["<think>", "</think>", "<tool_call>", "</tool_call>", '{"name": "f"}', "x", "<", "\n"])


@given(st.lists(pieces).map("".join))
def test_any_text_is_a_reply(text: str) -> None:
    reply = said(text)
    assert isinstance(reply["content"], str)
    assert all(reply[key] for key in reply if key != "content")
    assert json.loads(json.dumps(reply)) == reply
    if "<t" not in text:
        assert reply == {"content": text}
