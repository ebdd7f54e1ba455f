from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.benchmarks.qwen3_6_27b.rows import Metadata, Row, parse_row, read_rows
from harness.errors import DatasetError
from tests.benchmarks.qwen3_6_27b.made import assistant, call, demo, tool, user, write


def parsed(row: Any) -> Row:
    found = parse_row(json.dumps(row).encode(), "line 1")
    assert isinstance(found, Row)
    return found


def refused(row: Any, *parts: str) -> None:
    with pytest.raises(DatasetError) as caught:
        parsed(row)
    for part in parts:
        assert part in str(caught.value)
    assert caught.value.expected


def test_what_a_row_is() -> None:
    row = parsed(user(3, "a b", colour="red", system=None) | {"name": "Bo"})
    assert (row.conversation, row.turn, row.role) == ("a b", 3, "user")
    assert row.where == "line 1, conversation 'a b', turn 3"
    assert "system" not in row.said
    assert row.unread == ("colour",)
    assert parsed(assistant(content="x", delay_seconds=1, temperature=0.5)).unread == ("delay_seconds", "temperature")
    assert parsed(tool(content="x", tool_calls=[])).unread == ("content", "tool_calls")


def test_metadata_is_told_apart() -> None:
    found = parse_row(b'{"_type": "dataset_metadata", "turn": "none"}', "line 1")
    assert isinstance(found, Metadata)
    assert found.said["turn"] == "none"
    refused({"_type": "dataset_footer", "turn": 1, "role": "user"}, "conversation_id is absent")
    assert parsed(user(_type="message")).unread == ()


def test_a_file_in_order_without_its_empty_lines(tmp_path: Path) -> None:
    path = write(tmp_path / "x.jsonl", demo())
    path.write_text("\n" + path.read_text().replace("\n", "\r\n  \n"))
    rows = list(read_rows(path))
    assert [row.turn for row in rows if isinstance(row, Row)] == [1, 2, 3, 4]
    assert isinstance(rows[2], Row)
    assert rows[2].where == f"{path}, line 6, conversation 'demo-1', turn 3"


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="the trajectories cannot be read: Is a directory"):
        list(read_rows(tmp_path))


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b"{", "the row is no JSON"),
        (b"[]", "the row is no JSON object"),
        (b'"text"', "the row is no JSON object"),
        (b"\xff\xfe", "the row is no JSON"),
        (b'{"conversation_id": "\\ud800"}', "the row is no JSON"),
        (b'{"turn": NaN}', "the row is no JSON"),
        (b"[" * 5000, "the row is no JSON"),
    ],
)
def test_a_line_that_is_no_row(line: bytes, said: str) -> None:
    with pytest.raises(DatasetError, match=said) as caught:
        parse_row(line, "x.jsonl, line 7")
    assert caught.value.where == "x.jsonl, line 7"


@pytest.mark.parametrize(
    "name", ["", " ", " a", "a ", "a\tb", "naïve", "a\x7f", "a\r\nX-Evil: 1", None, 7, ["a"], True]
)
def test_an_id_that_no_header_can_carry(name: Any) -> None:
    refused(user(name=name) | {"conversation_id": name}, "line 1", "conversation_id is", "printable ASCII")


def test_an_id_that_looks_like_a_repeat() -> None:
    refused(user(name="a__repeat_2"), "a__repeat_2", "repeated trajectories")
    assert parsed(user(name="a__repeat_2b")).conversation == "a__repeat_2b"


@pytest.mark.parametrize("turn", [0, -1, 1.0, "1", None, True])
def test_a_turn_that_is_none(turn: Any) -> None:
    refused(user(turn), "the row's turn is", "conversation 'demo-1'")


@pytest.mark.parametrize("role", ["system", "User", "", None, ["user"], 1])
def test_a_role_that_is_none(role: Any) -> None:
    refused({**user(), "role": role}, "the row's role is", "user, assistant, tool", "turn 1")


@pytest.mark.parametrize(
    ("row", "parts"),
    [
        (user(content=""), ("content is ''",)),
        (user(content=None), ("a user row has no content",)),
        (user(content=[{"type": "text"}]), ("content is [{",)),
        (user(tool_calls=[call("ls")]), ("a row of role user has tool_calls",)),
        (user(reasoning_content="x"), ("a row of role user has reasoning_content",)),
        (user(system=1), ("system is 1",)),
        (user(delay_seconds=-0.1), ("delay_seconds is -0.1",)),
        (user(delay_seconds="1"), ("delay_seconds is '1'",)),
        (user(delay_seconds=True), ("delay_seconds is True",)),
        (user(delay_seconds=1e300), ("delay_seconds is 1e+300", "clock")),
        (user(max_new_tokens=0), ("max_new_tokens is 0", "at least 1")),
        (user(max_completion_tokens=2.5), ("max_completion_tokens is 2.5",)),
        (user(model=""), ("model is ''",)),
        (user(stream="yes"), ("stream is 'yes'", "true or false")),
        (user(temperature=-1), ("temperature is -1",)),
        (user(seed=1.5), ("seed is 1.5",)),
        (user(stop=[1]), ("stop is [1]",)),
        (user(logit_bias=[]), ("logit_bias is []",)),
        (user(tools=[]), ("tools is []",)),
        (user(tools=["bash"]), ("tools is ['bash']",)),
        (user(tool_choice=1), ("tool_choice is 1",)),
        (user(chat_template_kwargs="x"), ("chat_template_kwargs is 'x'",)),
        (assistant(content=""), ("neither content nor tool_calls",)),
        (assistant(reasoning_content="only that"), ("neither content nor tool_calls",)),
        (assistant(content="x", tool_calls=[]), ("tool_calls is []",)),
        (assistant(content="x", tool_calls="ls"), ("tool_calls is 'ls'",)),
        (assistant(tool_results=[{}], content="x"), ("a row of role assistant has tool_results",)),
        (assistant(tool_calls=[{}]), ("tool_calls[0]", "function is absent")),
        (assistant(tool_calls=[call("ls"), call("ls", "")]), ("tool_calls[1]", "id is ''")),
        (assistant(tool_calls=[{**call("ls"), "type": "tool"}]), ("type is 'tool'",)),
        (assistant(tool_calls=[call("ls", name="")]), ("function.name is ''",)),
        (assistant(tool_calls=[call("ls", arguments=None)]), ("function.arguments is absent",)),
        (assistant(tool_calls=[call("ls", arguments=["ls"])]), ("function.arguments is ['ls']",)),
        (assistant(content="x", intent_codes="I001"), ("intent_codes is 'I001'",)),
        (tool(tool_results=None), ("a tool row has no tool_results",)),
        (tool(tool_results=[]), ("tool_results is []",)),
        (tool(tool_results=["x"]), ("tool_results is ['x']",)),
        (tool(tool_results=[{"tool_call_id": "", "content": "x"}]), ("tool_results[0]", "tool_call_id is ''")),
        (tool(tool_results=[{"tool_call_id": "a"}]), ("tool_results[0]", "content is absent")),
        (tool(tool_results=[{"tool_call_id": "a", "content": ["x"]}]), ("content is ['x']",)),
    ],
    ids=str,
)
def test_a_field_that_is_wrong_names_row_and_conversation(row: Any, parts: tuple[str, ...]) -> None:
    refused(row, "line 1, conversation 'demo-1', turn", *parts)


@pytest.mark.parametrize(
    "row",
    [
        user(temperature=0, top_p=1, top_k=-1, seed=-3, n=1, stop="x", stream=False, tool_choice="auto"),
        user(stop=["x", "y"], logit_bias={"5": -1}, presence_penalty=-0.5, tool_choice={"type": "function"}),
        assistant(content="", tool_calls=[call("ls", arguments={"command": "ls"})]),
        tool(tool_results=[{"tool_call_id": "a", "content": ""}, {"tool_call_id": "b", "content": "x"}]),
        tool(delay_seconds=0),
    ],
    ids=str,
)
def test_what_is_allowed(row: Any) -> None:
    assert parsed(row).said == row


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)


@given(st.binary(max_size=80))
def test_any_line_is_a_row_or_refused(line: bytes) -> None:
    try:
        assert isinstance(parse_row(line, "line 1"), Row | Metadata)
    except DatasetError as error:
        assert error.where


@given(st.sampled_from([*demo(), tool(delay_seconds=1, stop=["x"])]), st.data())
def test_any_field_of_any_value_is_read_or_refused(row: dict[str, Any], data: st.DataObject) -> None:
    name = data.draw(st.sampled_from([*row, "delay_seconds", "tool_calls", "tool_results", "seed", "_type"]))
    line = json.dumps({**row, name: data.draw(JSON)}).encode()
    try:
        found = parse_row(line, "line 1")
    except DatasetError as error:
        assert str(error.where).startswith("line 1")
    else:
        assert isinstance(found, Row | Metadata)
