"""Requests' words as an engine's sampling; answers in pieces."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.engines.base import EngineInfo
from harness.serve.bridge import Generation, GenerationFailed, Piece
from harness.serve.refusal import Refusal
from harness.serve.requests import CompletionRequest
from harness.serve.sampling import Limits

INFO = EngineInfo("torch", 1000, 100, 4, None, {}, {})
LIMITS = Limits(INFO, (999,), seed=5)


def request(**fields: object) -> CompletionRequest:
    return CompletionRequest.model_validate({"model": "m", "prompt": [1, 2, 3]} | fields)


def test_defaults_are_trtllm_serves() -> None:
    sampling = LIMITS.sampling(request(), [1, 2, 3])
    assert (sampling.temperature, sampling.top_p, sampling.top_k) == (1.0, 1.0, 0)
    assert (sampling.max_new_tokens, sampling.stop_token_ids, sampling.seed) == (97, (999,), 5)


def test_each_request_has_its_own_values() -> None:
    asked = request(temperature=0.5, top_p=0.25, top_k=7, max_tokens=9, seed=11, stop_token_ids=[4, 999, 4])
    sampling = LIMITS.sampling(asked, [1, 2, 3], (8,))
    assert (sampling.temperature, sampling.top_p, sampling.top_k, sampling.seed) == (0.5, 0.25, 7, 11)
    assert (sampling.max_new_tokens, sampling.stop_token_ids) == (9, (999, 4, 8))


def test_the_end_token_can_be_ignored_and_others_not() -> None:
    assert LIMITS.sampling(request(ignore_eos=True, stop_token_ids=[4]), [1]).stop_token_ids == (4,)


def test_an_answer_has_the_room_that_there_is() -> None:
    assert LIMITS.sampling(request(max_tokens=500), [1] * 99).max_new_tokens == 1
    with pytest.raises(Refusal, match=r"= max_seq_len \(100\) - prompt tokens \(100\)"):
        LIMITS.sampling(request(max_tokens=1), [1] * 100)


def pieces_of(tokens: list[int], cap: int, interval: int | None, finish: str) -> list[Piece]:
    async def collected() -> list[Piece]:
        generation = Generation(0, 3, cap, interval)
        for token in tokens if interval is not None else ():
            generation.hear(token)
        generation.end(tokens, finish)
        return [piece async for piece in generation]

    return asyncio.run(collected())


@given(st.lists(st.integers(0, 99), max_size=30), st.integers(1, 9) | st.none(), st.booleans())
def test_pieces_are_the_answer_cut_at_the_first_and_every_nth(
    tokens: list[int], interval: int | None, stopped: bool
) -> None:
    finish = "stop" if stopped or not tokens else "length"
    cap = len(tokens) if finish == "length" else 31
    pieces = pieces_of(tokens, cap, interval, finish)
    assert [token for piece in pieces for token in piece.tokens] == tokens
    assert [piece.finish for piece in pieces] == [None] * (len(pieces) - 1) + [finish]
    assert pieces[-1].count == len(tokens)
    if interval is not None:
        due = [n for n in range(1, len(tokens) + 1) if (n == 1 or n % interval == 0) and n < cap]
        assert [piece.count for piece in pieces[:-1]] == due
    else:
        assert len(pieces) == 1


def test_tokens_that_nobody_told_come_with_the_end() -> None:
    async def collected() -> list[Piece]:
        generation = Generation(0, 3, 9, 1)
        generation.hear(1)
        generation.end([1, 2, 3], "stop")
        return [piece async for piece in generation]

    assert asyncio.run(collected()) == [Piece([1], 1, None), Piece([2, 3], 3, "stop")]


def test_a_failure_ends_the_pieces() -> None:
    async def collected() -> list[Piece]:
        generation = Generation(0, 3, 9, 1)
        generation.hear(1)
        generation.fail("no more")
        return [piece async for piece in generation]

    with pytest.raises(GenerationFailed, match="no more"):
        asyncio.run(collected())


def test_counts_end_an_answer_whose_tokens_were_told() -> None:
    async def collected(interval: int | None) -> tuple[list[Piece], int, int]:
        generation = Generation(0, 3, 9, interval)
        for token in (7, 8, 9):
            generation.hear(token)
        generation.end_counted(3, "tool_calls", 40, 32)
        return [piece async for piece in generation], generation.prompt_tokens, generation.cached_tokens

    assert asyncio.run(collected(None)) == ([Piece([7, 8, 9], 3, "tool_calls")], 40, 32)
    pieces, *_ = asyncio.run(collected(1))
    assert pieces == [Piece([7], 1, None), Piece([8], 2, None), Piece([9], 3, None), Piece([], 3, "tool_calls")]


def test_what_an_engine_does_not_tell_is_left_alone() -> None:
    async def counted() -> tuple[int, int]:
        generation = Generation(0, 3, 9, None)
        generation.end_counted(0, "stop", -1, -1)
        return generation.prompt_tokens, generation.cached_tokens

    assert asyncio.run(counted()) == (3, 0)
