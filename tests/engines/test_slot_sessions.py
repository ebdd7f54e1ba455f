"""What slots keep of sessions: every answer is what it would be from an empty cache, and no more is computed anew."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.engines.base import Event, Failure, PromptTable, Requests, Sampling, TokenEvents, Tokens, Workload
from harness.engines.slot_prompts import Prompt, TokenIds
from harness.engines.slot_sessions import RestingSlots
from harness.engines.slots import SlotTable
from tests.engines.test_slots import MAX_TOTAL, STOP, VOCABULARY, check_plan, expected_answer, next_token

ALONE = 99


class BySession(TokenIds):
    """A request's row is its session; :data:`ALONE` is none."""

    def read(self, requests: Requests, place: int) -> Prompt:
        row = int(requests.rows[place])
        return Prompt(requests.prompt(place), (STOP,), session=None if row == ALONE else row)


@dataclass
class Run:
    """A table that is stepped, with what its slots hold and what it told."""

    slots: int = 2
    chunk: int = 6
    now_ns: int = 0
    computed: int = 0
    cache: dict[int, list[int]] = field(default_factory=dict)
    told: dict[int, tuple[list[int], int]] = field(default_factory=dict)
    began: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.table = SlotTable(self.slots, MAX_TOTAL, VOCABULARY, self.chunk, BySession())

    def submit(self, number: int, session: int, prompt: list[int], cap: int) -> None:
        load = Workload("test", Sampling(0.0, 1.0, 0, cap, (STOP,), 0), TokenEvents.NONE)
        self.table.submit(Requests(load, [number], [session], PromptTable.from_lists([prompt]), [0]))

    def step(self) -> None:
        self.now_ns += 1
        events: list[Event] = self.table.admit()
        plan = self.table.plan()
        if plan is not None:
            check_plan(plan, self.cache, self.slots, self.chunk)
            self.computed += sum(piece.count for piece in plan.pieces)
            tokens = np.array([next_token(self.cache[slot]) for slot in plan.chosen_slots.tolist()], np.int64)
            events += self.table.settle(plan, tokens, self.now_ns)
        for event in events:
            assert not isinstance(event, Failure | Tokens), event
            for place, number in enumerate(event.numbers):
                start = event.ends[place - 1] if place else 0
                self.told[number] = (event.tokens[start : event.ends[place]].tolist(), event.finish[place])  # type: ignore[union-attr]

    def drain(self) -> None:
        while not self.table.idle:
            self.step()
            assert self.now_ns < 10_000

    def ask(self, session: int, prompt: list[int], cap: int = 3) -> int:
        """Asks one prompt to its end; how many of its tokens were computed."""
        number, before = len(self.told) + 1_000, self.computed
        self.submit(number, session, prompt, cap)
        self.drain()
        assert self.told[number] == expected_answer(prompt, cap)
        return self.computed - before


ids = st.lists(st.integers(0, 2), min_size=1, max_size=6)
requests = st.tuples(
    st.sampled_from([0, 1, 2, 3, ALONE]),
    ids,
    st.sampled_from(["go on", "cut", "anew", "answered"]),
    st.integers(1, 4),
    st.integers(0, 4),
    st.booleans(),
)


@settings(max_examples=200, deadline=None)
@given(st.lists(requests, max_size=14), st.integers(1, 3), st.integers(1, 9))
def test_every_answer_is_that_of_an_empty_cache(
    asked: list[tuple[int, list[int], str, int, int, bool]], slots: int, chunk: int
) -> None:
    run, last, expected = Run(slots, chunk), dict[int, list[int]](), dict[int, tuple[list[int], int]]()
    for number, (session, more, how, cap, steps, dropped) in enumerate(asked):
        before = last.get(session, [])
        if how == "answered":
            before = before + expected_answer(before, 3)[0] if before else before
        prompt = {"go on": before + more, "answered": before + more, "cut": before[: len(before) // 2] + more}.get(
            how, more
        )
        prompt = last[session] = prompt[-(MAX_TOTAL - 8) :]
        run.submit(number, session, prompt, cap)
        for _ in range(steps):
            run.step()
        if dropped and number not in run.told:
            run.table.drop([number])
        else:
            expected[number] = expected_answer(prompt, cap)
    run.drain()
    assert {number: run.told[number] for number in expected} == expected
    assert run.table.cached_tokens <= run.table.prompt_tokens
    assert run.computed <= run.table.prompt_tokens - run.table.cached_tokens


def test_a_turn_computes_what_goes_beyond_the_turn_before() -> None:
    run = Run()
    first = [1, 2, 3, 4, 5, 6]
    assert run.ask(0, first) == 6
    assert run.ask(0, [*first, 8, 9]) == 2
    assert run.ask(0, [*first, 8, 9]) == 1, "all of it is there, but one token has to be computed"
    assert run.ask(0, [1, 2, 3, 9, 9, 9, 9]) == 4, "it goes another way from the fourth token on"
    assert run.ask(0, [*first, 8, 9]) == 5
    assert (run.table.prompt_tokens, run.table.cached_tokens) == (6 + 8 + 8 + 7 + 8, 6 + 7 + 3 + 3)


def test_what_was_answered_counts_where_the_next_prompt_has_it() -> None:
    run = Run()
    prompt = [1, 2, 3]
    answer, _ = expected_answer(prompt, 3)
    assert len(answer) == 3
    assert run.ask(0, prompt) == 3
    # Its last token was chosen and never read.
    assert run.ask(0, [*prompt, *answer, 5]) == 2


def test_sessions_with_the_same_prompt_share_nothing() -> None:
    run = Run(slots=3)
    prompt = [4] * 10
    assert [run.ask(session, prompt) for session in (0, 1, ALONE, ALONE)] == [10] * 4
    assert [run.ask(session, [*prompt, 3]) for session in (0, 1, ALONE)] == [1, 1, 11]


def test_a_slot_at_rest_is_given_away_last_and_the_longest_rested_first() -> None:
    run = Run(slots=3)
    turns = {session: [session, 1, 1, 1] for session in range(3)}
    for prompt in turns.values():
        run.ask(prompt[0], prompt)
    assert run.ask(0, [*turns[0], 2]) == 1, "session 1 has rested longest now"
    assert run.ask(ALONE, [9, 9]) == 2
    assert run.ask(ALONE, [9, 9]) == 2, "the slot that holds nothing, not another session's"
    assert run.ask(0, [*turns[0], 2, 3]) == 1
    assert run.ask(2, [*turns[2], 2]) == 1
    assert run.ask(1, [*turns[1], 2]) == 5


def test_a_request_whose_session_is_at_work_has_nothing_of_it() -> None:
    run = Run(slots=2, chunk=40)
    run.submit(0, 5, [1, 2, 3, 4], 8)
    run.step()
    run.submit(1, 5, [1, 2, 3, 4, 5], 8)
    run.drain()
    assert run.table.cached_tokens == 0
    assert run.told == {0: expected_answer([1, 2, 3, 4], 8), 1: expected_answer([1, 2, 3, 4, 5], 8)}
    # Two slots hold the session now; the one that has more of the prompt is taken.
    assert run.ask(5, [1, 2, 3, 4, 5, 6]) == 1


def test_a_dropped_request_leaves_what_was_computed_of_it() -> None:
    run = Run(slots=1, chunk=4)
    run.submit(0, 5, list(range(10)), 3)
    run.step()
    run.table.drop([0])
    assert run.table.idle
    assert run.ask(5, list(range(10))) == 6
    run.submit(1, 5, [1] * 4, 9)
    for _ in range(3):
        run.step()
    run.table.drop([1])
    run.drain()
    # The prompt, and of the three tokens that were chosen the two that were read.
    assert run.ask(5, [*[1] * 4, *expected_answer([1] * 4, 9)[0][:3], 2]) == 2


def test_clear_forgets_what_is_held() -> None:
    run = Run()
    run.ask(0, [1, 2, 3])
    run.table.clear()
    assert run.ask(0, [1, 2, 3]) == 3


@pytest.mark.parametrize("session", [None, "other"])
def test_a_free_slot_that_holds_nothing_comes_before_a_session_s(session: Hashable | None) -> None:
    resting, prompt = RestingSlots(), np.array([1, 2, 3], np.int32)
    resting.rest(0, "own", prompt)
    resting.rest(2, "older", prompt)
    assert resting.choose([0, 1, 2, 3], session, prompt) == (1, 0)
    assert resting.choose([0, 2], session, prompt) == (0, 0)
    assert resting.choose([0, 1, 2], "older", prompt[:1]) == (2, 0)
    assert resting.choose([0, 1, 2], "older", np.array([1, 2, 4, 5], np.int32)) == (2, 2)
