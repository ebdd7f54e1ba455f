"""Which turns of which trajectories are to be asked now. Pure: no engine, no clock, no files."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from harness.ledger.samples import NONE


@dataclass(slots=True, eq=False)
class Trajectory:
    """One that LoadGen issued, and how far it is.

    ``number`` is LoadGen's, ``sample`` its place in the order of issue, ``row`` that of the library. Its chats are the
    store's rows from ``begin`` to before ``end``; ``chat`` is the one that is asked, or comes next. ``first_ns`` is
    when its very first token came, ``tokens`` those of the answers so far.
    """

    number: int
    sample: int
    row: int
    begin: int
    end: int
    chat: int
    first_ns: int = NONE
    tokens: int = 0

    @property
    def turn(self) -> int:
        """The place of ``chat`` in the trajectory, from 0."""
        return self.chat - self.begin


class TurnOrder:
    """Trajectories in the order of issue, at most ``max_under_way`` of them begun and not ended; of each one turn at a
    time.

    ``delays_ns``, by chat, is how long its tool took, counted from the end of the turn before; None asks at once. What
    stands there for a first turn comes after nothing, and is not waited for.
    """

    def __init__(self, max_under_way: int, delays_ns: Sequence[int] | None = None) -> None:
        if max_under_way < 1:
            raise ValueError(f"{max_under_way} trajectories at once")
        self._max_under_way = max_under_way
        self._delays_ns = delays_ns
        self._waiting: deque[Trajectory] = deque()
        self._ready: list[Trajectory] = []
        self._delayed: list[tuple[int, int, Trajectory]] = []
        """A heap: when it is due, and the sample, which no two of them share."""
        self.under_way = 0

    def add(self, trajectory: Trajectory) -> None:
        """One more, behind those that are there."""
        self._waiting.append(trajectory)

    def due(self, now_ns: int) -> list[Trajectory]:
        """Those whose ``chat`` is to be asked now; each is told once. Begun ones come before new ones."""
        due, self._ready = self._ready, []
        while self._delayed and self._delayed[0][0] <= now_ns:
            due.append(heapq.heappop(self._delayed)[2])
        while self._waiting and self.under_way < self._max_under_way:
            self.under_way += 1
            due.append(self._waiting.popleft())
        return due

    def wait_s(self, at_most_s: float, now_ns: int) -> float:
        """How long to wait for something else to happen: until the next tool is done, ``at_most_s`` at the longest."""
        if not self._delayed:
            return at_most_s
        return min(at_most_s, max(0, self._delayed[0][0] - now_ns) / 1e9)

    def answered(self, trajectory: Trajectory, at_ns: int) -> bool:
        """Its turn ended well, at ``at_ns``: whether that was the last."""
        trajectory.chat = chat = trajectory.chat + 1
        if chat == trajectory.end:
            self.under_way -= 1
            return True
        delay_ns = self._delays_ns[chat] if self._delays_ns is not None else 0
        if delay_ns:
            heapq.heappush(self._delayed, (at_ns + delay_ns, trajectory.sample, trajectory))
        else:
            self._ready.append(trajectory)
        return False

    def failed(self, trajectory: Trajectory) -> None:
        """Its turn failed: none of the rest is asked."""
        self.under_way -= 1
