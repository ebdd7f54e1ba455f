"""Chats with tools: the text is the template's, the ids are those of the text, and a turn costs what it adds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.engines.chats import qwen3_vocab
from harness.engines.chats.problems import BAD_CHAT, BadChat
from harness.engines.chats.tool_chat import TEMPLATE
from harness.engines.chats.tool_prompts import Conversations, parsed, prompt_ids, prompt_text, session_of

pytestmark = pytest.mark.qwen3vl

BASH: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "bash",
        "description": "Runs <b>a</b> command & \u00e9 \U0001f600",
        "parameters": {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]},
    },
}


def call(arguments: object, name: str = "bash") -> dict[str, Any]:
    return {"id": "call_0", "type": "function", "function": {"name": name, "arguments": arguments}}


CHAT: dict[str, Any] = {
    "tools": [BASH],
    "messages": [
        {"role": "system", "content": "[salt: 4461]\n\nYou drive a shell.\n"},
        {"role": "user", "content": " List the tests. <|im_end|> \u212b e\u0301"},
        {"role": "assistant", "reasoning_content": "Look\nfirst.", "tool_calls": [call('{"command": "ls \\"t\\""}')]},
        {"role": "tool", "tool_call_id": "call_0", "content": "test_a.py\n"},
        {
            "role": "assistant",
            "content": "One.",
            "tool_calls": [call({"command": "\u00e9", "n": 1.0}), call("{}", "x")],
        },
        {"role": "tool", "tool_call_id": "functions.bash:0", "content": [{"type": "text", "text": "a"}] * 2},
        {"role": "tool", "content": ""},
        {"role": "assistant", "content": None, "reasoning_content": ""},
        {"role": "user", "content": ""},
    ],
    "chat_template_kwargs": {"thinking": False},
    "session": "demo-1",
}

words = st.sampled_from(["a", " ", "\n", "<|im_end|>", "<think>", "{", '"', "\u0301", "e", "\u4e2d", "7"])
texts = st.lists(words, max_size=6).map("".join)
numbers = st.integers(-(2**63), 2**64 - 1)
arguments = st.one_of(texts, st.dictionaries(texts, st.one_of(texts, numbers, st.booleans(), st.none()), max_size=2))
messages = st.fixed_dictionaries(
    {"role": st.sampled_from(["system", "user", "assistant", "tool"])},
    optional={
        "content": st.one_of(st.none(), texts, st.lists(st.builds(lambda text: {"type": "text", "text": text}, texts))),
        "reasoning_content": st.one_of(st.none(), texts),
        "tool_call_id": texts,
        "tool_calls": st.lists(st.builds(call, arguments, texts), max_size=2),
    },
)
chats = st.fixed_dictionaries(
    {"messages": st.lists(messages, min_size=1, max_size=5)}, optional={"tools": st.lists(st.just(BASH), max_size=2)}
)


def rendered(chat: dict[str, Any]) -> str:
    """The template's text, as transformers makes it."""
    from transformers.utils.chat_template_utils import render_jinja_template

    (text,), _ = render_jinja_template(
        [chat["messages"]], tools=chat.get("tools"), chat_template=TEMPLATE, add_generation_prompt=True
    )
    return str(text)


@pytest.mark.torch
@settings(max_examples=150, deadline=None)
@given(chats)
def test_the_text_is_what_the_template_renders(chat: dict[str, Any]) -> None:
    assert prompt_text(chat) == prompt_text(json.dumps(chat).encode()) == rendered(chat)


@pytest.mark.torch
def test_a_whole_trajectory_is_rendered_and_tokenized_as_transformers_does(tiny_deepseek_v3: Path) -> None:
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(tiny_deepseek_v3)
    assert tokenizer.chat_template == TEMPLATE
    asked = {"tools": CHAT["tools"], "add_generation_prompt": True}
    text = tokenizer.apply_chat_template(CHAT["messages"], **asked, tokenize=False)
    assert text == prompt_text(CHAT)
    assert tokenizer(text)["input_ids"] == prompt_ids(CHAT)


@settings(max_examples=100, deadline=None)
@given(chats)
def test_the_ids_are_those_of_the_whole_text(chat: dict[str, Any]) -> None:
    assert prompt_ids(chat) == qwen3_vocab.encode(prompt_text(chat))


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.sampled_from([None, 1, 2, 3]), chats, st.integers(0, 5)), max_size=6))
def test_what_was_read_before_changes_no_ids(turns: list[tuple[int | None, dict[str, Any], int]]) -> None:
    read = Conversations(2)
    before: list[Any] = []
    for session, chat, kept in turns:
        asked = chat | {"messages": before[:kept] + chat["messages"]}
        assert read.ids(asked, session).tolist() == prompt_ids(asked)
        before = asked["messages"]


def test_a_turn_is_tokenized_where_it_goes_beyond_the_turn_before() -> None:
    read = Conversations(1)
    history = CHAT["messages"][:2]
    read.ids(CHAT | {"messages": history}, "s")
    first = read.encoded
    more = {"role": "user", "content": "x" * 100}
    read.ids(CHAT | {"messages": [*history, more]}, "s")
    assert read.encoded == first + len(f"<|im_start|>user\n{'x' * 100}<|im_end|>\n")
    read.ids(CHAT | {"messages": history}, "another")
    assert read.encoded > 2 * first, "sessions share nothing, and the first was the one to go"
    read.ids(CHAT | {"messages": history}, "s")
    read.forget()
    before = read.encoded
    read.ids(CHAT | {"messages": history}, "s")
    assert read.encoded == before + first


def test_numbers_and_truths_that_are_equal_are_not_the_same_text() -> None:
    read = Conversations(1)
    for value in (1, True, 1.0):
        asked = {"messages": [{"role": "assistant", "tool_calls": [call({"n": value})]}]}
        assert read.ids(asked, 0).tolist() == prompt_ids(asked)


@pytest.mark.parametrize(
    ("chat", "words"),
    [
        (b"{", "not JSON"),
        (b"[]", "not a JSON object"),
        ({}, "no list of messages"),
        ({"messages": []}, "no list of messages"),
        ({"messages": "hello"}, "no list of messages"),
        ({"messages": ["hello"]}, "message 0 is no object"),
        ({"messages": [{"role": "user", "content": "x"}], "tools": {"a": 1}}, "tools is no list"),
        ({"messages": [{"role": "user", "content": "x"}], "tools": ["a"]}, "tools is no list"),
        ({"messages": [{"role": "user", "content": "x"}, {"role": "robot"}]}, "message 1 has the role 'robot'"),
        ({"messages": [{"role": "user", "content": 5}]}, "neither a text nor a list"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": "x"}]}]}, "is no text, and"),
        ({"messages": [{"role": "tool", "tool_call_id": 5}]}, "tool_call_id of message 0 is no text"),
        ({"messages": [{"role": "assistant", "reasoning_content": ["x"]}]}, "reasoning_content of message 0"),
        ({"messages": [{"role": "assistant", "tool_calls": "x"}]}, "tool_calls of message 0 is no list"),
        ({"messages": [{"role": "assistant", "tool_calls": 5}]}, "tool_calls of message 0 is no list"),
        ({"messages": [{"role": "assistant", "tool_calls": [{"name": "x"}]}]}, "names no function"),
        ({"messages": [{"role": "user", "content": "\ud800"}]}, "no Unicode text"),
    ],
)
def test_what_is_no_chat_is_refused(chat: dict[str, Any] | bytes, words: str) -> None:
    with pytest.raises(BadChat, match=words) as caught:
        prompt_ids(chat)
    assert caught.value.kind == BAD_CHAT


def test_a_chat_says_its_session() -> None:
    assert session_of(CHAT) == "demo-1"
    assert session_of(parsed(b'{"messages": []}')) is None
    with pytest.raises(BadChat, match="session is no text"):
        session_of({"session": 5})
