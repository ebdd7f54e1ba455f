"""Chats to warm an engine up with: made-up tasks, tools offered, about as long as what the data set asks."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from typing import Any, Final

import orjson

from harness.benchmarks.base import Chats
from harness.benchmarks.qwen3_6_27b import messages, tasks
from harness.benchmarks.qwen3_6_27b.rows import Metadata, Row, parse_row

_MARK: Final = "Warm-up"
"""Begins every system prompt, followed by a number: no data set's begins so."""
_FILLER: Final = " The log of the day is read from its beginning, a line at a time, and nothing in it is skipped."
_FIRST_TASK: Final = 1_000_000
"""Tasks of stand-ins are numbered from 0."""


def warmup_chats(n: int, *, lengths: Sequence[int], seed: int, more: Mapping[str, Any]) -> Chats:
    """n chats with lengths (bytes of their JSON) drawn from ``lengths``, or short ones where there are none.

    ``more`` are the fields that every chat has.
    """
    rng = random.Random(f"{seed}/warm-up")  # noqa: S311 - filler, not a secret
    drawn = rng.choices(lengths, k=n) if lengths else [0] * n
    return Chats(tuple(_chat(seed, number, int(length), more) for number, length in enumerate(drawn)))


def _chat(seed: int, number: int, length: int, more: Mapping[str, Any]) -> dict[str, Any]:
    steps = _steps(seed, number)
    said, asked = next(steps)
    chat = {
        "messages": [messages.of_system(f"{_MARK} {number + 1}. {tasks.SYSTEM}"), *said],
        "tools": asked,
        **more,
    }
    room = length - len(orjson.dumps(chat))
    for said, _ in steps:
        size = len(orjson.dumps(said)) - 1  # a comma before each, and no brackets
        if size > room:
            break
        chat["messages"] = [*chat["messages"], *said]
        room -= size
    first = chat["messages"][1]
    filled = first["content"] + (_FILLER * (1 + max(0, room) // len(_FILLER)))[: max(0, room)]
    chat["messages"][1] = {**first, "content": filled}
    return chat


def _steps(seed: int, number: int) -> Iterator[tuple[list[Mapping[str, Any]], Any]]:
    """What a conversation grows by, each time up to where a model is asked: first a question, then results of tools.

    Task after task of our own in one conversation; with the tools that the first offers.
    """
    said: list[Mapping[str, Any]] = []
    for task in count(_FIRST_TASK * (number + 1)):
        for row in _rows(seed, task):
            said += messages.of_row(row)
            if row.role != "assistant":
                yield said, row.said.get("tools")
                said = []


def _rows(seed: int, task: int) -> Iterator[Row]:
    for row in tasks.rows(seed, task):
        parsed = parse_row(orjson.dumps(row), "a task of our own")
        if not isinstance(parsed, Metadata):
            yield parsed
