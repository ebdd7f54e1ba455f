"""Ends a probe that cannot keep the limits any more: it would only take time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeAlias

from harness.errors import Interrupted
from harness.events import Event, LegProgress, LegStarted, Observer

EARLY: Final = "ended early: "
"""How the note of such a run begins."""
_NOT_BEFORE_S: Final = 5.0
_NOT_BEFORE: Final = 0.25
"""Share of a probe that runs in any case."""
_LAG: Final = 0.1
_SIGMAS: Final = 6.0
_STEADY: Final = 1.05


class Hopeless(Interrupted):
    """A probe that was ended early, with the reason; what it had measured is kept."""


Ends: TypeAlias = Callable[[Sequence[LegProgress]], str | None]
"""Why a leg is to be ended, by what was seen of it; None while it may go on."""


def never(seen: Sequence[LegProgress]) -> str | None:
    """Of a leg that nothing ends early."""
    return None


@dataclass(slots=True)
class Watch:
    """An observer that hands events on, and raises :class:`Hopeless` out of a progress event where there is reason."""

    observer: Observer
    ends: Ends = never
    folder: Path | None = None
    """The leg's, once it has begun."""
    seen: list[LegProgress] = field(default_factory=list)

    def __call__(self, event: Event) -> None:
        """Hands the event on, then looks."""
        self.observer(event)
        if isinstance(event, LegStarted):
            self.folder = Path(event.folder)
        if isinstance(event, LegProgress):
            self.seen.append(event)
            why = self.ends(self.seen)
            if why is not None:
                raise Hopeless(f"{EARLY}{why}", where=self.folder)


def too_long(at_most_s: float) -> Ends:
    """Ends a run that was sized by a rate far too high: what it has answered tells the rate."""

    def ends(seen: Sequence[LegProgress]) -> str | None:
        late = seen[-1].elapsed_s > at_most_s and seen[-1].completed > 0
        return f"longer than {at_most_s:.0f} s; what was answered tells the rate" if late else None

    return ends


def overrun(queries: int) -> Ends:
    """Ends a probe of so many queries that cannot pass any more."""
    return lambda seen: hopeless(seen, queries)


def hopeless(seen: Sequence[LegProgress], queries: int) -> str | None:
    """Why a probe of ``queries`` cannot pass any more by what was seen of it; None while it may."""
    now = seen[-1]
    if now.elapsed_s < _NOT_BEFORE_S or now.issued < _NOT_BEFORE * queries:
        return None
    return _most_are_late(now, queries) or _overrun(seen)


def _most_are_late(now: LegProgress, queries: int) -> str | None:
    if now.completed < _NOT_BEFORE * queries:
        return None
    late = [each.name for each in now.running if each.limit_ns is not None and each.p50_ns > each.limit_ns]
    return f"half of the answers or more are over the limit of {late[0]}" if late else None


def _overrun(seen: Sequence[LegProgress]) -> str | None:
    """More comes than is answered, and the answers no longer become more: the engine's batches are full."""
    now = seen[-1]
    begin = next(each for each in seen if each.elapsed_s >= now.elapsed_s / 3)
    middle = next(each for each in seen if each.elapsed_s >= now.elapsed_s * 2 / 3)
    if not begin.elapsed_s < middle.elapsed_s < now.elapsed_s:
        return None
    came, answered = _rates(begin, now)
    _, before = _rates(begin, middle)
    _, after = _rates(middle, now)
    arrivals = now.issued - begin.issued
    grew = arrivals - (now.completed - begin.completed)
    steady = 0 < after <= _STEADY * before
    if not steady or grew < _SIGMAS * arrivals**0.5 or grew < _LAG * arrivals:
        return None
    return f"{came:.4g} queries/s come and {answered:.4g} are answered"


def _rates(begin: LegProgress, end: LegProgress) -> tuple[float, float]:
    seconds = end.elapsed_s - begin.elapsed_s
    return (end.issued - begin.issued) / seconds, (end.completed - begin.completed) / seconds
