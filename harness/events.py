"""What the lower rooms tell an observer that was handed down to them. Progress is never an import upwards."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias, TypeVar

T = TypeVar("T")

_EVERY_S: Final = 0.5


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


class Steps:
    """Tells an observer how far a piece of work is, twice a second at most."""

    def __init__(self, observer: Observer, step: str, total: int | None, unit: str = "") -> None:
        self._observer = observer
        self._step = step
        self._total = total
        self._unit = unit
        self._next = time.monotonic()

    def at(self, done: int) -> None:
        """So much is done, and there is more to do."""
        now = time.monotonic()
        if now >= self._next:
            self._next = now + _EVERY_S
            self._observer(StepProgress(self._step, done, self._total, self._unit))

    def end(self, done: int) -> None:
        """All is done."""
        self._observer(StepProgress(self._step, done, done, self._unit))


def counted(items: Iterable[T], observer: Observer, step: str, total: int | None, unit: str = "") -> Iterator[T]:
    """The items as they come, and how many came yet to the observer. What is not drawn to the end is not ended."""
    steps, done = Steps(observer, step, total, unit), 0
    for done, item in enumerate(items, start=1):
        yield item
        steps.at(done)
    steps.end(done)
