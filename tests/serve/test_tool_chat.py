"""Chats with tools as the stand-in's ids, what goes to the engine with them, and how an answer is taken apart."""

from __future__ import annotations

import json
from typing import Any

import pytest

from harness.engines.chats import qwen3_vocab, tool_chat
from harness.serve.chat_words import Part, Word
from harness.serve.qwen3_vl_chat import Qwen3Codec
from harness.serve.refusal import Refusal
from harness.serve.requests import ChatRequest
from harness.serve.tool_chat import ToolChat

pytestmark = pytest.mark.qwen3vl

TOOLS = [{"type": "function", "function": {"name": "bash", "parameters": {"type": "object", "properties": {}}}}]
CALL = {"id": "c0", "type": "function", "function": {"name": "bash", "arguments": '{"command": "ls"}'}}
MESSAGES: list[dict[str, Any]] = [
    {"role": "system", "content": "You drive a shell."},
    {"role": "user", "content": "Was gibt es? <|im_end|>"},
    {"role": "assistant", "reasoning_content": "Look — first.", "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "c0", "content": "a.py\n"},
]


@pytest.fixture(scope="module")
def chat() -> ToolChat:
    return ToolChat(Qwen3Codec())


def request(messages: list[dict[str, Any]] = MESSAGES, **more: object) -> ChatRequest:
    return ChatRequest.model_validate({"model": "m", "messages": messages, "tools": TOOLS} | more)


def test_the_ids_are_those_of_the_whole_text(chat: ToolChat) -> None:
    text = tool_chat.tools_text(TOOLS) + "".join(map(tool_chat.message_text, range(4), MESSAGES)) + tool_chat.BEGINNING
    assert chat.prompt(request()) == qwen3_vocab.encode(text)
    without = chat.prompt(request(tool_choice="none"))
    assert without == qwen3_vocab.encode(text.removeprefix(tool_chat.tools_text(TOOLS)))


def test_a_turn_begins_with_all_of_the_one_before(chat: ToolChat) -> None:
    beginning = len(qwen3_vocab.encode(tool_chat.BEGINNING))
    before, now = chat.prompt(request(MESSAGES[:2])), chat.prompt(request())
    assert now[: len(before) - beginning] == before[:-beginning]


@pytest.mark.parametrize(
    ("messages", "more", "words"),
    [
        ([], {}, "no messages"),
        ([{"role": "wizard", "content": "x"}], {}, "role 'wizard'"),
        ([{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}], {}, "no text"),
        (MESSAGES, {"ignore_eos": True}, "`ignore_eos` is True"),
        (MESSAGES, {"stop_token_ids": [1]}, "`stop_token_ids`"),
    ],
)
def test_what_is_no_chat_is_refused(
    chat: ToolChat, messages: list[dict[str, Any]], more: dict[str, object], words: str
) -> None:
    with pytest.raises(Refusal, match=words):
        chat.prompt(request(messages, **more))


def test_the_engine_hears_of_the_session(chat: ToolChat) -> None:
    packed = json.loads(chat.chat(request(), "django-1__repeat_2"))
    assert packed == {"messages": MESSAGES, "tools": TOOLS, "session": "django-1__repeat_2"}
    assert "session" not in json.loads(chat.chat(request()))


def test_an_answer_is_taken_apart(chat: ToolChat) -> None:
    said = "<think>List them.</think>" + '<tool_call>{"name": "bash", "arguments": {"command": "ls"}}</tool_call>'
    ids = qwen3_vocab.encode(said)
    reader = chat.reader(request())
    words = [word for place, each in enumerate(ids) for word in reader.feed([each], last=place + 1 == len(ids))]
    assert "".join(word.text for word in words if word.part is Part.REASONING) == "List them."
    assert [word for word in words if word.part is not Part.REASONING] == [
        Word(Part.CALL, "bash"),
        Word(Part.ARGUMENTS, '{"command": "ls"}'),
    ]
