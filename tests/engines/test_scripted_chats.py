"""The scripted engine where chats are asked: what it replies, when, and what goes wrong by script."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.benchmarks.scripts import ScriptedReplies
from harness.engines.base import (
    Answers,
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
from harness.engines.bodies import BodyStore, chat_as_prompt, encoded
from harness.engines.replies import contents
from harness.engines.scripted import ScriptedCore
from harness.engines.scripted_settings import Faults, ScriptedSettings, ServiceTime
from harness.errors import ConfigError, DatasetError, MissingError
from tests.engines.test_scripted import MS, Clock, run_out, tokens_of

ROWS = 5
SAID = [f'{{"category": "A > größer {row}"}}' for row in range(ROWS)]
TOKENS = [40, 41, 42, 43, 44]


@pytest.fixture
def chats(tmp_path: Path) -> Path:
    bodies = [{"messages": [{"role": "user", "content": f"{row}"}]} for row in range(ROWS)]
    return BodyStore.write(tmp_path / "chats", bodies, tokens=[10, 20, 30, 40, 900]).path


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    path = tmp_path / "answers.npz"
    ScriptedReplies.of(SAID, TOKENS).write(path)
    return path


def requests(
    chats: Path, rows: list[int], events: TokenEvents = TokenEvents.FIRST, cap: int = 150, dataset: str = "perf"
) -> Requests:
    workload = Workload(dataset, Sampling(0.7, 0.8, 20, cap, (), 0), events, str(chats))
    return Requests(workload, [100 + row for row in rows], rows, PromptTable.empty(0), ())


def said(events: list[Event]) -> dict[int, tuple[str, int, int]]:
    """Content, tokens and finish, by number."""
    found = {}
    for event in events:
        if isinstance(event, Replies):
            texts = [content.decode() for content in contents(event)]
            rows = zip(event.numbers, texts, event.tokens, event.finish, strict=True)
            found.update({number: (text, tokens, finish) for number, text, tokens, finish in rows})
    return found


def failed(events: list[Event]) -> dict[int, str]:
    return {event.number: event.kind for event in events if isinstance(event, Failure)}


def core(clock: Clock | None = None, **settings: Any) -> ScriptedCore:
    return ScriptedCore(ScriptedSettings(**settings), clock or Clock())


@pytest.mark.parametrize("rows", [[3], [4, 0, 2]])
def test_replies_at_once(chats: Path, recorded: Path, rows: list[int]) -> None:
    engine = core(answers={"perf": recorded})
    engine.submit(requests(chats, rows))
    (event,) = engine.step()
    assert isinstance(event, Replies)
    assert said([event]) == {100 + row: (SAID[row], TOKENS[row], Finish.STOP) for row in rows}
    assert list(event.first_ns) == list(event.done_ns) == [1_000 * MS] * len(rows)


def test_a_reply_takes_as_long_as_its_tokens(chats: Path, recorded: Path) -> None:
    clock = Clock()
    engine = core(
        clock, answers={"perf": recorded}, first_token=ServiceTime(mean_s=0.1), per_token=ServiceTime(mean_s=0.01)
    )
    engine.submit(requests(chats, [0, 3]))
    told = run_out(engine, clock)
    assert sorted(tokens_of([event for _, event in told])) == [(100, 0, -1), (103, 0, -1)]
    done = {number: at for at, event in told if isinstance(event, Replies) for number in event.numbers}
    assert done == {100: 1_000 * MS + 100 * MS + 39 * 10 * MS, 103: 1_000 * MS + 100 * MS + 42 * 10 * MS}
    assert said([event for _, event in told])[103] == (SAID[3], 43, Finish.STOP)


@pytest.mark.parametrize("timed", [True, False])
def test_the_output_cap_cuts_a_reply(chats: Path, recorded: Path, timed: bool) -> None:
    clock = Clock()
    engine = core(clock, answers={"perf": recorded}, first_token=ServiceTime(mean_s=0.1 if timed else 0))
    engine.submit(requests(chats, [0, 2], TokenEvents.NONE, cap=41))
    found = said([event for _, event in run_out(engine, clock)] if timed else engine.step())
    assert found[100] == (SAID[0], 40, Finish.STOP)
    content, tokens, finish = found[102]
    assert (tokens, finish) == (41, Finish.LENGTH)
    assert SAID[2].startswith(content)
    assert 0 < len(content) < len(SAID[2])


def test_faults_by_row(chats: Path, recorded: Path) -> None:
    clock = Clock()
    faults = Faults(fail=frozenset({0}), short=frozenset({1}), empty=frozenset({2}), hang=frozenset({3}))
    engine = core(clock, answers={"perf": recorded}, faults={"perf": faults})
    engine.submit(requests(chats, [0, 1, 2, 3, 4]))
    events = [event for _, event in run_out(engine, clock)]
    assert failed(events) == {100: "scripted"}
    assert said(events) == {
        101: ("{", 1, Finish.STOP),
        102: ("", 0, Finish.STOP),
        104: (SAID[4], 44, Finish.STOP),
    }
    assert sorted(number for number, _, _ in tokens_of(events)) == [101, 104]


@pytest.mark.parametrize("timed", [True, False])
def test_rows_without_a_reply_and_prompts_too_long(chats: Path, recorded: Path, timed: bool) -> None:
    clock = Clock()
    engine = core(
        clock,
        answers={"perf": recorded},
        max_total_tokens=900,
        first_token=ServiceTime(mean_s=0.1 if timed else 0),
    )
    engine.submit(requests(chats, [0, 4, 5, -1]))
    events = [*engine.step(), *(event for _, event in run_out(engine, clock))]
    assert failed(events) == {104: "prompt_too_long", 105: "no_such_row", 99: "no_such_row"}
    assert set(said(events)) == {100}


def test_without_a_file_a_reply_names_its_row(chats: Path) -> None:
    engine = core(length=7)
    engine.submit(requests(chats, [2, 1], dataset="canary"))
    assert said(engine.step()) == {
        102: ("This is reply 2.", 7, Finish.STOP),
        101: ("This is reply 1.", 7, Finish.STOP),
    }


def test_chats_and_prompts_in_turn(chats: Path, recorded: Path) -> None:
    engine = core(answers={"perf": recorded})
    engine.submit(requests(chats, [1]))
    prompts = PromptTable.from_lists([[1, 2]])
    engine.submit(Requests(Workload("perf", Sampling(1.0, 1.0, 0, 8, (), 0), TokenEvents.NONE), [7], [1], prompts, [0]))
    first, second = engine.step()
    assert isinstance(first, Replies)
    assert not isinstance(second, Replies)


def test_a_store_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(DatasetError):
        core().submit(requests(tmp_path / "none", [1]))


def write(path: Path, **changes: Any) -> Path:
    made = ScriptedReplies.of(SAID, TOKENS)
    arrays = {"data": made.data, "ends": made.ends, "tokens": made.tokens, **changes}
    np.savez(path, **{name: array for name, array in arrays.items() if array is not None})
    return path


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"ends": None}, "no ends in it"),
        ({"tokens": None}, "no tokens in it"),
        ({"data": np.zeros(4, np.int8)}, "data are 1-D int8"),
        ({"tokens": np.zeros(5, np.int64)}, "tokens are 1-D int64"),
        ({"tokens": np.zeros(4, np.int32)}, "4 token counts for 5 replies"),
        ({"tokens": np.array([1, 2, 3, 4, -1], np.int32)}, "5 token counts for 5 replies"),
        ({"ends": np.array([1, 0, 2, 3, 4])}, "do not rise"),
        ({"ends": np.array([1, 2, 3, 4, 5])}, "the number of bytes"),
        ({"data": np.frombuffer(b"{}" * 5, np.uint8), "ends": np.arange(2, 12, 2)}, "reply 0 is no JSON object"),
        ({"data": np.frombuffer(b"\xff\xfe" * 5, np.uint8), "ends": np.arange(2, 12, 2)}, "reply 0 is no JSON object"),
        ({"data": np.frombuffer(b'[{"content":1}]', np.uint8), "ends": np.array([15]),
          "tokens": np.ones(1, np.int32)}, "reply 0 is no JSON object"),
    ],
)  # fmt: skip
def test_files_that_are_none(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        core(answers={"perf": write(tmp_path / "bad.npz", **changes)})


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(MissingError, match="not there"):
        core(answers={"perf": tmp_path / "none.npz"})


def test_recorded_replies_are_json_as_they_were_said() -> None:
    made = ScriptedReplies.of(SAID, TOKENS)
    assert len(made) == ROWS
    assert [json.loads(made[row]) for row in range(ROWS)] == [{"content": text} for text in SAID]
    assert len(ScriptedReplies.of([], [])) == 0


def test_chats_as_prompts_are_answered_by_token_ids_whatever_their_length() -> None:
    """Their bytes are no tokens: only who reads them knows how many they are."""
    prompt = chat_as_prompt(encoded({"messages": [{"role": "user", "content": "x" * 4000}]}))
    workload = Workload("x", Sampling(1.0, 1.0, 0, 8, (), 0), TokenEvents.NONE, chat_prompts=True)
    engine = core(max_total_tokens=100)
    for rows in ([3], [4, 5]):
        table = PromptTable.from_lists([prompt.tolist()])
        engine.submit(Requests(workload, rows, rows, table, [0] * len(rows)))
    assert [sorted(event.numbers) for event in engine.step() if isinstance(event, Answers)] == [[3], [4, 5]]


def test_a_workload_has_its_chats_in_one_place() -> None:
    with pytest.raises(ValueError, match="not both"):
        Workload("x", Sampling(1.0, 1.0, 0, 8, (), 0), TokenEvents.NONE, "/chats", chat_prompts=True)


@pytest.mark.parametrize("wrong", [{"min_p": -0.1}, {"min_p": 1.1}, {"repetition_penalty": 0.0}])
def test_a_sampling_that_is_none(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="not a sampling"):
        Sampling(1.0, 1.0, 0, 8, (), 0, **wrong)


def test_what_few_samplers_do_is_named() -> None:
    assert Sampling(0.7, 0.8, 20, 8, (), 0).more() == {}
    more = {"min_p": 0.1, "repetition_penalty": 1.1, "presence_penalty": -0.5, "frequency_penalty": 0.2}
    assert Sampling(0.7, 0.8, 20, 8, (), 0, **more).more() == more
