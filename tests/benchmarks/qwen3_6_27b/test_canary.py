from __future__ import annotations

import json
from typing import Any, cast

import pytest

from harness.benchmarks.base import Canary, Chats
from harness.benchmarks.qwen3_6_27b.canary import FUNCTION, STAND_IN_TOKENS, ToolCanary
from harness.engines.bodies import encoded

TOLD = json.dumps({"content": "312 cm."}).encode()


def canary(*, trained: bool = True) -> Canary:
    return ToolCanary.make(trained=trained, more={"chat_template_kwargs": {"thinking": False}}, max_new_tokens=100)


def calling(name: object = FUNCTION, arguments: object = '{"gauge": "north pier"}', **more: Any) -> bytes:
    function = {"name": name, "arguments": arguments}
    return json.dumps(
        {"content": "", "tool_calls": [{"id": "c", "type": "function", "function": function}], **more}
    ).encode()


def test_it_asks_for_a_call_then_tells_its_result() -> None:
    asks, tells = cast(Any, list(cast(Chats, canary().prompts)))
    for chat in (asks, tells):
        assert encoded(chat)
        assert [tool["function"]["name"] for tool in chat["tools"]] == [FUNCTION]
        assert (chat["tool_choice"], chat["chat_template_kwargs"]) == ("auto", {"thinking": False})
    assert tells["messages"][: len(asks["messages"])] == asks["messages"]
    said, result = tells["messages"][len(asks["messages"]) :]
    assert result["tool_call_id"] == said["tool_calls"][0]["id"]
    assert "content" not in said  # a server that wants one breaks on every turn of the data set


def test_good_answers_pass() -> None:
    assert canary().check([calling(reasoning="I read it."), TOLD]) == []


@pytest.mark.parametrize(
    ("answer", "what"),
    [
        (b"", "no reply"),
        (b"[]", "no reply"),
        (b'{"content": ""}', "neither text nor reasoning nor a tool call"),
        (TOLD, "no tool call, and the text '312 cm.'"),
        (json.dumps({"content": f"{FUNCTION}(gauge='north pier')"}).encode(), "no tool call"),
        (calling("read_gauges"), "a call of 'read_gauges'"),
        (calling(None), "a call of None"),
        (calling(arguments="{'gauge': 1}"), "a call with the arguments"),
        (calling(arguments='["north pier"]'), "a call with the arguments"),
        (calling(arguments=None), "a call with the arguments"),
        (calling(arguments={"gauge": "north pier"}), "a call with the arguments"),
        (json.dumps({"content": "", "tool_calls": [3]}).encode(), "a call of None"),
        (json.dumps({"content": "", "tool_calls": [{"function": 3}]}).encode(), "a call of None"),
    ],
)
def test_what_is_no_call(answer: bytes, what: str) -> None:
    (finding,) = canary().check([answer, TOLD])
    assert finding.what.startswith(f"answer 1 of 2: {what}")
    assert finding.expected


def test_a_result_that_is_answered_with_nothing() -> None:
    (finding,) = canary().check([calling(), b'{"content": ""}'])
    assert finding.what.startswith("answer 2 of 2: neither text")


def test_of_random_weights_any_answer_will_do() -> None:
    stand_in = canary(trained=False)
    assert stand_in.max_new_tokens == STAND_IN_TOKENS
    assert stand_in.check([TOLD, calling()]) == []
    (finding,) = stand_in.check([b'{"content": ""}', TOLD])
    assert finding.what.startswith("answer 1 of 2: neither text")


def test_answers_are_one_a_prompt() -> None:
    (finding,) = canary().check([calling()])
    assert finding.what == "1 answers to 2 prompts"
