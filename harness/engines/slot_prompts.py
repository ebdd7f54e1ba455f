"""What a slot works on: a prompt's token ids, what goes with them, and how its answer is told."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Protocol

from harness.engines.base import Answers, Event, Int32Array, Requests


class Unservable(Exception):
    """A request that cannot be answered; ``kind`` and the message become its :class:`~harness.engines.base.Failure`."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class Tell(Protocol):
    """What is told of answers: of each prompt how many tokens it has, and how many of these were not computed anew."""

    def __call__(self, answers: Answers, prompt_tokens: Sequence[int], cached_tokens: Sequence[int]) -> Event:
        """The event that goes out; it may be made of ``answers`` itself."""


def as_ids(answers: Answers, prompt_tokens: Sequence[int], cached_tokens: Sequence[int]) -> Event:
    """Answers to prompts of ids are told as they are."""
    return answers


@dataclass(frozen=True, slots=True)
class Prompt:
    """One request's prompt. A token of ``stop_token_ids`` ends its answer; ``tell`` makes of answers what is told.

    ``image`` is whatever the reader keeps of an image that some of the ids stand for. What was computed of a prompt
    and its answer is kept for a later prompt of the same ``session``; where that is None, nothing is.
    """

    ids: Int32Array
    stop_token_ids: tuple[int, ...]
    image: object = None
    tell: Tell = as_ids
    session: Hashable | None = None


class Reader(Protocol):
    """How a model's prompts are read."""

    def read(self, requests: Requests, place: int) -> Prompt:
        """The prompt of one request. Cheap: it may be refused for its length yet. Raises Unservable."""

    def seat(self, slot: int, prompt: Prompt) -> None:
        """Does what a prompt needs before its first token is read in ``slot``. Raises Unservable."""

    def forget(self) -> None:
        """Keeps nothing of what was read; no request is at work."""


class TokenIds:
    """Reads prompts of token ids, which need nothing else."""

    def read(self, requests: Requests, place: int) -> Prompt:
        """The request's own ids and stop tokens."""
        return Prompt(requests.prompt(place), requests.workload.sampling.stop_token_ids)

    def seat(self, slot: int, prompt: Prompt) -> None:
        """There is nothing to do."""

    def forget(self) -> None:
        """Nothing was kept."""
