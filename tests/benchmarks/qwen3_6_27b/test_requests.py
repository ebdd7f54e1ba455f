from __future__ import annotations

import json
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.benchmarks.qwen3_6_27b.requests import EncodedTrajectory, request
from harness.engines.bodies import encoded
from tests.benchmarks.qwen3_6_27b.made import TOOLS, assistant, demo, one, tool, user

RUN = {"model": "m", "temperature": 0, "seed": 42, "max_completion_tokens": 1024, "stream": True}


def test_a_request_has_the_client_s_fields_in_its_order() -> None:
    found = one(demo(user="u", tool_choice="auto"))
    first = request(found, 0, RUN)
    assert list(first) == [
        "model", "messages", "temperature", "max_completion_tokens", "stream", "seed", "user", "tools", "tool_choice",
    ]  # fmt: skip
    assert first["messages"][0] == {"role": "system", "content": "You drive a shell."}
    second = request(found, 1, RUN)
    assert [list(message) for message in second["messages"]] == [
        ["role", "content"],
        ["role", "content"],
        ["role", "tool_calls", "reasoning_content"],
        ["role", "content", "tool_call_id"],
    ]
    assert second["tools"] == TOOLS
    assert "tool_choice" not in second
    assert "user" not in second


def test_a_salted_prompt_stands_in_place_of_the_own_and_none_is_none() -> None:
    found = one(demo())
    assert request(found, 1, RUN, "salted")["messages"][0]["content"] == "salted"
    assert request(found, 1, RUN, "salted")["messages"][1:] == request(found, 1, RUN)["messages"][1:]
    assert request(one([user()]), 0, RUN)["messages"] == [{"role": "user", "content": "Question 1"}]


def test_empty_texts_are_sent_and_null_is_not() -> None:
    rows = demo()
    rows[1] = {**rows[1], "content": "", "reasoning_content": ""}
    said = request(one(rows), 1, RUN)["messages"][2]
    assert (said["content"], said["reasoning_content"]) == ("", "")
    rows[1] = {**rows[1], "content": None, "reasoning_content": None}
    assert list(request(one(rows), 1, RUN)["messages"][2]) == ["role", "tool_calls"]


@pytest.mark.parametrize(
    ("first", "second", "name", "wanted"),
    [
        ({}, {}, "max_completion_tokens", (1024, 1024)),
        ({"max_completion_tokens": 5}, {}, "max_completion_tokens", (5, 1024)),
        ({"max_new_tokens": 5}, {}, "max_completion_tokens", (5, 5)),
        ({"max_new_tokens": 5}, {"max_completion_tokens": 7}, "max_completion_tokens", (5, 5)),
        ({"max_new_tokens": 5}, {"max_new_tokens": 7}, "max_completion_tokens", (5, 7)),
        ({"model": "other"}, {}, "model", ("other", "m")),
        ({"temperature": 0.5}, {}, "temperature", (0.5, 0)),
        ({}, {"seed": 0}, "seed", (42, 0)),
        ({"stream": False}, {}, "stream", (False, True)),
        ({"top_k": 3}, {}, "top_k", (3, None)),
        ({}, {"tools": [{"type": "other"}]}, "tools", (TOOLS, [{"type": "other"}])),
        ({"stop": "x"}, {}, "stop", ("x", None)),
    ],
)
def test_what_a_row_asks_goes_before_what_the_run_asks(
    first: dict[str, Any], second: dict[str, Any], name: str, wanted: tuple[Any, Any]
) -> None:
    rows = demo(**first)
    rows[2] = {**rows[2], **second}
    found = one(rows)
    assert (request(found, 0, RUN).get(name), request(found, 1, RUN).get(name)) == wanted


@pytest.mark.parametrize(("asked", "wanted"), [({}, (False, False)), ({"stream": True}, (True, True))])
def test_a_run_that_streams_nothing_leaves_it_to_the_first_row(asked: dict[str, Any], wanted: Any) -> None:
    found = one(demo(**asked))
    run = {**RUN, "stream": False}
    assert (request(found, 0, run)["stream"], request(found, 1, run)["stream"]) == wanted


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)


@given(
    st.lists(TEXT, min_size=1, max_size=4),
    st.none() | TEXT,
    st.dictionaries(st.sampled_from(["tool_choice", "user", "stop"]), TEXT, max_size=2),
    st.sampled_from([{}, {"chat_template_kwargs": {"thinking": False}}]),
)
def test_chats_in_pieces_are_the_chats_of_the_requests(
    texts: list[str], system: str | None, asked: dict[str, str], more: dict[str, Any]
) -> None:
    rows: list[dict[str, Any]] = [user(content="?", tools=TOOLS, **asked)]
    for place, text in enumerate(texts, 1):
        calls = [{"id": "c", "type": "function", "function": {"name": "bash", "arguments": text}}]
        rows.append(assistant(2 * place, tool_calls=calls))
        rows.append(tool(2 * place + 1, tool_results=[{"tool_call_id": "c", "content": text}] * place))
    found = one(rows)
    pieces = EncodedTrajectory.of(found, more)
    chats = list(pieces.chats(system))
    assert len(chats) == len(found.turns) == len(texts) + 1
    for place, chat in enumerate(chats):
        whole = request(found, place, {**RUN, **more}, system)
        wanted = {name: value for name, value in whole.items() if name not in RUN}
        assert chat == encoded(wanted) == orjson.dumps(wanted)
    assert pieces.lengths == [len(chat) - len('{"messages":[') + 1 for chat in pieces.chats(None)]


def test_what_is_sent_is_json_as_it_was_recorded() -> None:
    rows = demo()
    calls = [{"id": "a", "type": "function", "function": {"name": "bash", "arguments": {"command": "ls"}}, "index": 0}]
    rows[1] = assistant(tool_calls=calls)
    (_, chat) = EncodedTrajectory.of(one(rows), {}).chats("s")
    assert json.loads(chat)["messages"][2]["tool_calls"] == calls
