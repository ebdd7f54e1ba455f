"""Which turns are asked when: without an engine, and on a clock that the tests set."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.clients.loadgen.turn_order import Trajectory, TurnOrder


def trajectory(sample: int, begin: int, turns: int) -> Trajectory:
    return Trajectory(100 + sample, sample, sample, begin, begin + turns, begin)


def chats(due: list[Trajectory]) -> list[int]:
    return [each.chat for each in due]


def test_turns_of_one_trajectory_wait_for_each_other() -> None:
    order = TurnOrder(4)
    one = trajectory(0, 10, 3)
    order.add(one)
    assert chats(order.due(0)) == [10]
    assert order.due(1) == []
    assert not order.answered(one, 2)
    assert (one.chat, one.turn) == (11, 1)
    assert chats(order.due(2)) == [11]
    assert not order.answered(one, 3)
    assert chats(order.due(3)) == [12]
    assert order.answered(one, 4)
    assert order.due(5) == []
    assert order.under_way == 0


def test_as_many_are_under_way_as_may_be_and_in_the_order_of_issue() -> None:
    order = TurnOrder(2)
    three = [trajectory(sample, 10 * sample, 1 + sample % 2) for sample in range(3)]
    for each in three:
        order.add(each)
    assert chats(order.due(0)) == [0, 10]
    assert order.under_way == 2
    assert not order.answered(three[1], 1)
    assert chats(order.due(1)) == [11]
    assert order.answered(three[0], 2)
    assert chats(order.due(2)) == [20]
    assert order.due(2) == []


def test_a_failed_trajectory_makes_room_and_is_asked_no_more() -> None:
    order = TurnOrder(1)
    first, second = trajectory(0, 0, 3), trajectory(1, 3, 1)
    order.add(first)
    order.add(second)
    assert order.due(0) == [first]
    order.failed(first)
    assert order.due(1) == [second]
    assert order.answered(second, 2)
    assert order.due(3) == []


def test_a_tool_takes_its_time_and_holds_its_place() -> None:
    order = TurnOrder(1, delays_ns=[7_000, 5_000, 0, 0])
    one, other = trajectory(0, 0, 3), trajectory(1, 3, 1)
    order.add(one)
    order.add(other)
    assert order.due(0) == [one]  # what stands at a first turn comes after nothing
    assert order.wait_s(1.0, 0) == 1.0
    assert not order.answered(one, 1_000)
    assert order.due(5_999) == []
    assert order.under_way == 1
    assert order.wait_s(1.0, 5_000) == pytest.approx(1e-6)
    assert order.wait_s(0.0, 5_000) == 0
    assert order.wait_s(1.0, 9_000) == 0
    assert order.due(6_000) == [one]
    assert not order.answered(one, 7_000)
    assert order.due(7_000) == [one]
    assert order.answered(one, 8_000)
    assert order.due(8_000) == [other]


def test_tools_that_end_together_are_due_together() -> None:
    order = TurnOrder(9, delays_ns=[0, 50] * 3)
    three = [trajectory(sample, 2 * sample, 2) for sample in range(3)]
    for each in three:
        order.add(each)
    assert order.due(0) == three
    for each in reversed(three):
        assert not order.answered(each, 0)
    assert order.due(49) == []
    assert order.due(50) == three


def test_there_is_room_for_one_at_least() -> None:
    with pytest.raises(ValueError, match="0 trajectories at once"):
        TurnOrder(0)


@settings(max_examples=60, deadline=None)
@given(data=st.data(), turns=st.lists(st.integers(1, 4), min_size=1, max_size=8), most=st.integers(1, 4))
def test_every_turn_is_asked_once_in_its_place_unless_one_failed(
    data: st.DataObject, turns: list[int], most: int
) -> None:
    begins = [sum(turns[:sample]) for sample in range(len(turns))]
    delays = data.draw(st.lists(st.sampled_from([0, 0, 3, 40]), min_size=sum(turns), max_size=sum(turns)))
    order = TurnOrder(most, delays)
    for sample, (begin, count) in enumerate(zip(begins, turns, strict=True)):
        order.add(trajectory(sample, begin, count))
    now, out, asked, may_be_asked_at, failed = 0, [], [], dict.fromkeys(range(sum(turns)), 0), set()
    while True:
        due = order.due(now)
        for each in due:
            assert now >= may_be_asked_at[each.chat]
            asked.append(each.chat)
        out += due
        assert len({each.sample for each in out}) == len(out) <= order.under_way <= most
        if not out:
            wait_s = order.wait_s(1e9, now)
            if wait_s == 1e9:
                break
            now += round(wait_s * 1e9)
            continue
        each = out.pop(data.draw(st.integers(0, len(out) - 1)))
        now += data.draw(st.integers(0, 9))
        if data.draw(st.integers(0, 9)) == 0:
            failed |= set(range(each.chat + 1, each.end))
            order.failed(each)
        elif not order.answered(each, now):
            may_be_asked_at[each.chat] = now + delays[each.chat]
    assert order.under_way == 0
    assert sorted(asked) == sorted(set(range(sum(turns))) - failed)
    of_each = [
        [chat for chat in asked if begin <= chat < begin + count] for begin, count in zip(begins, turns, strict=True)
    ]
    assert all(chats == sorted(chats) for chats in of_each)
    assert [chat for chat in asked if chat in begins] == begins
