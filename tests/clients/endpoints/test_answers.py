"""What came back: words, reasoning, and calls of tools, whole or in pieces."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.clients.endpoints.answers import Came, came
from harness.clients.endpoints.events import Phase, digest

CALL = {"id": "c0", "type": "function", "function": {"name": "bash", "arguments": '{"command": "ls"}'}}
PIECES = [
    [{"index": 0, "id": "c0", "type": "function", "function": {"name": "bash", "arguments": ""}}],
    [{"index": 0, "function": {"arguments": '{"command": '}}],
    [{"index": 0, "function": {"arguments": '"ls"}'}}],
]


def test_reasoning_stands_before_the_content() -> None:
    answer = came(["TextModelOutput", ["b", "c"], "a"])
    assert answer == Came("bc", "a")
    assert answer is not None
    assert (answer.text, answer.empty) == ("abc", False)
    assert came(["TextModelOutput", "b"]) == Came("b")
    assert came(None) is came([]) is None


@pytest.mark.parametrize("calls", [PIECES, [CALL]], ids=["in pieces", "whole"])
def test_calls_are_put_together(calls: list[object]) -> None:
    answer = came(["TextModelOutput", "", None, calls])
    assert answer is not None
    assert answer.calls == (CALL,)
    assert answer.message == {"tool_calls": [CALL]}
    assert json.loads(answer.reply) == answer.message
    assert not answer.empty  # nothing is said, and a tool is called: that is an answer


@pytest.mark.parametrize("calls", [None, [], [[]], 3, "x", [3], [[None]], [{"index": "x"}], [[{"function": 3}]]])
def test_what_are_no_calls_are_none(calls: object) -> None:
    answer = came(["TextModelOutput", [], None, calls])
    assert answer is not None
    assert (answer.calls, answer.empty) == ((), True)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(["index", "id", "function"]), inner),
    max_leaves=12,
)


@given(JSON)
def test_any_completion_is_an_answer_or_none(data: object) -> None:
    answer = came(data)
    assert answer is None or isinstance(json.loads(answer.reply), dict)


def test_nulls_and_the_order_of_keys_make_no_other_request() -> None:
    asked = [{"role": "assistant", "content": None, "tool_calls": [CALL]}]
    same = [{"tool_calls": [CALL], "role": "assistant"}]
    assert digest(asked, None) == digest(same, None)
    assert digest(asked, None) != digest(same, [])
    assert digest(asked, None) != digest([*same, *same], None)


def phase(times: list[tuple[int, int]], **more: object) -> Phase:
    issued, done = zip(*times, strict=True)
    count = len(times)
    columns = {"rows": np.arange(count), "first_ns": np.full(count, -1), "errors": {}, "answers": (None,) * count}
    found = {"issued_ns": np.array(issued, np.int64), "done_ns": np.array(done, np.int64), **columns, **more}
    return Phase(**found)  # type: ignore[arg-type]  # columns of several types


@pytest.mark.parametrize(
    ("times", "most"), [([(0, 5), (5, 9)], 1), ([(0, 5), (4, 9)], 2), ([(0, 9), (1, 2), (2, 3)], 2), ([(0, -1)], 0)]
)
def test_how_many_were_under_way_at_once(times: list[tuple[int, int]], most: int) -> None:
    assert phase(times).most_at_once == most


def test_only_whole_answers_have_a_latency() -> None:
    four = [(0, 10), (10, 11), (11, 13), (13, -1)]
    made = phase(four, errors={1: "error: HTTP 500"}, cut=frozenset({2}))
    assert made.answered.tolist() == [True, False, False, False]
    assert (made.answered_ns.tolist(), made.latencies_ns.tolist()) == ([10], [10, 1, 2])
