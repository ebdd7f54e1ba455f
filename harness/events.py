"""What the lower rooms tell an observer that was handed down to them. Progress is never an import upwards."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Note:
    """A line worth showing: something was started, reused, chosen."""

    text: str


@dataclass(frozen=True, slots=True)
class LegStarted:
    """A leg begins. ``expected_s`` is None where nothing says how long it will take."""

    leg: str
    folder: str
    expected_s: float | None


@dataclass(frozen=True, slots=True)
class LegProgress:
    """How far a leg is: samples issued, completed, failed since its start; turns where a sample is a trajectory."""

    leg: str
    elapsed_s: float
    issued: int
    completed: int
    failed: int
    turns: int | None = None


@dataclass(frozen=True, slots=True)
class LegFinished:
    """A leg ended. ``verdict`` is one word; ``detail`` the headline or the first reason."""

    leg: str
    verdict: str
    detail: str


Event: TypeAlias = Note | LegStarted | LegProgress | LegFinished
Observer: TypeAlias = Callable[[Event], None]


def ignore(event: Event) -> None:
    """The observer that looks away."""
