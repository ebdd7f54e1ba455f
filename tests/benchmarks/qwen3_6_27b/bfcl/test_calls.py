"""Where calls are found in an answer; what is wanted was seen to be what the reference's extractor and scorer do."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.benchmarks.qwen3_6_27b.bfcl.answers import Answer, read_answer
from harness.benchmarks.qwen3_6_27b.bfcl.calls import Found, find

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


def structured(*calls: tuple[object, object]) -> Answer:
    return Answer(tool_calls=tuple({"function": {"name": name, "arguments": said}} for name, said in calls))


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        ('{"a": 1}', {"a": 1}),
        ({"a": 1}, {"a": 1}),
        ('"{\\"a\\": 1}"', {"a": 1}),  # JSON in JSON
        ("", {}),
        ("{broken", {}),
        ('"text"', {}),
        ('{"a": NaN}', {"a": pytest.approx(float("nan"), nan_ok=True)}),
    ],
)
def test_arguments_are_decoded_as_the_reference_does(arguments: object, wanted: object) -> None:
    found = find(structured(("f", arguments)))
    assert found.calls == (("f", wanted),)
    assert found.structured
    assert not found.problem


@pytest.mark.parametrize(
    ("arguments", "kind"),
    [("null", "null"), (None, "null"), ("[1]", "a list"), ([1], "a list"), ("3", "a number"), (3.5, "a number"),
     ("true", "true or false"), ('"\\"\\\\\\"x\\\\\\"\\""', "a text")],
)  # fmt: skip
def test_arguments_that_are_no_object_are_a_problem_and_a_call(arguments: object, kind: str) -> None:
    found = find(structured(("f", arguments), ("g", {})))
    assert found == Found(structured=True, problem=f"arguments that are no object: those of f are {kind}")


@pytest.mark.parametrize("name", [None, 3, ["f"], {}])
def test_a_call_whose_name_is_no_text_is_a_problem(name: object) -> None:
    found = find(structured((name, {})))
    assert found.structured
    assert found.problem.startswith("a call without a name: it is ")


def test_arguments_nested_too_deep_are_a_problem() -> None:
    assert "too deep" in find(structured(("f", "[" * 100_000))).problem


def test_a_call_without_arguments_has_none() -> None:
    assert find(Answer(tool_calls=({"function": {"name": "f"}},))).calls == (("f", {}),)
    assert find(Answer(tool_calls=({"function": {}},))).calls == (("", {}),)


def test_tool_calls_go_before_text() -> None:
    answer = Answer("g(a=1)", "thinking", ({"function": {"name": "f", "arguments": "{}"}},))
    assert find(answer).calls == (("f", {}),)


@pytest.mark.parametrize(
    "text",
    ['[{"function": {"name": "f", "arguments": "{\\"a\\": 1}"}}]', ' [{"name": "f", "arguments": {"a": 1}}]\n',
     '[{"name": "f", "arguments": "{\\"a\\": 1}"}]', "I call f(a=1) now."],
)  # fmt: skip
def test_calls_are_found_in_text(text: str) -> None:
    found = find(Answer(text))
    assert found.calls == (("f", {"a": 1}),)
    assert found.structured == ('"function"' in text)


def test_the_text_is_reasoning_and_content() -> None:
    assert find(Answer("a=1)", "f(")).calls == (("f", {"a": 1}),)


def test_tool_calls_of_another_form_are_read_as_text() -> None:
    found = find(Answer(tool_calls=({"name": "f", "arguments": {"a": 1}},)))
    assert found == Found((("f", {"a": 1}),))


@pytest.mark.parametrize("text", ["", "  ", "[]", "{}", "null", "[1]", "No function helps.", '[{"function": 1}]'])
def test_there_may_be_no_call(text: str) -> None:
    assert find(Answer(text)) == Found()


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("f()", [("f", {})]),
        ("f(a='x', b=[1, 2], c={'d': None}, e=(1, 2), g=True)",
         [("f", {"a": "x", "b": [1, 2], "c": {"d": None}, "e": [1, 2], "g": True})]),
        ("f(a=g(b=1))", [("f", {"a": "g(b=1)"})]),  # what is no literal is its text, and no call of its own
        ("f(a=x + 1)", [("f", {"a": "x + 1"})]),
        ("print(f(a=1))", [("f", {"a": 1})]),
        ("f(city, days: int) and g(a=1)", [("g", {"a": 1})]),  # a declaration
        ("f(,)", []),
        ("f(1, a=2)", [("f", {"a": 2})]),
        ("f(**{'a': 1})", [("f", {})]),
        ("f(a=')', b='it\\'s (')", [("f", {"a": ")", "b": "it's ("})]),
        ('f(a="(") g(b=2)', [("f", {"a": "("}), ("g", {"b": 2})]),
        ("f(a=1 g(b=2)", [("g", {"b": 2})]),  # the first is never closed
        ("f(a='1)", []),
        ("f(a=1 b=2)", [("f", {"_raw": "a=1 b=2"})]),
        ("f (a=1)", [("f", {"a": 1})]),
        ("f(a='\\d')", [("f", {"a": "\\d"})]),  # Python warns of the escape
        ("This (is a sentence) with for (x) and while (y=1)", []),
    ],
)  # fmt: skip
def test_calls_written_out(text: str, wanted: list[tuple[str, object]]) -> None:
    assert list(find(Answer(text)).calls) == wanted


@pytest.mark.parametrize("text", ["f(a={[]: 1})", "f(a={1, 2})", "f(a=b'x')", "f(a=1j)"])
def test_values_that_are_no_json_are_a_problem(text: str) -> None:
    assert "no JSON" in find(Answer(text)).problem


@given(st.text(alphabet="fg(),='\"\\ a1:{}[]", max_size=40))
def test_any_text_is_read(text: str) -> None:
    found = find(Answer(text))
    assert not found.structured
    json.dumps(found.calls)


@given(st.lists(JSON, max_size=3))
def test_whatever_a_server_sends_as_tool_calls_is_read(calls: list[object]) -> None:
    data = json.dumps({"content": None, "tool_calls": calls}).encode()
    json.dumps(find(read_answer(data)).calls)


@given(st.binary(max_size=60) | JSON.map(lambda value: json.dumps(value).encode()))
def test_bytes_are_a_reply_or_none(data: bytes) -> None:
    try:
        read_answer(data)
    except ValueError:
        return


@pytest.mark.parametrize(
    "data",
    [b"", b"text", b"[]", b"\xff", b'{"content": 3}', b'{"reasoning": []}', b'{"tool_calls": {}}', b"[" * 100_000],
)
def test_what_is_no_reply(data: bytes) -> None:
    if data == b'{"tool_calls": {}}':
        assert read_answer(data) == Answer()
        return
    with pytest.raises(ValueError):
        read_answer(data)


def test_a_reply_as_it_is_logged() -> None:
    data = b'{"content":null,"reasoning":"so","tool_calls":[{"id":"c0","function":{"name":"f","arguments":"{}"}}]}'
    assert read_answer(data) == Answer("", "so", ({"id": "c0", "function": {"name": "f", "arguments": "{}"}},))
