"""The slot table as bookkeeping: every request is told of once, and no plan exceeds its bounds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.engines.base import (
    Answers,
    Event,
    Failure,
    Finish,
    PromptTable,
    Requests,
    Sampling,
    TokenEvents,
    Tokens,
    Workload,
)
from harness.engines.slot_plans import Piece, Plan
from harness.engines.slot_prompts import Prompt, Unservable
from harness.engines.slots import SlotTable

VOCABULARY = 50
MAX_TOTAL = 40
STOP = 7


def requests_of(prompts: list[list[int]], cap: int, first: int = 0, events: TokenEvents = TokenEvents.ALL) -> Requests:
    load = Workload("test", Sampling(0.0, 1.0, 0, cap, (STOP,), 0), events)
    n = len(prompts)
    return Requests(load, range(first, first + n), range(n), PromptTable.from_lists(prompts), range(n))


def check_plan(plan: Plan, cache: dict[int, list[int]], slots: int, chunk: int) -> None:
    """A plan writes each slot on from where it ended, within bounds; ``cache`` is what the slots hold, brought on.

    A prompt may begin anywhere in what its slot holds, which ends there from then on.
    """
    n = len(plan.tokens)
    assert n == len(plan.slots) == len(plan.positions) == len(plan.decoding) + sum(p.count for p in plan.pieces)
    assert sum(piece.count for piece in plan.pieces) <= chunk
    assert sorted({*plan.decoding.tolist(), *(p.slot for p in plan.pieces)}) == sorted(set(plan.slots.tolist()))
    beginning = {piece.slot: piece.start for piece in plan.pieces}
    for token, slot, position in zip(plan.tokens.tolist(), plan.slots.tolist(), plan.positions.tolist(), strict=True):
        assert 0 <= slot < slots
        assert position < MAX_TOTAL
        held = cache.setdefault(slot, [])
        if slot in beginning:
            assert position == beginning.pop(slot)
            del held[position:]
        assert position == len(held)
        held.append(token)
    assert plan.slots[plan.chosen_at].tolist() == plan.chosen_slots.tolist()
    assert len(plan.samplings) == len(plan.chosen_slots)


def next_token(held: list[int]) -> int:
    """A made-up model: the next token depends on all that the slot holds, and on its order."""
    state = 0
    for token in held:
        state = (state * 31 + token + 1) % 99_991
    return state % VOCABULARY


def expected_answer(prompt: list[int], cap: int) -> tuple[list[int], Finish]:
    held, answer = list(prompt), []
    while len(answer) < cap:
        token = next_token(held)
        if token == STOP:
            return answer, Finish.STOP
        answer.append(token)
        held.append(token)
    return answer, Finish.LENGTH


def step(table: SlotTable, cache: dict[int, list[int]], slots: int, chunk: int, now_ns: int) -> list[Event]:
    events = table.admit()
    plan = table.plan()
    if plan is None:
        return events
    check_plan(plan, cache, slots, chunk)
    tokens = np.array([next_token(cache[slot]) for slot in plan.chosen_slots.tolist()], np.int64)
    return events + table.settle(plan, tokens, now_ns)


prompts = st.lists(st.lists(st.integers(0, VOCABULARY + 1), max_size=MAX_TOTAL), max_size=8)
batches = st.lists(
    st.tuples(prompts, st.integers(1, MAX_TOTAL // 2), st.integers(0, 5), st.sampled_from(TokenEvents)), max_size=5
)


class Run:
    """A table that is stepped, what was asked of it and what it told."""

    def __init__(self, slots: int, chunk: int) -> None:
        self.table = SlotTable(slots, MAX_TOTAL, VOCABULARY, chunk)
        self._slots, self._chunk, self._cache = slots, chunk, dict[int, list[int]]()
        self.asked: list[tuple[list[int], int, TokenEvents]] = []
        self.told: dict[int, tuple[list[int], int]] = {}
        self.heard: dict[int, list[int]] = {}
        self.failed: dict[int, str] = {}
        self.now_ns = 0

    def submit(self, batch: list[list[int]], cap: int, events: TokenEvents) -> None:
        self.table.submit(requests_of(batch, cap, len(self.asked), events))
        self.asked += [(prompt, cap, events) for prompt in batch]

    def step(self) -> None:
        self.now_ns += 1
        for event in step(self.table, self._cache, self._slots, self._chunk, self.now_ns):
            if isinstance(event, Failure):
                assert event.number not in self.failed
                self.failed[event.number] = event.kind
            elif isinstance(event, Tokens):
                self._hear(event)
            else:
                self._tell(event)

    def _hear(self, event: Tokens) -> None:
        assert event.at_ns == self.now_ns
        for number, position, token in zip(event.numbers, event.positions, event.tokens.tolist(), strict=True):
            assert position == len(self.heard.setdefault(number, []))
            self.heard[number].append(token)

    def _tell(self, event: Answers) -> None:
        for place, number in enumerate(event.numbers):
            assert number not in self.told
            start = event.ends[place - 1] if place else 0
            self.told[number] = (event.tokens[start : event.ends[place]].tolist(), event.finish[place])
            assert 0 < event.first_ns[place] <= event.done_ns[place] == self.now_ns


def expected_failure(prompt: list[int], cap: int) -> str | None:
    if not prompt:
        return "empty_prompt"
    if len(prompt) + cap > MAX_TOTAL:
        return "prompt_too_long"
    return "bad_token" if max(prompt) >= VOCABULARY else None


@settings(max_examples=150, deadline=None)
@given(batches, st.integers(1, 5), st.integers(1, 30))
def test_every_request_is_told_of_once_and_rightly(
    arriving: list[tuple[list[list[int]], int, int, TokenEvents]], slots: int, chunk: int
) -> None:
    run = Run(slots, chunk)
    for batch, cap, steps, events in arriving:
        run.submit(batch, cap, events)
        for _ in range(steps):
            run.step()
    while not run.table.idle:
        run.step()
        assert run.now_ns < 10_000
    assert run.table.plan() is None
    for number, (prompt, cap, events) in enumerate(run.asked):
        assert run.failed.pop(number, None) == expected_failure(prompt, cap)
        if expected_failure(prompt, cap) is None:
            answer, finish = expected_answer(prompt, cap)
            assert run.told.pop(number) == (answer, finish)
            kept = {TokenEvents.ALL: answer, TokenEvents.FIRST: answer[:1], TokenEvents.NONE: []}[events]
            assert run.heard.pop(number, []) == kept
    assert (run.told, run.failed, run.heard) == ({}, {}, {})


@settings(max_examples=150, deadline=None)
@given(batches, st.integers(1, 5), st.integers(1, 30), st.data())
def test_those_that_were_dropped_are_told_no_more_and_the_others_rightly(
    arriving: list[tuple[list[list[int]], int, int, TokenEvents]], slots: int, chunk: int, data: st.DataObject
) -> None:
    run = Run(slots, chunk)
    dropped: dict[int, list[int]] = {}
    for batch, cap, steps, events in arriving:
        run.submit(batch, cap, events)
        for _ in range(steps):
            run.step()
        which = data.draw(st.sets(st.sampled_from(range(len(run.asked))), max_size=6)) if run.asked else set()
        run.table.drop(which)
        ended = run.told.keys() | run.failed.keys()
        dropped |= {number: list(run.heard.get(number, ())) for number in which - ended - dropped.keys()}
    while not run.table.idle:
        run.step()
        assert run.now_ns < 10_000
    for number, (prompt, cap, _) in enumerate(run.asked):
        if number in dropped:
            assert number not in run.told.keys() | run.failed.keys()
            assert run.heard.get(number, []) == dropped[number]
        elif expected_failure(prompt, cap) is None:
            assert run.told[number] == expected_answer(prompt, cap)
        else:
            assert run.failed[number] == expected_failure(prompt, cap)


def test_those_who_came_first_are_served_first() -> None:
    table, cache = SlotTable(2, MAX_TOTAL, VOCABULARY, 6), dict[int, list[int]]()
    table.submit(requests_of([[1] * 10, [2] * 3, [3]], 20))
    order: list[int] = []
    for now_ns in range(1, 60):
        for event in step(table, cache, 2, 6, now_ns):
            if isinstance(event, Tokens):
                order += [number for number in event.numbers if number not in order]
    assert order == [0, 1, 2]


def test_many_bad_requests_do_not_hold_a_step_up() -> None:
    table = SlotTable(1, MAX_TOTAL, VOCABULARY, 6)
    table.submit(requests_of([[VOCABULARY]] * 3000 + [[1]], 1))
    counts = []
    while not table.idle:
        counts.append(len(step(table, {}, 1, 6, len(counts) + 1)))
    assert sum(counts) == 3000 + 2, "3000 failures, a token, an answer"
    assert max(counts) <= 1024


def test_clear_forgets_the_waiting_and_the_working() -> None:
    table, cache = SlotTable(2, MAX_TOTAL, VOCABULARY, 4), dict[int, list[int]]()
    table.submit(requests_of([[1] * 9] * 5, 5))
    for now_ns in range(1, 5):
        step(table, cache, 2, 4, now_ns)
    table.clear()
    assert table.idle
    assert step(table, cache, 2, 4, 9) == []
    table.submit(requests_of([[1, 2]], 1, first=9))
    (tokens, answers) = step(table, cache, 2, 4, 10)
    assert isinstance(tokens, Tokens)
    assert isinstance(answers, Answers)
    assert answers.numbers == [9]


def test_no_requests_are_no_work() -> None:
    table = SlotTable(1, MAX_TOTAL, VOCABULARY, 4)
    table.submit(requests_of([], 1))
    assert table.idle


@pytest.mark.parametrize(("start", "count"), [(-1, 1), (0, 0)])
def test_a_piece_is_a_piece(start: int, count: int) -> None:
    with pytest.raises(ValueError, match="not a piece"):
        Piece(0, start, count, ends=True)


class Looking:
    """A reader that has work with each prompt that gets a slot, and refuses some."""

    def __init__(self) -> None:
        self.seated: list[tuple[int, int]] = []

    def read(self, requests: Requests, place: int) -> Prompt:
        ids = requests.prompt(place)
        if ids[0] == 1:
            raise Unservable("unread", "the prompt begins with 1")
        return Prompt(ids, (STOP, 9), image=place, tell=as_twice)

    def seat(self, slot: int, prompt: Prompt) -> None:
        if prompt.ids[0] == 2:
            raise Unservable("unseen", "the prompt begins with 2")
        self.seated.append((slot, int(prompt.ids[0])))

    def forget(self) -> None:
        self.seated.clear()


def as_twice(answers: Answers, prompt_tokens: Sequence[int], cached_tokens: Sequence[int]) -> Event:
    assert list(cached_tokens) == [0] * len(answers) == [0] * len(prompt_tokens)
    answers.tokens = answers.tokens * 2
    return answers


def test_no_more_is_seated_than_the_next_step_reads() -> None:
    reader = Looking()
    table = SlotTable(8, MAX_TOTAL, VOCABULARY, 10, reader)
    table.submit(requests_of([[10 + number] * 6 for number in range(6)], 2))
    seen = []
    for now_ns in range(20):
        table.admit()
        plan = table.plan()
        assert plan is not None
        seen.append(len(reader.seated))
        table.settle(plan, np.full(len(plan.chosen_slots), 3), now_ns)
        if table.idle:
            break
    assert seen[:5] == [2, 4, 5, 6, 6], "10 tokens a step, of prompts of 6"
    assert [first for _, first in reader.seated] == list(range(10, 16))


def test_a_reader_refuses_ends_and_tells_in_its_own_way() -> None:
    reader = Looking()
    table = SlotTable(2, MAX_TOTAL, VOCABULARY, 10, reader)
    table.submit(requests_of([[1, 5], [3], [2, 5], [4, 4]], 3, events=TokenEvents.NONE))
    events = table.admit()
    assert [(e.number, e.kind, e.message) for e in events if isinstance(e, Failure)] == [
        (0, "unread", "the prompt begins with 1"),
        (2, "unseen", "the prompt begins with 2"),
    ]
    assert reader.seated == [(0, 3), (1, 4)]
    for now_ns, tokens in enumerate(([5, 9], [6], [8])):
        plan = table.plan()
        assert plan is not None
        events += table.settle(plan, np.array(tokens), now_ns)
    answers = {e.numbers[0]: (e.tokens.tolist(), e.finish) for e in events if isinstance(e, Answers)}
    assert answers == {3: ([], [Finish.STOP]), 1: ([10, 12, 16], [Finish.LENGTH])}
