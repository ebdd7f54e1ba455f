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
class Running:
    """How a latency of the answers so far lies, in nanoseconds, beside the limit of its 99th percentile if any.

    ``name`` is TTFT, TPOT or latency; with ``turn `` before it where it is that of a trajectory's turns.
    """

    name: str
    p50_ns: float
    p99_ns: float
    limit_ns: float | None = None


@dataclass(frozen=True, slots=True)
class Occupancy:
    """How full an engine is, as far as it tells: requests it computes, requests that wait, KV cache in use (0 to 1)."""

    running: int | None = None
    waiting: int | None = None
    kv_cache: float | None = None


@dataclass(frozen=True, slots=True)
class LegProgress:
    """How far a leg is: samples issued, completed (failed ones among them), failed since its start; turns answered
    where a sample is a trajectory.

    Rates are over the last seconds, None before anything was answered; of turns where there are any. ``running`` is
    empty where nothing of the kind is known yet, or the client does not tell.
    """

    leg: str
    elapsed_s: float
    issued: int
    completed: int
    failed: int
    turns: int | None = None
    samples_per_s: float | None = None
    tokens_per_s: float | None = None
    running: tuple[Running, ...] = ()
    occupancy: Occupancy | None = None


@dataclass(frozen=True, slots=True)
class StepProgress:
    """How far a piece of work is that is no leg: ``done`` of ``total`` (None: not known) ``unit``.

    A step ends with ``done == total``, or when another begins.
    """

    step: str
    done: int
    total: int | None
    unit: str = ""


@dataclass(frozen=True, slots=True)
class LegFinished:
    """A leg ended. ``verdict`` is one word; ``detail`` the headline or the first reason."""

    leg: str
    verdict: str
    detail: str


Event: TypeAlias = Note | LegStarted | LegProgress | LegFinished | StepProgress
Observer: TypeAlias = Callable[[Event], None]


def ignore(event: Event) -> None:
    """The observer that looks away."""
