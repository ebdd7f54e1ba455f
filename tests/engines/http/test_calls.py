"""Tool calls as servers tell them, put together."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.engines.base import Finish
from harness.engines.http.chat import ChatReader
from harness.engines.http.problems import BadAnswer
from tests.engines.http.play import DONE, MODEL, frame

LOOK = {"id": "a", "type": "function", "function": {"name": "look", "arguments": '{"at":"sky"}'}}
WAIT = {"id": "b", "type": "function", "function": {"name": "wait", "arguments": "{}"}}


def part(index: object = "none", /, identity: str | None = None, **function: Any) -> dict[str, Any]:
    told: dict[str, Any] = {"function": function}
    if index != "none":
        told["index"] = index
    return told | ({"id": identity, "type": "function"} if identity else {})


def read(*deltas: dict[str, Any], finish: str = "tool_calls", whole: bool = False) -> tuple[dict[str, Any], Finish]:
    reader = ChatReader(MODEL, 64)
    key = "message" if whole else "delta"
    said = [{"choices": [{key: each, "finish_reason": None}]} for each in deltas]
    said[-1]["choices"][0]["finish_reason"] = finish
    said[-1]["usage"] = {"completion_tokens": 30}  # type: ignore[assignment]  # beside the choices
    if whole:
        (content,) = said
        reply = reader.whole(json.dumps(content).encode())
    else:
        for content in said:
            reader.feed(frame(content))
        reader.feed(DONE)
        reply = reader.finish()
    assert reader.first is not None
    return json.loads(reply.data), reply.finish


def calls(*deltas: list[dict[str, Any]]) -> list[dict[str, Any]]:
    found, finish = read(*({"tool_calls": each} for each in deltas))
    assert finish is Finish.TOOL_CALLS
    assert found["content"] == ""
    return list(found["tool_calls"])


def test_pieces_go_together_by_index() -> None:
    found, finish = read(
        {"role": "assistant", "content": None},
        {"content": "I look. "},
        {"tool_calls": [part(0, "a", name="look", arguments="")]},
        {"tool_calls": [part(0, arguments='{"at":'), part(1, "b", name="wait", arguments=None)]},
        {"tool_calls": [part(1, arguments="{}"), part(0, arguments='"sky"}')]},
    )
    assert (found, finish) == ({"content": "I look. ", "tool_calls": [LOOK, WAIT]}, Finish.TOOL_CALLS)


def test_calls_are_in_order_of_their_index() -> None:
    wait, look = part(1, "b", name="wait", arguments="{}"), part(0, "a", name="look", arguments='{"at":"sky"}')
    assert calls([wait], [look]) == [LOOK, WAIT]


@pytest.mark.parametrize("index", ["none", None])
def test_pieces_without_index(index: object) -> None:
    begins = part(index, "a", name="look", arguments='{"at":')
    then = part(index, "b", name="wait", arguments="{}")
    assert calls([begins], [part(index, arguments='"sky"}')], [then]) == [LOOK, WAIT]
    assert calls([begins, part(index, arguments='"sky"}'), then]) == [LOOK, WAIT]
    assert calls([begins], [then], [part(index, "a", arguments='"sky"}')]) == [LOOK, WAIT]


@pytest.mark.parametrize("index", ["none", None, 0])
def test_whole_calls_that_share_an_index_or_have_none(index: object) -> None:
    look = part(index, "a", name="look", arguments='{"at":"sky"}')
    wait = part(index, "b", name="wait", arguments="{}")
    assert calls([look], [wait]) == calls([look, wait]) == [LOOK, WAIT]


def test_calls_without_ids() -> None:
    found = calls([part(name="look", arguments="{}"), part(name="look", arguments="{}")], [part(name="wait")])
    assert [(call["id"], call["function"]["name"]) for call in found] == [
        (None, "look"),
        (None, "look"),
        (None, "wait"),
    ]
    assert [call["function"]["arguments"] for call in found] == ["{}", "{}", ""]


def test_an_id_or_name_that_comes_again_with_every_piece() -> None:
    again = [[part(0, "a", name="look", arguments=piece)] for piece in ('{"at":', '"sky"', "}")]
    assert calls(*again) == [LOOK]
    nameless = [[part(0, "x", arguments=piece)] for piece in ('"sky"', "}")]  # a new id with every piece
    assert calls([part(0, "a", name="look", arguments='{"at":')], *nameless) == [LOOK]
    unnamed = [[part(0, name="look", arguments=piece)] for piece in ('{"at":', '"sky"}')]
    assert calls(*unnamed) == [LOOK | {"id": None}]


def test_arguments_as_objects_are_kept_as_text() -> None:
    found = calls([part(0, "a", name="look", arguments={"at": "größe"})], [part(1, "b", name="wait", arguments={})])
    assert [json.loads(call["function"]["arguments"]) for call in found] == [{"at": "größe"}, {}]
    assert all(isinstance(call["function"]["arguments"], str) for call in found)
    assert calls([part(0, "a", name="look", arguments="")], [part(0, arguments={"at": 1})])[0]["function"] == {
        "name": "look",
        "arguments": '{"at":1}',
    }


def test_a_whole_message() -> None:
    for finish in ("stop", "tool_calls"):  # "stop" with calls ended by them
        found, ended = read({"content": None, "tool_calls": [LOOK, WAIT]}, finish=finish, whole=True)
        assert (found["tool_calls"], ended) == ([LOOK, WAIT], Finish.TOOL_CALLS)
    cut, ended = read({"content": "", "tool_calls": [LOOK]}, finish="length", whole=True)
    assert (cut["tool_calls"], ended) == ([LOOK], Finish.LENGTH)


def test_a_whole_message_with_arguments_as_objects() -> None:
    told = [{**LOOK, "function": {"name": "look", "arguments": {"at": "sky"}}}, {**WAIT, "index": None}]
    found, _ = read({"content": None, "tool_calls": told}, whole=True)
    assert found["tool_calls"] == [LOOK, WAIT]


def test_the_older_way_of_calling_a_function() -> None:
    pieces = [{"function_call": each} for each in ({"name": "look", "arguments": ""}, {"arguments": '{"at":"sky"}'})]
    found, finish = read(*pieces, finish="function_call")
    assert (found["tool_calls"], finish) == ([LOOK | {"id": None}], Finish.TOOL_CALLS)


@pytest.mark.parametrize(
    "wrong",
    [
        [5],
        {"a": 1},
        [{"index": "x"}],
        [{"id": 7}],
        [{"function": "look"}],
        [part(0, name=["look"])],
        [part(0, "a", name="look", arguments="{"), part(0, arguments={})],
    ],
)
def test_what_is_no_call(wrong: Any) -> None:
    with pytest.raises(BadAnswer, match="no chat completion") as caught:
        read({"tool_calls": wrong})
    assert caught.value.kind == "bad_answer"


@given(texts=st.lists(st.text(min_size=1), min_size=1, max_size=4), size=st.integers(1, 7), data=st.data())
def test_any_arguments_in_pieces_of_calls_that_take_turns(texts: list[str], size: int, data: st.DataObject) -> None:
    left = {place: [text[at : at + size] for at in range(0, len(text), size)] for place, text in enumerate(texts)}
    deltas = [[part(place, f"id{place}", name=f"f{place}") for place in left]]
    while left:
        place = data.draw(st.sampled_from(sorted(left)))
        deltas.append([part(place, arguments=left[place].pop(0))])
        if not left[place]:
            del left[place]
    assert [call["function"]["arguments"] for call in calls(*deltas)] == texts
