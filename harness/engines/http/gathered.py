"""Connections whose next bytes may wait for a moment: they are looked at together.

To be woken for each of many small pieces costs more than to read it. So after some of these connections had something
they are left alone for :data:`PAUSE_NS`; what comes first after a pause in which nothing came is told at once.
"""

from __future__ import annotations

import select
from typing import Final

PAUSE_NS: Final = 2_000_000
"""So much later than it came an answer's end may be seen; its first token is not waited for here."""
AT_ONCE: Final = 1024


class Gathered:
    """An epoll set within another, which is readable when this one is to be looked at, unless that is soon anyway."""

    def __init__(self, outer: select.epoll) -> None:
        self._outer = outer
        self._epoll = select.epoll()
        self._announced = True
        """Whether the outer set tells of something here; else it is looked at :attr:`_next_ns`."""
        self._next_ns = 0
        self._members = 0
        outer.register(self._epoll, select.EPOLLIN)

    def add(self, fd: int) -> None:
        """Takes a connection over from the outer set."""
        self._outer.unregister(fd)
        self._epoll.register(fd, select.EPOLLIN)
        self._members += 1

    def give_back(self, fd: int) -> None:
        """Gives a connection to the outer set, which is to tell when it can be read."""
        self.drop(fd)
        self._outer.register(fd, select.EPOLLIN)

    def drop(self, fd: int) -> None:
        """A connection is given up."""
        self._epoll.unregister(fd)
        self._members -= 1

    def due(self, now_ns: int) -> bool:
        """Whether :meth:`ready` would look."""
        return self._members > 0 and (self._announced or now_ns >= self._next_ns)

    def ready(self, now_ns: int) -> list[tuple[int, int]]:
        """Descriptors that have something, where it is time to look, with what epoll says of them."""
        if not self._announced and now_ns < self._next_ns:
            return []
        found = self._epoll.poll(0, AT_ONCE)
        if found:
            self._next_ns = now_ns if len(found) == AT_ONCE else now_ns + PAUSE_NS
        if self._announced == bool(found):
            self._announced = not found
            self._outer.modify(self._epoll, select.EPOLLIN if self._announced else 0)
        return found

    def next_ns(self) -> int | None:
        """When to look, where nothing will tell."""
        return None if self._announced else self._next_ns

    def close(self) -> None:
        """Lets go of the set; the connections stay open."""
        self._epoll.close()
