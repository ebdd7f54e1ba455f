"""What is shown beside the figures that a measuring process tells: the round's limits, and how full the engine is."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Final, TypeAlias

from harness.events import Observer, Occupancy, ignore
from harness.rules import ScenarioRules

AskOccupancy: TypeAlias = Callable[[], Occupancy | None]
"""Asks an engine how full it is; None where it does not say. Raises nothing, and may take a second or two."""

EVERY_S: Final = 5.0
_FIRST_S: Final = 1.0
_STALE_S: Final = 3 * EVERY_S
_NS_PER_MS: Final = 1e6


def limits_ns(rules: ScenarioRules) -> dict[str, float]:
    """The bounds that a scenario has for 99th percentiles, in ns, by the name of what they bound."""
    bounds = {"TTFT": rules.ttft_p99_below_ms, "TPOT": rules.tpot_p99_below_ms, "latency": rules.latency_p99_at_most_ms}
    return {name: bound.value * _NS_PER_MS for name, bound in bounds.items() if bound is not None}


def asked_for(observer: Observer, ask: AskOccupancy) -> AskOccupancy:
    """``ask``, where somebody looks: an engine that measures is not asked for nobody."""
    return nobody_tells if observer is ignore else ask


def nobody_tells() -> Occupancy | None:
    """Of an engine that says nothing of itself."""
    return None


class OccupancyWatch:
    """Asks on a thread of its own, at most every five seconds; to be used as a context manager.

    It never waits for an answer that does not come: the thread ends with the answer, or with the process.
    """

    def __init__(self, ask: AskOccupancy, *, first_s: float = _FIRST_S, every_s: float = EVERY_S) -> None:
        self._ask = ask
        self._waits_s = first_s, every_s
        self._over = threading.Event()
        self._seen: tuple[float, Occupancy] | None = None
        self._thread = threading.Thread(target=self._watch, name="occupancy", daemon=True)

    @property
    def latest(self) -> Occupancy | None:
        """What was said last; None where that was long ago, or never."""
        seen = self._seen
        return seen[1] if seen is not None and time.monotonic() - seen[0] < _STALE_S else None

    def __enter__(self) -> OccupancyWatch:
        if self._ask is not nobody_tells:
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._over.set()

    def _watch(self) -> None:
        wait_s, every_s = self._waits_s
        while not self._over.wait(wait_s):
            wait_s = every_s
            said = self._ask()
            if said is not None:
                self._seen = time.monotonic(), said
