"""The bytes of requests, and the seeds in them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.engines.base import PromptTable, Requests, TokenEvents, Workload
from harness.engines.http.dialects import DIALECTS
from harness.engines.http.template import Head, IdsTemplate, seed_of
from tests.engines.http.play import workload


def made(server: str, of: Workload, prompt: list[int], seed: int = 5) -> tuple[bytes, dict[str, Any]]:
    template = IdsTemplate(Head("host:1", "", None), DIALECTS[server], 'a "name"', of)
    table = PromptTable.from_lists([[1], prompt])
    (whole,) = template.request(Requests(of, (1,), (1,), table, (1,)), 0, seed)
    head, _, body = bytes(whole).partition(b"\r\n\r\n")
    assert head.endswith(b"\r\nContent-Length: %d" % len(body))
    return head, json.loads(body)


@settings(deadline=None)
@given(prompt=st.lists(st.integers(0, 2**31 - 1), min_size=1, max_size=50), seed=st.integers(0, 2**31 - 1))
@pytest.mark.parametrize("server", sorted(DIALECTS))
def test_any_prompt_and_seed(server: str, prompt: list[int], seed: int) -> None:
    dialect = DIALECTS[server]
    _, body = made(server, workload(), prompt, seed)
    assert body[dialect.prompt] == prompt
    sampling = body[dialect.nested] if dialect.nested else body
    assert sampling.get(dialect.names["seed"]) == (seed if dialect.seeded else None)
    assert body.get("model") == ('a "name"' if dialect.names_model else None)


@pytest.mark.parametrize("server", sorted(DIALECTS))
@pytest.mark.parametrize(("temperature", "top_k"), [(0.0, 1), (1.0, None)])
def test_every_value_is_sent_and_greedy_is_said_so_that_all_take_it(
    server: str, temperature: float, top_k: int | None
) -> None:
    dialect = DIALECTS[server]
    _, body = made(server, workload(temperature=temperature, cap=9, stop=(3, 4)), [1])
    said = body[dialect.nested] if dialect.nested else body
    values = {name: said.get(theirs) for name, theirs in dialect.names.items()}
    assert values == {
        "temperature": temperature,
        "top_p": 1.0,
        "top_k": dialect.top_k_off if top_k is None else top_k,
        "max_new_tokens": 9,
        "stop_token_ids": [3, 4],
        "seed": 5 if dialect.seeded else None,
        "min_p": 0.0,
        "repetition_penalty": 1.0,
        "presence_penalty": 0.0,
        "frequency_penalty": 0.0,
    }


@pytest.mark.parametrize("server", sorted(DIALECTS))
def test_usage_is_asked_of_streams_alone(server: str) -> None:
    for events in TokenEvents:
        _, body = made(server, workload(events), [1])
        assert body["stream"] is (events is not TokenEvents.NONE)
        assert ("stream_options" in body) == (body["stream"] and DIALECTS[server].asks_usage)


def test_trtllm_serve_gets_no_field_that_it_does_not_know() -> None:
    known = {
        "model",
        "prompt",
        "max_tokens",
        "n",
        "seed",
        "stream",
        "stream_options",
        "temperature",
        "top_p",
        "top_k",
        "stop_token_ids",
        "detokenize",
        "min_p",
        "repetition_penalty",
        "presence_penalty",
        "frequency_penalty",
    }
    assert made("trtllm-serve", workload(), [1])[1].keys() <= known


def test_a_head_with_percent_signs_and_a_session() -> None:
    head = Head("h:1", "/a%20b", "k%d").of("/v1", session=True) % b"7"
    assert b"POST /a%20b/v1 HTTP/1.1\r\n" in head and b"Bearer k%d\r\n" in head
    assert head.endswith(b"\r\nX-Session-ID: 7\r\nContent-Length: ")


@settings(deadline=None)
@given(st.integers(0, 2**63), st.integers(0, 1 << 20), st.integers(-1, 1 << 30), st.integers(0, 100))
def test_seeds_are_of_31_bits_and_depend_on_all_that_they_are_made_of(
    seed: int, stream: int, row: int, time: int
) -> None:
    found = seed_of(seed, stream, row, time)
    assert 0 <= found < 2**31 and found == seed_of(seed, stream, row, time)
    others = {seed_of(seed + 1, stream, row, time), seed_of(seed, stream + 1, row, time)}
    others |= {seed_of(seed, stream, row + 1, time), seed_of(seed, stream, row, time + 1)}
    assert found not in others and len(others) == 4


def test_seeds_of_a_run_seldom_meet() -> None:
    seeds = [seed_of(1, 0, row, time) for row in range(300) for time in range(20)]
    assert len(set(seeds)) >= len(seeds) - 1
