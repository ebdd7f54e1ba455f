"""What one forward pass is over: a token each of the slots that decode, and pieces of prompts."""

from __future__ import annotations

from dataclasses import dataclass

from harness.engines.base import Int64Array, Sampling


@dataclass(frozen=True, slots=True)
class Piece:
    """``count`` tokens of one prompt from position ``start`` on; ``ends`` where the prompt is whole after it."""

    slot: int
    start: int
    count: int
    ends: bool

    def __post_init__(self) -> None:
        if self.start < 0 or self.count < 1:
            raise ValueError(f"not a piece of a prompt: {self}")


@dataclass(frozen=True, slots=True)
class Plan:
    """One forward pass over N tokens: the first ``len(decoding)`` are one each of those slots, the rest are ``pieces``.

    ``tokens``, ``slots`` and ``positions`` are int64 (N,). ``chosen_at`` (int64) are the places among the N after
    which a token is chosen, by ``samplings``, for ``chosen_slots``.
    """

    tokens: Int64Array
    slots: Int64Array
    positions: Int64Array
    decoding: Int64Array
    pieces: tuple[Piece, ...]
    chosen_at: Int64Array
    chosen_slots: Int64Array
    samplings: tuple[Sampling, ...]
