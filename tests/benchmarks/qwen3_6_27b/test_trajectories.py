from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.benchmarks.qwen3_6_27b.trajectories import Trajectory, Turn
from harness.errors import DatasetError
from tests.benchmarks.qwen3_6_27b.made import TOOLS, assembled, assistant, call, demo, one, tool, user


def refused(rows: list[dict[str, Any]], *parts: str) -> None:
    with pytest.raises(DatasetError) as caught:
        assembled(rows)
    for part in parts:
        assert part in str(caught.value)
    assert caught.value.mend


def test_a_conversation_becomes_turns() -> None:
    found = one(demo())
    assert (found.id, found.system) == ("demo-1", "You drive a shell.")
    first, second = found.turns
    assert (first.number, second.number) == (1, 3)
    assert first.said == ({"role": "user", "content": "Question 1"},)
    assert second.said == ({"role": "tool", "content": "Result 3", "tool_call_id": "c0"},)
    assert first.recorded == {
        "role": "assistant",
        "tool_calls": [call("ls tests | wc -l")],
        "reasoning_content": "Look first.",
    }
    assert second.recorded == {"role": "assistant", "content": "There is one test."}
    assert (first.delay_ns, second.delay_ns) == (0, 250_000_000)
    assert (first.asked, second.asked) == ({"tools": TOOLS}, {})
    assert found.history(0) == [*first.said]
    assert found.history(1) == [*first.said, first.recorded, *second.said]


def test_parallel_results_are_messages_of_one_turn() -> None:
    results = [{"tool_call_id": f"c{i}", "content": str(i)} for i in range(3)]
    turn = one([*demo()[:2], tool(3, tool_results=results)]).turns[1]
    assert [message["tool_call_id"] for message in turn.said] == ["c0", "c1", "c2"]
    assert turn.recorded is None


def test_a_turn_that_follows_results_of_tools_without_an_answer() -> None:
    found = one([*demo()[:3], user(4), assistant(5)])
    assert [turn.number for turn in found.turns] == [1, 3, 4]
    assert found.turns[1].recorded is None
    assert [message["role"] for message in found.history(2)] == ["user", "assistant", "tool", "user"]


def test_the_first_system_prompt_that_is_not_empty_is_that_of_all() -> None:
    assert one([user(system=""), assistant(2, content="x", system="B"), user(3, system="C")]).system == "B"
    assert one([user()]).system is None


def test_codes_of_intents() -> None:
    turn = one([user(), assistant(content="x", intent_codes=["i001", "I002", None, "", 3])]).turns[0]
    assert turn.intents == {"I001", "I002"}


def test_metadata_and_what_means_nothing() -> None:
    meta = {"_type": "dataset_metadata", "made_by": "hand"}
    found = assembled([meta, user(1, "a", colour=1), meta, user(1, "b", colour=2, size=3), assistant(2, "b")])
    assert [trajectory.id for trajectory in found.all] == ["a", "b"]
    assert found.metadata == (meta, meta)
    assert found.unread == ("user.colour", "user.size")


@pytest.mark.parametrize("rows", [[], [{"_type": "dataset_metadata"}]])
def test_a_file_without_conversations(rows: list[dict[str, Any]]) -> None:
    refused(rows, "there is no conversation in the file", "made")


def test_rows_that_do_not_lie_together() -> None:
    refused([user(1, "a"), user(1, "b"), assistant(2, "a")], "'a' do not lie together", "line 3", "turn 2")


@pytest.mark.parametrize(
    ("turns", "said"),
    [
        ((1, 3), "turn 3 stands where turn 2 is due"),
        ((1, 1), "turn 1 stands where turn 2 is due"),
        ((2, 3), "turn 2 stands where turn 1 is due"),
        ((2, 1), "turn 2 stands where turn 1 is due"),
    ],
)
def test_gaps_in_turns(turns: tuple[int, int], said: str) -> None:
    refused([user(turns[0]), assistant(turns[1])], said, "conversation 'demo-1'")


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([assistant(1)], "a row of role assistant is the first"),
        ([tool(1)], "a row of role tool is the first"),
        ([user(1), user(2)], "a row of role user follows one of role user"),
        ([user(1), tool(2)], "a row of role tool follows one of role user"),
        ([user(1), assistant(2), assistant(3)], "a row of role assistant follows one of role assistant"),
        ([*demo()[:3], tool(4)], "a row of role tool follows one of role tool"),
        ([user(1), assistant(2), tool(3)], "a tool row follows an assistant row that calls no tool"),
        ([*demo()[:2], user(3)], "a user row follows an assistant row whose tools gave no results"),
    ],
)
def test_an_order_of_roles_that_is_none(rows: list[dict[str, Any]], said: str) -> None:
    refused(rows, said, f"line {len(rows)}, conversation 'demo-1', turn {len(rows)}")


def test_invariants() -> None:
    with pytest.raises(ValueError, match="not a turn"):
        Turn(0, ({"role": "user"},), None, {}, 0, frozenset())
    turn = one([user()]).turns[0]
    for id_, turns in (("", (turn,)), ("a", ()), ("a", (turn, turn))):
        with pytest.raises(ValueError, match="not a trajectory"):
            Trajectory(id_, None, turns)


ROWS = [user, assistant, tool]


@given(st.lists(st.tuples(st.sampled_from(ROWS), st.integers(1, 4), st.sampled_from(["a", "b"])), max_size=8))
def test_any_rows_make_trajectories_or_are_refused(drawn: list[tuple[Any, int, str]]) -> None:
    rows = [make(turn, name) for make, turn, name in drawn]
    try:
        found = assembled(rows)
    except DatasetError as error:
        assert error.where
        return
    assert sum(len(each.turns) for each in found.all) == sum(row["role"] != "assistant" for row in rows)
    for each in found.all:
        assert len(each.history(len(each.turns) - 1)) >= len(each.turns)
