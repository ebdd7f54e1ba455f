"""Replies to trajectories as they were recorded, or a stated share of them: they prove what is made of turns."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import orjson

from harness.benchmarks.base import Dataset
from harness.benchmarks.qwen3_6_27b.bfcl.scripted import CHARS_A_TOKEN, words
from harness.benchmarks.qwen3_6_27b.inline import domain, scorable
from harness.benchmarks.qwen3_6_27b.messages import Message
from harness.benchmarks.qwen3_6_27b.store import Library
from harness.benchmarks.qwen3_6_27b.trajectories import Turn
from harness.benchmarks.scripts import ScriptedReplies
from harness.benchmarks.shares import right_rows


def replies(
    library: Library, dataset: Dataset, shares: Mapping[str, float], *, seed: int, answer_tokens: int, most: int
) -> ScriptedReplies:
    """A reply to each chat of a library's store, as far as ``dataset`` has rows.

    Of a domain's n turns that the inline score compares ``round(share * n)`` are answered as they were recorded, drawn
    by the seed and the same in each repeat, the others with about ``answer_tokens`` tokens of text, which scores 0.
    Where no share speaks of a domain, all its turns are answered as recorded. No reply is said to have more than
    ``most`` tokens, so that none is cut short. Raises UnknownName for a share of no domain.
    """
    turns = [(each, turn) for each in library.source.trajectories for turn in each.turns]
    compared = [place for place, (each, turn) in enumerate(turns) if scorable(each, turn)]
    drawn = right_rows([domain(turns[place][0]) for place in compared], shares, seed)
    wrong = {place for i, place in enumerate(compared) if i not in drawn and domain(turns[place][0]) in shares}
    filler = orjson.dumps({"content": words(answer_tokens)})
    one_pass = [filler if place in wrong else recorded(turn, filler) for place, (_, turn) in enumerate(turns)]
    counts = token_counts(one_pass, most)
    chats = [chat % len(turns) for row in range(dataset.rows) for chat in library.turns(row)]
    return ScriptedReplies.packed([one_pass[chat] for chat in chats], [counts[chat] for chat in chats])


def recorded(turn: Turn, otherwise: bytes) -> bytes:
    """The JSON of the reply that a turn's recorded answer is; ``otherwise`` where none was recorded."""
    return otherwise if turn.recorded is None else orjson.dumps(dict(_fields(turn.recorded)))


def _fields(answer: Message) -> Iterator[tuple[str, Any]]:
    yield "content", answer.get("content", "")
    if answer.get("reasoning_content"):
        yield "reasoning", answer["reasoning_content"]
    if answer.get("tool_calls"):
        yield "tool_calls", [_call(call) for call in answer["tool_calls"]]


def _call(call: Mapping[str, Any]) -> Mapping[str, Any]:
    """A call as servers tell it: its arguments are a text, whatever the row has."""
    function = call["function"]
    arguments = function["arguments"]
    if isinstance(arguments, str):
        return call
    return {**call, "function": {**function, "arguments": json.dumps(arguments)}}


def token_counts(replies: Sequence[bytes], most: int) -> list[int]:
    """About how many tokens each has, from 1 to ``most``: what a script says of its answers' lengths, nobody counts."""
    return [max(1, min(len(reply) // CHARS_A_TOKEN, most)) for reply in replies]
