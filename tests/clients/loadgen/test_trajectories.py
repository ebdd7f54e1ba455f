"""The engine of trajectories over an engine that says what a test makes it say."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import orjson
import pytest

from harness.clients.loadgen.job import Replay
from harness.clients.loadgen.trajectories import TrajectoryEngine
from harness.clients.loadgen.turn_record import TurnRecord
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
    Tokens,
    Workload,
)
from harness.errors import EngineDied, RunBroke
from harness.ledger.samples import NONE
from harness.ledger.turns import TURN_REPLIES, TurnReply, TurnState, read_turn_replies
from tests.clients.loadgen.fakes import FakeEngine, answers
from tests.clients.loadgen.trajectory_legs import store_of

ANSWERED, FAILED, SKIPPED, OUTSTANDING = TurnState
WORKLOAD = Workload("x", Sampling(0.0, 1.0, 0, 9, (), 1), TokenEvents.FIRST, bodies="/chats", usage_optional=True)
SPEAKING = [
    {"content": "text"},
    {"content": "", "reasoning": "thought"},
    {"content": "", "tool_calls": [{"type": "function", "function": {"name": "bash", "arguments": "{}"}}]},
]
SILENT = [{"content": ""}, {"content": "", "reasoning": "", "tool_calls": []}, {"content": "", "reasoning": None}]


@dataclass
class Bench:
    """Trajectories over a fake engine, stepped by the test."""

    engine: FakeEngine
    record: TurnRecord
    over: TrajectoryEngine
    folder: Path
    rows: list[int] = field(default_factory=list)

    def issue(self, *rows: int) -> None:
        """What LoadGen does: the number of a sample is 1000 and its place."""
        numbers = [1000 + len(self.rows) + i for i in range(len(rows))]
        self.rows += rows
        self.over.submit(Requests(WORKLOAD, numbers, list(rows), PromptTable.empty(9), list(rows)))

    def poll(self, *events: Event) -> list[Event]:
        """What is told upwards of what the engine says."""
        told = self.over.poll(0.0)  # passes over the wake of a submission, and asks
        if events:
            self.engine.say(*events)
            told += self.over.poll(1.0)
        return told

    @property
    def asked(self) -> list[tuple[list[int], list[int]]]:
        """Numbers and chats of each submission."""
        return [(list(each.numbers), list(each.rows)) for each in self.engine.submitted]

    def states(self) -> list[int]:
        failed = np.zeros(0, np.int64)
        states: list[int] = self.over.turns(np.array(self.rows, np.int64), failed).columns["state"].tolist()
        return states

    def written(self) -> list[TurnReply]:
        self.record.close()
        return list(read_turn_replies(self.folder / TURN_REPLIES))


Make = Callable[..., Bench]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    made: list[Bench] = []

    def build(
        turns: Sequence[int] = (3, 1, 2),
        most: int = 9,
        delays_ns: Sequence[int] | None = None,
        tool_delays: bool = False,
    ) -> Bench:
        store = store_of(tmp_path / f"chats{len(made)}", turns, delays_ns)
        engine, record = FakeEngine(), TurnRecord(tmp_path / TURN_REPLIES)
        replay = Replay(max_concurrency=most, tool_delays=tool_delays)
        made.append(Bench(engine, record, TrajectoryEngine(engine, store, replay, record), tmp_path))
        return made[-1]

    yield build
    for each in made:
        each.record.close()


def said(
    numbers: Sequence[int],
    reply: object = SPEAKING[0],
    *,
    tokens: int = 5,
    at_ns: int = 7,
    finish: Finish = Finish.STOP,
    prompt_tokens: int | None = None,
    cached_tokens: int | None = None,
) -> Replies:
    """The same reply to each of these requests."""
    data, n = orjson.dumps(reply), len(numbers)
    return Replies(
        numbers=list(numbers),
        data=data * n,
        ends=[len(data) * (i + 1) for i in range(n)],
        tokens=[tokens] * n,
        first_ns=[at_ns] * n,
        done_ns=[at_ns + 1] * n,
        finish=[finish] * n,
        prompt_tokens=() if prompt_tokens is None else [prompt_tokens] * n,
        cached_tokens=() if cached_tokens is None else [cached_tokens] * n,
    )


def first(*numbers: int, at_ns: int = 6) -> Tokens:
    return Tokens(list(numbers), [0] * len(numbers), np.full(len(numbers), -1, np.int32), at_ns)


# -- what is asked, and told of it -------------------------------------------------------------------------------------


def test_a_trajectory_is_told_at_its_end_with_its_first_token_and_all_tokens(make: Make) -> None:
    made = make()
    made.issue(0)
    (token,) = made.poll(first(0, at_ns=6))
    assert isinstance(token, Tokens)
    assert (list(token.numbers), list(token.positions), token.tokens.tolist(), token.at_ns) == ([1000], [0], [-1], 6)
    assert made.poll(said([0], SPEAKING[1], at_ns=7)) == []
    assert made.poll(first(1, at_ns=20)) == []
    assert made.poll(said([1], SPEAKING[2], at_ns=21, finish=Finish.TOOL_CALLS)) == []
    (end,) = made.poll(first(2, at_ns=30), said([2], SPEAKING[0], at_ns=31, finish=Finish.LENGTH))
    assert isinstance(end, Replies)
    assert (end.numbers, end.ends, end.tokens) == ([1000], [len(end.data)], [15])
    assert orjson.loads(end.data) == SPEAKING[0]
    assert (end.first_ns, end.done_ns, end.finish) == ([7], [32], [Finish.LENGTH])
    assert made.asked == [([0], [0]), ([1], [1]), ([2], [2])]
    assert {each.workload for each in made.engine.submitted} == {WORKLOAD}
    assert [(each.sample, each.row, each.turn, each.reply) for each in made.written()] == [
        (0, 0, 0, SPEAKING[1]),
        (0, 0, 1, SPEAKING[2]),
        (0, 0, 2, SPEAKING[0]),
    ]


def test_turns_that_are_due_together_go_out_together_and_numbers_never_come_twice(make: Make) -> None:
    made = make(most=3)
    made.issue(0, 1, 2, 2)
    made.poll(said([2]), said([0, 1]))
    assert made.asked == [([0, 1, 2], [0, 3, 4]), ([3, 4, 5], [5, 1, 4])]
    told = made.poll(said([3, 5]), said([4]))
    assert [list(event.numbers) for event in told if isinstance(event, Replies)] == [[1002]]
    assert made.asked[2:] == [([6, 7], [5, 2])]
    told = made.poll(said([7, 6]))
    assert [list(event.numbers) for event in told if isinstance(event, Replies)] == [[1000, 1003]]
    assert made.states() == [ANSWERED] * 8


def test_one_at_a_time_is_one_at_a_time(make: Make) -> None:
    made = make(most=1)
    made.issue(2, 1)
    made.over.poll(0.0)
    for number in range(3):
        assert len(made.asked) == number + 1
        made.poll(said([number]))
    assert [chats for _, chats in made.asked] == [[4], [5], [3]]


def test_columns_of_a_turn(make: Make) -> None:
    made = make()
    before = time.monotonic_ns()
    made.issue(2)
    made.poll(first(0), said([0], tokens=4, at_ns=8, prompt_tokens=90, finish=Finish.TOOL_CALLS))
    made.poll(said([1], tokens=NOT_TOLD, at_ns=11, prompt_tokens=95, cached_tokens=92))
    turns = made.over.turns(np.array([2]), np.zeros(0, np.int64))
    columns = {name: values.tolist() for name, values in turns.columns.items()}
    issued_ns = columns.pop("issued_ns")
    assert before <= issued_ns[0] <= issued_ns[1] <= time.monotonic_ns()
    assert columns == {
        "sample": [0, 0],
        "row": [2, 2],
        "turn": [0, 1],
        "chat": [4, 5],
        "first_token_ns": [8, 11],
        "done_ns": [9, 12],
        "state": [ANSWERED, ANSWERED],
        "answer_tokens": [4, NONE],
        "prompt_tokens": [90, 95],
        "cached_tokens": [NONE, 92],
        "finish": [Finish.TOOL_CALLS, Finish.STOP],
    }
    assert turns.prompt_tokens().tolist() == [185]
    assert made.over.record.answered_count == 2


@pytest.mark.parametrize("untold", [0, 1, 2])
def test_tokens_that_the_server_did_not_count_are_not_told(make: Make, untold: int) -> None:
    made = make()
    made.issue(0)
    told: list[Event] = []
    for number in range(3):
        told += made.poll(said([number], tokens=NOT_TOLD if number == untold else 5))
    (end,) = told
    assert isinstance(end, Replies)
    assert end.tokens == [NOT_TOLD]


def test_first_tokens_of_later_turns_and_later_tokens_are_none(make: Make) -> None:
    made = make()
    made.issue(0)
    assert made.poll(Tokens([0, 9], [1, 0], np.array([4, 5], np.int32), 6)) == []
    made.poll(said([0]))
    assert made.poll(first(1)) == []


# -- delays ------------------------------------------------------------------------------------------------------------


def test_tools_take_their_time_where_it_is_asked_for(make: Make) -> None:
    delay_ns = 60_000_000
    made = make((2,), delays_ns=[10**12, delay_ns], tool_delays=True)
    made.issue(0)
    done_ns = time.monotonic_ns()
    made.poll(said([0], at_ns=done_ns - 1))
    assert len(made.asked) == 1
    assert made.over.stalled_s() == 0
    while len(made.asked) == 1:
        assert made.over.poll(0.01) == []
    issued_ns = made.over.turns(np.array([0]), np.zeros(0, np.int64)).columns["issued_ns"]
    assert delay_ns <= issued_ns[1] - done_ns < 20e9


def test_no_poll_waits_beyond_the_end_of_a_tool(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    made = make((2,), delays_ns=[0, 1_000 * 10**9], tool_delays=True)
    made.issue(0)
    made.poll(said([0], at_ns=time.monotonic_ns()))
    waited: list[float] = []
    monkeypatch.setattr(made.engine, "poll", lambda timeout_s: waited.append(timeout_s) or [])
    made.over.poll(1e9)
    made.over.poll(0.5)
    assert 900 < waited[0] < 1_001
    assert waited[1] == 0.5


def test_tools_take_none_where_it_is_not(make: Make) -> None:
    made = make((2,), delays_ns=[0, 10**12])
    made.issue(0)
    made.poll(said([0]))
    assert made.asked == [([0], [0]), ([1], [1])]


# -- failures ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("at", [0, 1, 2])
def test_a_turn_that_fails_ends_its_trajectory_alone(make: Make, at: int) -> None:
    made = make((3, 3), most=2)
    made.issue(0, 1)
    told: list[Event] = []
    numbers = [0, 1]
    for turn in range(3):
        events: list[Event] = [said([numbers[1]])]
        if turn < at:
            events.append(said([numbers[0]]))
        if turn == at:
            events.append(Failure(numbers[0], "timeout", "no answer in 600 s"))
        told += made.poll(*events)
        by_chat = dict(zip(made.asked[-1][1], made.asked[-1][0], strict=True))
        numbers = [by_chat.get(turn + 1, -1), by_chat.get(turn + 4, -1)]
    failure, end = told if at < 2 else reversed(told)
    assert failure == Failure(1000, "timeout", f"turn {at + 1} of 3 (chat {at}): no answer in 600 s")
    assert isinstance(end, Replies)
    assert end.numbers == [1001]
    assert made.states() == [ANSWERED] * at + [FAILED] + [SKIPPED] * (2 - at) + [ANSWERED] * 3
    failures = [each for each in made.written() if each.failure is not None]
    assert failures == [TurnReply(0, 0, at, None, ("timeout", "no answer in 600 s"))]


@pytest.mark.parametrize("silent", SILENT)
def test_a_reply_that_says_nothing_is_a_failed_turn(make: Make, silent: dict[str, object]) -> None:
    made = make()
    made.issue(0)
    made.poll(said([0]))
    (failure,) = made.poll(first(1), said([1], silent))
    assert isinstance(failure, Failure)
    assert (failure.number, failure.kind) == (1000, "empty_answer")
    assert failure.message == "turn 2 of 3 (chat 1): a reply without content, reasoning or tool calls"
    assert made.states() == [ANSWERED, FAILED, SKIPPED]
    assert len(made.asked) == 2


def test_a_failed_trajectory_makes_room_for_the_next(make: Make) -> None:
    made = make(most=1)
    made.issue(0, 1)
    made.poll(Failure(0, "http_500", "down"))
    assert made.asked[1:] == [([1], [3])]


def test_the_engine_dies_with_turns_out(make: Make) -> None:
    made = make(most=2)
    made.issue(0, 1, 2)
    made.poll(said([0]))
    made.engine.die(EngineDied("gone"))
    with pytest.raises(EngineDied):
        made.over.poll(1.0)
    assert made.states() == [ANSWERED, OUTSTANDING, OUTSTANDING, OUTSTANDING, OUTSTANDING, OUTSTANDING]
    made.over.fail_the_rest("engine_died", "gone")
    everything = np.arange(3)
    turns = made.over.turns(np.array(made.rows), everything)
    assert turns.columns["state"].tolist() == [ANSWERED, FAILED, SKIPPED, FAILED, SKIPPED, SKIPPED]
    written = made.written()
    assert [(each.sample, each.turn, each.failure) for each in written[1:]] == [
        (1, 0, ("engine_died", "gone")),
        (0, 1, ("engine_died", "gone")),
    ]


@pytest.mark.parametrize("event", [said([7]), Failure(7, "x", "y"), said([0, 0])])
def test_an_answer_that_nobody_waits_for_ends_the_test(make: Make, event: Event) -> None:
    made = make((1,))
    made.issue(0)
    with pytest.raises(RunBroke, match="twice, or was never asked it"):
        made.poll(event)


def test_something_else_than_replies_ends_the_test(make: Make) -> None:
    made = make()
    made.issue(0)
    with pytest.raises(RunBroke, match="answered with token ids"):
        made.poll(answers({0: [1]}))
    made.engine.say(Replies([0], b"{", [1], [5], [1], [2], [0]))
    with pytest.raises(RunBroke, match="reply to request 0 is none"):
        made.over.poll(1.0)


# -- the rest of the interface -----------------------------------------------------------------------------------------


def test_replicas_are_those_of_first_turns(make: Make) -> None:
    made = make(most=2)
    made.engine.replicas_of = lambda numbers: np.asarray(numbers, np.int16) + 10  # type: ignore[method-assign]  # a fake
    assert made.over.replicas_of(np.array([1000, 1001])).tolist() == [-1, -1]
    made.issue(0, 1, 2)
    made.poll(said([0]))
    replicas = made.over.replicas_of(np.array([1001, 1002, 1000, 5]))
    assert (replicas.tolist(), replicas.dtype) == ([11, -1, 10, -1], np.int16)


def test_it_stalls_where_the_engine_has_turns_and_says_nothing(make: Make) -> None:
    made = make()
    assert made.over.stalled_s() == 0
    made.issue(1)
    made.over.poll(0.0)
    time.sleep(0.02)
    assert made.over.stalled_s() >= 0.02
    made.poll(first(0))
    assert made.over.stalled_s() < 0.02 or made.over.poll(0.0) == []
    made.poll(said([0]))
    assert made.over.stalled_s() == 0
