"""The scripted engine where turns of trajectories are asked: replies with calls and reasoning, faults at any turn."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.benchmarks.scripts import ScriptedReplies
from harness.engines.base import (
    NOT_TOLD,
    Event,
    Failure,
    Finish,
    PromptTable,
    Replies,
    Requests,
    Sampling,
    TokenEvents,
    Workload,
)
from harness.engines.bodies import BodyStore
from harness.engines.scripted import ScriptedCore
from harness.engines.scripted_chats import _cut
from harness.engines.scripted_settings import Faults, ScriptedSettings, ServiceTime
from harness.errors import ConfigError
from tests.engines.test_scripted import MS, Clock, run_out

TURNS = [3, 2, 4]
"""Of each trajectory."""


def call(name: str, arguments: str) -> dict[str, Any]:
    return {"id": f"call_{name}", "type": "function", "function": {"name": name, "arguments": arguments}}


CALLS = {"content": "", "reasoning": "I look.", "tool_calls": [call("look", '{"at":"sky"}'), call("wait", "{}")]}
TALKS = {"content": "The sky is grün.", "reasoning": "So."}


@pytest.fixture
def chats(tmp_path: Path) -> BodyStore:
    sessions = [session for session, turns in enumerate(TURNS) for _ in range(turns)]
    bodies = [{"messages": [{"role": "user", "content": f"{row}"}]} for row in range(len(sessions))]
    counted = [100 * row for row in range(len(sessions))]  # the first was not counted
    return BodyStore.write(tmp_path / "chats", bodies, sessions, counted, session_names=["a", "b", "c"])


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    replies = [json.dumps(CALLS if row % 2 else TALKS).encode() for row in range(sum(TURNS))]
    path = tmp_path / "answers.npz"
    ScriptedReplies.packed(replies, [20] * len(replies)).write(path)
    return path


def ask(chats: BodyStore, *rows: int, cap: int = 100) -> Requests:
    workload = Workload("perf", Sampling(0.7, 0.8, 20, cap, (), 0), TokenEvents.FIRST, str(chats.path))
    return Requests(workload, [100 + row for row in rows], rows, PromptTable.empty(0), ())


def told(events: list[Event]) -> dict[int, tuple[dict[str, Any], int, int, int]]:
    """Reply, tokens, tokens of the prompt and finish, by row."""
    found = {}
    for event in events:
        if isinstance(event, Replies):
            assert event.cached_tokens == () and max(event.first_ns) <= min(event.done_ns)
            begins = [0, *event.ends]
            for i, number in enumerate(event.numbers):
                reply = json.loads(event.data[begins[i] : begins[i + 1]])
                found[number - 100] = reply, event.tokens[i], event.prompt_tokens[i], event.finish[i]
    return found


@pytest.mark.parametrize("timed", [True, False])
def test_replies_with_calls_are_told_whole(chats: BodyStore, recorded: Path, timed: bool) -> None:
    clock = Clock()
    settings = ScriptedSettings(answers={"perf": recorded}, first_token=ServiceTime(mean_s=0.1 if timed else 0))
    engine = ScriptedCore(settings, clock)
    engine.submit(ask(chats, 0, 1, 4))
    found = told([event for _, event in run_out(engine, clock)] if timed else engine.step())
    assert found == {
        0: (TALKS, 20, NOT_TOLD, Finish.STOP),
        1: (CALLS, 20, 100, Finish.TOOL_CALLS),
        4: (TALKS, 20, 400, Finish.STOP),
    }


@pytest.mark.parametrize("cap", range(1, 20))
def test_the_output_cap_falls_where_it_falls(chats: BodyStore, recorded: Path, cap: int) -> None:
    engine = ScriptedCore(ScriptedSettings(answers={"perf": recorded}), Clock())
    engine.submit(ask(chats, 0, 1, cap=cap))
    found = told(engine.step())
    assert all((tokens, finish) == (cap, Finish.LENGTH) for _, tokens, _, finish in found.values())
    assert all(any(reply.values()) for reply, *_ in found.values()), "a reply that was cut says something"
    assert all(whole["content"].startswith(found[row][0]["content"]) for row, whole in ((0, TALKS), (1, CALLS)))


def test_as_many_tokens_as_may_be_end_by_length(chats: BodyStore, recorded: Path) -> None:
    engine = ScriptedCore(ScriptedSettings(answers={"perf": recorded}), Clock())
    engine.submit(ask(chats, 1, cap=20))
    assert told(engine.step())[1] == (CALLS, 20, 100, Finish.LENGTH)


def test_a_call_is_cut_as_a_server_cuts_it() -> None:
    data = json.dumps(CALLS).encode()  # 7 characters of reasoning, 16 and 6 of calls
    assert json.loads(_cut(data, 29, 7)) == {"content": "", "reasoning": "I look."}
    look = call("look", '{"at":')
    assert json.loads(_cut(data, 29, 17)) == {"content": "", "reasoning": "I look.", "tool_calls": [look]}
    both = [call("look", '{"at":"sky"}'), call("wait", "")]
    assert json.loads(_cut(data, 29, 25)) == {"content": "", "reasoning": "I look.", "tool_calls": both}


texts = st.text(max_size=12)


@given(texts, texts, st.lists(st.tuples(st.text(min_size=1, max_size=5), texts), max_size=3), st.data())
def test_a_cut_never_tells_what_was_not_said(
    content: str, reasoning: str, calls: list[tuple[str, str]], data: st.DataObject
) -> None:
    whole = {"content": content, "reasoning": reasoning, "tool_calls": [call(*each) for each in calls]}
    tokens = data.draw(st.integers(2, 40))
    cut = json.loads(_cut(json.dumps(whole).encode(), tokens, data.draw(st.integers(1, tokens - 1))))
    assert content.startswith(cut["content"]) and reasoning.startswith(cut.get("reasoning", ""))
    assert bool(any(cut.values())) == bool(content or reasoning or calls)
    told_calls = cut.get("tool_calls", [])
    assert told_calls[:-1] == whole["tool_calls"][: max(0, len(told_calls) - 1)]
    for asked, got in zip(whole["tool_calls"], told_calls, strict=False):
        assert got["function"]["name"] == asked["function"]["name"]
        assert asked["function"]["arguments"].startswith(got["function"]["arguments"])
    if told_calls:
        assert (cut["content"], cut.get("reasoning", "")) == (content, reasoning)


@pytest.mark.parametrize("row", [0, 1, 4, 8])
@pytest.mark.parametrize("fault", ["fail", "empty", "hang", "slow"])
def test_a_fault_at_any_turn_is_of_that_turn_alone(chats: BodyStore, recorded: Path, row: int, fault: str) -> None:
    clock = Clock()
    faults = Faults(slow={row: 2.5}) if fault == "slow" else Faults(**{fault: frozenset({row})})
    engine = ScriptedCore(ScriptedSettings(answers={"perf": recorded}, faults={"perf": faults}), clock)
    ended: dict[int, Event] = {}
    found: dict[int, tuple[dict[str, Any], int, int, int]] = {}
    for turn in range(max(TURNS)):  # all trajectories take their next turn together
        rows = [chats.rows_of(session)[turn] for session, turns in enumerate(TURNS) if turn < turns]
        before = clock()
        engine.submit(ask(chats, *rows))
        events = [event for _, event in run_out(engine, clock)]
        found |= told(events)
        ended |= {event.number - 100: event for event in events if isinstance(event, Failure)}
        assert clock() - before == (2_500 * MS if fault == "slow" and row in rows else 0)
    assert set(ended) == ({row} if fault == "fail" else set())
    assert set(range(sum(TURNS))) - set(found) == ({row} if fault in ("fail", "hang") else set())
    for other, (reply, *_) in found.items():
        assert reply == ({"content": ""} if (other, fault) == (row, "empty") else CALLS if other % 2 else TALKS)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"reasoning": 5}, "the reasoning of reply 0 is no text"),
        ({"tool_calls": {"a": 1}}, "the tool calls of reply 0"),
        ({"tool_calls": [7]}, "the tool calls of reply 0"),
        ({"tool_calls": [{"function": {"name": "look", "arguments": {}}}]}, "the tool calls of reply 0"),
    ],
)
def test_replies_that_no_server_tells(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    path = tmp_path / "answers.npz"
    ScriptedReplies.packed([json.dumps({"content": "", **changes}).encode()], [1]).write(path)
    with pytest.raises(ConfigError, match=message):
        ScriptedCore(ScriptedSettings(answers={"perf": path}))


def test_counts_of_prompts_are_absent_where_none_was_counted(tmp_path: Path) -> None:
    store = BodyStore.write(tmp_path / "chats", [{"messages": [{"content": "x"}]}] * 2)
    engine = ScriptedCore(ScriptedSettings(), Clock())
    engine.submit(ask(store, 0, 1))
    (event,) = engine.step()
    assert isinstance(event, Replies)
    assert np.array(event.prompt_tokens).tolist() == [NOT_TOLD, NOT_TOLD]
