"""Deadlines of things that are all given the same time: the first to begin is the first to be late."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final, Generic, TypeVar

T = TypeVar("T")
NEVER_NS: Final = 1 << 62


class Deadlines(Generic[T]):
    """Things with a deadline each, ``after_s`` after they were added; None for none at all."""

    def __init__(self, after_s: float | None, settled: Callable[[T], bool]) -> None:
        """``settled`` says of a thing that its deadline no longer matters."""
        self._after_ns = None if after_s is None else int(after_s * 1e9)
        self._settled = settled
        self._queue: deque[tuple[int, T]] = deque()

    def add(self, thing: T, now_ns: int) -> int:
        """Something begins; its deadline."""
        if self._after_ns is None:
            return NEVER_NS
        due = now_ns + self._after_ns
        self._queue.append((due, thing))
        return due

    def next_ns(self) -> int:
        """The first deadline that matters, or :data:`NEVER_NS`."""
        queue = self._queue
        while queue and self._settled(queue[0][1]):
            queue.popleft()
        return queue[0][0] if queue else NEVER_NS

    def late(self, now_ns: int) -> list[T]:
        """What is late now; it is told once."""
        found: list[T] = []
        while self.next_ns() <= now_ns:
            found.append(self._queue.popleft()[1])
        return found

    def clear(self) -> None:
        """Forgets all."""
        self._queue.clear()
