from __future__ import annotations

from typing import Any, cast

import orjson
import pytest

from harness.benchmarks.qwen3_6_27b.warmup import warmup_chats
from harness.engines.bodies import encoded

MORE = {"chat_template_kwargs": {"thinking": False}}


def chats(n: int, lengths: list[int], seed: int = 0) -> list[dict[str, Any]]:
    return cast("list[dict[str, Any]]", list(warmup_chats(n, lengths=lengths, seed=seed, more=MORE)))


@pytest.mark.parametrize("length", [2000, 12_345, 100_000])
def test_they_are_as_long_as_they_shall_be(length: int) -> None:
    for chat in chats(5, [length]):
        assert len(encoded(chat)) == length
        assert chat["chat_template_kwargs"] == MORE["chat_template_kwargs"]


def test_long_ones_are_conversations_with_tools_in_which_the_agent_is_asked() -> None:
    (chat,) = chats(1, [50_000])
    roles = [message["role"] for message in chat["messages"]]
    assert roles[:3] == ["system", "user", "assistant"]
    assert roles[-1] in ("user", "tool")
    assert roles.count("user") > 1
    called = [call["id"] for message in chat["messages"] for call in message.get("tool_calls", ())]
    assert len(called) == roles.count("tool")


def test_no_two_begin_alike_and_seeds_make_others() -> None:
    made = chats(20, [3000])
    assert len({chat["messages"][0]["content"] for chat in made}) == 20
    assert chats(20, [3000]) == made
    assert chats(20, [3000], seed=1) != made


def test_lengths_are_drawn_from_the_data_s() -> None:
    sizes = {round(len(encoded(chat)), -3) for chat in chats(40, [5000, 20_000])}
    assert sizes == {5000, 20_000}


def test_without_lengths_they_are_short() -> None:
    assert all(len(orjson.dumps(chat)) < 1000 for chat in chats(3, []))
    assert chats(0, [5]) == []
