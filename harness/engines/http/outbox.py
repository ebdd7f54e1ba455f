"""What came since it was last told, as columns."""

from __future__ import annotations

import itertools

import numpy as np

from harness.engines.base import Answers, Event, Failure, Replies, Tokens
from harness.engines.http.chat import Reply
from harness.engines.http.ids import IdsAnswer


class Outbox:
    """Collects tokens, answers and failures; :meth:`events` tells them, first tokens before answers."""

    def __init__(self) -> None:
        self.failures: list[Failure] = []
        self._later_tokens: list[Event] = []
        self.clear()

    def clear(self) -> None:
        """Forgets all."""
        self.failures.clear()
        self._later_tokens.clear()
        self._first: list[tuple[int, int]] = []
        self._first_ns = 0
        self._answers: list[tuple[int, IdsAnswer, int, int]] = []
        self._replies: list[tuple[int, Reply, int, int]] = []

    def __bool__(self) -> bool:
        return bool(self.failures or self._first or self._answers or self._replies or self._later_tokens)

    def first(self, number: int, token: int, at_ns: int) -> None:
        """An answer's first token."""
        self._first.append((number, token))
        self._first_ns = at_ns

    def tokens(self, number: int, position: int, tokens: list[int], at_ns: int) -> None:
        """An answer's next tokens, which begin at a position."""
        for place, token in enumerate(tokens, position):
            self._later_tokens.append(Tokens((number,), (place,), np.array([token], np.int32), at_ns))

    def answer(self, number: int, answer: IdsAnswer | Reply, first_ns: int, done_ns: int) -> None:
        """A whole answer."""
        if isinstance(answer, IdsAnswer):
            self._answers.append((number, answer, first_ns, done_ns))
        else:
            self._replies.append((number, answer, first_ns, done_ns))

    def events(self) -> list[Event]:
        """All that came, which is then forgotten."""
        events: list[Event] = []
        if self._first:
            numbers, tokens = zip(*self._first, strict=True)
            events.append(Tokens(numbers, (0,) * len(numbers), np.array(tokens, np.int32), self._first_ns))
        events += self._later_tokens
        if self._answers:
            events.append(_answers(self._answers))
        if self._replies:
            events.append(_replies(self._replies))
        events += self.failures
        self.clear()
        return events


def _answers(told: list[tuple[int, IdsAnswer, int, int]]) -> Answers:
    if len(told) == 1:
        number, (tokens, finish), first_ns, done_ns = told[0]
        return Answers((number,), tokens, (len(tokens),), (first_ns,), (done_ns,), (finish,))
    numbers, answers, first, done = zip(*told, strict=True)
    ends = np.cumsum([len(answer.tokens) for answer in answers]).tolist()
    tokens = np.concatenate([answer.tokens for answer in answers])
    return Answers(numbers, tokens, ends, first, done, [answer.finish for answer in answers])


def _replies(told: list[tuple[int, Reply, int, int]]) -> Replies:
    numbers, replies, first, done = zip(*told, strict=True)
    return Replies(
        numbers=numbers,
        data=b"".join(reply.data for reply in replies),
        ends=list(itertools.accumulate(len(reply.data) for reply in replies)),
        tokens=[reply.tokens for reply in replies],
        first_ns=first,
        done_ns=done,
        finish=[reply.finish for reply in replies],
        prompt_tokens=[reply.prompt_tokens for reply in replies],
        cached_tokens=[reply.cached_tokens for reply in replies],
    )
