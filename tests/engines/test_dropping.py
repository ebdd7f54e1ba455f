"""Requests that are taken out of a line leave all others as they were."""

from __future__ import annotations

from collections import deque

from harness.engines.base import PromptTable, Requests, Sampling, TokenEvents, Workload
from harness.engines.dropping import Line, leave, only, places_without

SAMPLING = Sampling(0.0, 1.0, 0, 4, (), 0)
TABLE = PromptTable.from_lists([[1], [2, 2], [3, 3, 3]])


def lot(numbers: list[int], bodies: str = "") -> Requests:
    n = len(numbers)
    prompts = () if bodies else [i % len(TABLE) for i in range(n)]
    return Requests(Workload("x", SAMPLING, TokenEvents.NONE, bodies), numbers, range(10, 10 + n), TABLE, prompts)


def test_a_line_keeps_its_order_and_what_was_begun() -> None:
    begun = iter(range(4))
    assert next(begun) == 0
    line: Line = deque([(lot([1, 2, 3, 4]), begun), (lot([5]), iter(range(1))), (lot([6, 7]), iter(range(2)))])
    leave(line, {1, 3, 5, 99})
    assert [[requests.numbers[place] for place in places] for requests, places in line] == [[2, 4], [6, 7]]


def test_requests_at_some_places_have_their_own_rows_and_prompts() -> None:
    requests = lot([1, 2, 3, 4])
    kept = only(requests, places_without(requests, range(1, 4), {3}))
    assert (kept.numbers, kept.rows, [kept.prompt(i).tolist() for i in range(2)]) == ([2, 4], [11, 13], [[2, 2], [1]])


def test_chats_have_no_prompts_to_keep() -> None:
    kept = only(lot([1, 2], "chats.bin"), [1])
    assert (kept.numbers, kept.rows, kept.prompt_rows) == ([2], [11], ())
