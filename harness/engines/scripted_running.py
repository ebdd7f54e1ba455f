"""Requests that a scripted engine has under way: when what is due of them, and what is told of it."""

from __future__ import annotations

import heapq
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from harness.engines.base import NOT_TOLD, Answers, Event, Failure, Finish, Int32Array, Replies, Tokens

EXIT_SCRIPTED_DEATH: Final = 86
NEVER_NS: Final = 1 << 62


@dataclass(slots=True)
class Running:
    """A request under way. ``fault`` is what it comes to instead of an answer; ``reply`` is a chat's, whose ``answer``
    is only as long as it has tokens.
    """

    number: int
    row: int
    answer: Int32Array
    finish: Finish
    to_tell: int
    fault: str | None = None
    reply: bytes | None = None
    prompt_tokens: int = NOT_TOLD
    first_due_ns: int = 0
    gap_ns: float = 0.0
    told: int = 0
    first_ns: int = 0

    def due_ns(self) -> int:
        """When the next thing of it is to be told: a token, or the whole."""
        last = self.told if self.told < self.to_tell else len(self.answer) - 1
        return self.first_due_ns + int(max(0, last) * self.gap_ns)


@dataclass(slots=True)
class Slots:
    """When each of the places at which the engine works becomes free; a heap."""

    free_ns: list[int] = field(default_factory=list)

    def take(self, arrived_ns: int, service_ns: int) -> int:
        """The time at which a request that arrived then starts; its place is busy for ``service_ns`` from there."""
        if not self.free_ns:
            return arrived_ns
        start = max(arrived_ns, self.free_ns[0])
        heapq.heapreplace(self.free_ns, min(NEVER_NS, start + service_ns))
        return start


def tell(told: Sequence[Running], now: int) -> Tokens:
    """The next token of each."""
    positions = [running.told for running in told]
    tokens = np.fromiter((running.answer[running.told] for running in told), np.int32, len(told))
    for running in told:
        running.first_ns = running.first_ns or now
        running.told += 1
    return Tokens([running.number for running in told], positions, tokens, now)


def whole(done: Sequence[Running], now: int) -> list[Event]:
    """The answers, and the replies to chats, of requests that are done."""
    chats = [running for running in done if running.reply is not None]
    others = done if not chats else [running for running in done if running.reply is None]
    return [*([_answers(others, now)] if others else []), *([_replies(chats, now)] if chats else [])]


def _answers(done: Sequence[Running], now: int) -> Answers:
    """A first token that nobody asked to be told was there when it was due."""
    return Answers(
        numbers=[running.number for running in done],
        tokens=np.concatenate([running.answer for running in done]),
        ends=np.cumsum([len(running.answer) for running in done]).tolist(),
        first_ns=[running.first_ns or running.first_due_ns for running in done],
        done_ns=[now] * len(done),
        finish=[running.finish for running in done],
    )


def _replies(done: Sequence[Running], now: int) -> Replies:
    data = [running.reply or b"" for running in done]
    return Replies(
        numbers=[running.number for running in done],
        data=b"".join(data),
        ends=np.cumsum([len(reply) for reply in data]).tolist(),
        tokens=[len(running.answer) for running in done],
        first_ns=[running.first_ns or running.first_due_ns for running in done],
        done_ns=[now] * len(done),
        finish=[running.finish for running in done],
        prompt_tokens=[running.prompt_tokens for running in done],
    )


def come_to(running: Running) -> Failure:
    """What a request with a fault comes to; where that is the engine's death, this does not return."""
    if running.fault == "die":
        sys.stderr.write(f"scripted fault: the engine dies at row {running.row}\n")
        sys.stderr.flush()
        os._exit(EXIT_SCRIPTED_DEATH)  # as a crash would: nothing is told, nothing is closed
    return Failure(running.number, "scripted", f"scripted fault: row {running.row} fails")
