from __future__ import annotations

from collections import Counter
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.benchmarks.qwen3_6_27b.commands import PROGRAMS, programs
from harness.benchmarks.qwen3_6_27b.inline import InlineScore, Issued, Part, intent, scorable, score, turn_score
from harness.benchmarks.qwen3_6_27b.trajectories import Trajectory
from tests.benchmarks.qwen3_6_27b.made import assistant, call, one, tool, user


def of(*scripts: str) -> dict[str, int]:
    return dict(programs([call(script) for script in scripts]))


@pytest.mark.parametrize(
    ("script", "found"),
    [
        ("ls", {"ls": 1}),
        ("ls | ls ; ls && ls || ls\nls", {"ls": 6}),
        ("/usr/bin/python3.11 -m pytest", {"python": 1}),
        ("PYTHON3 x.py; python3.11.2 y.py; py z.py", {"python": 3}),
        ("egrep a b | rg c | ag d", {"grep": 3}),
        ("A=1 B_2=x sudo env time nice exec command cat x", {"cat": 1}),
        ("timeout 5 python x", {"timeout": 1}),
        (". venv/bin/activate", {"source": 1}),
        ("cd x && echo y; npm test", {}),
        ("grep 'a | python b' c", {"grep": 1}),
        ('grep "a; \\" | sed b" c', {"grep": 1}),
        ("cat `find . -name x`", {"cat": 1}),
        ("'python' x", {}),
        ("git log & ls", {"git": 1}),
        ("echo $(ls)", {}),
        ("it's | ls", {"ls": 1}),
        ("A=1", {}),
        ("", {}),
        ("sphinx-build . | less", {"sphinx": 1, "cat": 1}),
        ("python3.1.2.3 x", {}),
        ("Sudo ls", {}),
    ],
)
def test_the_programs_of_a_script(script: str, found: dict[str, int]) -> None:
    assert of(script) == found


def test_programs_of_several_calls_are_counted_together() -> None:
    assert of("ls", "ls | wc") == {"ls": 2, "wc": 1}


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        ({"command": "ls"}, {"ls": 1}),
        ({"cmd": "ls"}, {"ls": 1}),
        ({"command": "", "cmd": "ls"}, {"ls": 1}),
        ({"command": "cat", "cmd": "ls"}, {"cat": 1}),
        ({"command": ["ls"], "cmd": "ls"}, {}),
        ('{"cmd": "ls"}', {"ls": 1}),
        ('{"cmd": "ls \\ud800"}', {"ls": 1}),
        ('{"cmd": "ls"', {}),
        ('["ls"]', {}),
        ("[" * 100_000, {}),
        ("", {}),
        (None, {}),
        (7, {}),
    ],
    ids=lambda value: str(value)[:30],
)
def test_arguments_as_models_send_them(arguments: Any, found: dict[str, int]) -> None:
    assert programs([call("", arguments=arguments)]) == Counter(found)


@pytest.mark.parametrize(
    "calls",
    [None, "ls", {}, [None], ["ls"], [{}], [{"function": None}], [{"function": "bash"}], [call("ls", name="python")]],
    ids=str,
)
def test_what_is_no_call_of_bash_runs_nothing(calls: Any) -> None:
    assert not programs(calls)


@given(st.text(max_size=40))
def test_any_script_runs_only_programs_that_count(script: str) -> None:
    assert set(of(script)) <= set(PROGRAMS.values())


def coding(*scripts: str, name: str = "demo-1") -> Trajectory:
    """One turn a script, then one without a recorded answer."""
    rows: list[dict[str, Any]] = [user(1, name)]
    for place, script in enumerate(scripts, 1):
        rows += [assistant(2 * place, name, tool_calls=[call(script)]), tool(2 * place + 1, name)]
    return one(rows)


def said(*scripts: str) -> dict[str, Any]:
    return {"content": "", "tool_calls": [call(script) for script in scripts]}


@pytest.mark.parametrize(
    ("recorded", "answered", "wanted"),
    [
        ("ls | wc", ["ls | wc"], Fraction(1)),
        ("ls | wc", ["wc", "ls"], Fraction(1)),
        ("ls | wc", ["ls"], Fraction(1, 2)),
        ("ls", ["ls | ls | cat"], Fraction(1, 3)),
        ("ls | ls", ["ls"], Fraction(1, 2)),
        ("ls", ["cat"], Fraction(0)),
        ("ls", [], Fraction(0)),
    ],
)
def test_a_turn_scores_its_intersection_over_its_union(recorded: str, answered: list[str], wanted: Fraction) -> None:
    trajectory = coding(recorded)
    assert turn_score(trajectory, trajectory.turns[0], said(*answered)) == wanted


def test_a_turn_without_an_answer_scores_nothing() -> None:
    trajectory = coding("ls")
    assert turn_score(trajectory, trajectory.turns[0], None) == 0


def test_what_has_nothing_to_compare() -> None:
    trajectory = coding("cd x", "ls")
    assert [scorable(trajectory, turn) for turn in trajectory.turns] == [False, True, False]
    with pytest.raises(ValueError, match="turn 1 of 'demo-1' has nothing to compare"):
        turn_score(trajectory, trajectory.turns[0], said("ls"))


def test_the_score_is_the_mean_over_what_was_issued() -> None:
    trajectory = coding("ls", "cat x", "cd y")
    turns = [Issued(trajectory, place, answer) for place, answer in enumerate([said("ls"), None, said("ls"), said()])]
    wanted = InlineScore(0.5, issued=3, scored=2, missing=1, domains={"coding": Part(0.5, 2)})
    assert score(turns) == wanted
    assert score(turns[:1]).score == 1.0
    assert score(turns[2:]) == InlineScore(None, 1, 0, 0, {})
    assert score([]).score is None
    repeated = score([*turns, *turns[:1]])
    assert (repeated.score, repeated.scored) == (pytest.approx(2 / 3), 3)


def test_replaying_what_was_recorded_gives_exactly_one() -> None:
    trajectory = coding(*["ls | ls | cat a; python b"] * 7)
    answers = [turn.recorded for turn in trajectory.turns]
    assert score(Issued(trajectory, place, answer) for place, answer in enumerate(answers)).score == 1.0


def workflow(*codes: str) -> Trajectory:
    return one([user(1, "sim_7"), assistant(2, "sim_7", content="x", intent_codes=list(codes))])


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        ({"content": "final intent: I042"}, "I042"),
        ({"content": "Intent:i042"}, "I042"),
        ({"reasoning_content": "intent: I001", "content": "intent: I002"}, "I001"),
        ({"reasoning": "I009", "content": "intent: I002"}, "I002"),
        ({"content": "I001, no: I002"}, "I002"),
        ({"reasoning": "I003 and I004", "content": "I005"}, "I004"),
        ({"content": "i001"}, None),
        ({"content": "I0011 XI001"}, None),
        ({"content": None, "reasoning": 3}, None),
        ({}, None),
    ],
    ids=str,
)
def test_the_intent_of_an_answer(answer: dict[str, Any], found: str | None) -> None:
    assert intent(answer) == found
    trajectory = workflow("i042", "I005")
    assert turn_score(trajectory, trajectory.turns[0], answer) == (found in ("I042", "I005"))


def test_workflows_and_coding_apart() -> None:
    flow, code = workflow("I001"), coding("ls")
    found = score([Issued(flow, 0, {"content": "I001"}), Issued(code, 0, said("cat"))])
    assert (found.score, found.domains) == (0.5, {"coding": Part(0.0, 1), "workflow": Part(1.0, 1)})
    assert score([Issued(workflow(), 0, {"content": "I001"})]).scored == 0
    other = one([user(1, "sim_7b"), assistant(2, "sim_7b", content="x", intent_codes=["I001"])])
    assert score([Issued(other, 0, {"content": "I001"})]).scored == 0


@given(st.lists(st.sampled_from(["ls", "cat x", "cd y", "python z | wc"]), min_size=1, max_size=4), st.data())
def test_a_score_is_between_nothing_and_one(scripts: list[str], data: st.DataObject) -> None:
    trajectory = coding(*scripts)
    answers = data.draw(st.lists(st.none() | st.sampled_from(["ls", "wc", "x"]).map(said), max_size=len(scripts)))
    found = score(Issued(trajectory, place, answer) for place, answer in enumerate(answers))
    assert found.issued == len(answers)
    assert 0 <= found.missing <= found.scored <= found.issued
    assert found.score is None or 0 <= found.score <= 1
