"""Waiting for several connections at once, and being woken meanwhile."""

from __future__ import annotations

import os
import select
import time
from collections.abc import Callable, Sequence
from typing import Final

from harness.engines.base import EngineInfo
from harness.engines.connection import Connection
from harness.engines.frames import Kind
from harness.errors import EngineDied

READABLE: Final = select.POLLIN | select.POLLHUP | select.POLLERR


class Waiter:
    """One poll over connections and an event of our own. ``wake`` may be called from any thread."""

    def __init__(self, connections: Sequence[Connection]) -> None:
        self._connections = {connection.fileno(): connection for connection in connections}
        self._wants_room = dict.fromkeys(self._connections, False)
        self._wake = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._poller = select.poll()
        for descriptor in (self._wake, *self._connections):
            self._poller.register(descriptor, select.POLLIN)

    def wake(self) -> None:
        """Ends a wait, or the next one."""
        os.eventfd_write(self._wake, 1)

    def wait(self, timeout_s: float) -> tuple[list[Connection], bool]:
        """Waits once and sends what there is room for; which connections have something, and whether it was woken."""
        for descriptor, connection in self._connections.items():
            if connection.backlog != self._wants_room[descriptor]:
                self._ask_for_room(descriptor)
        readable: list[Connection] = []
        woken = False
        for descriptor, flags in self._poller.poll(timeout_s * 1000):
            if descriptor == self._wake:
                os.eventfd_read(self._wake)
                woken = True
                continue
            connection = self._connections[descriptor]
            if flags & READABLE:
                readable.append(connection)
            if flags & select.POLLOUT:
                connection.flush()
        return readable, woken

    def forget(self, connection: Connection) -> None:
        """Waits for it no more."""
        descriptor = connection.fileno()
        if self._connections.pop(descriptor, None) is not None:
            self._poller.unregister(descriptor)

    def close(self) -> None:
        """May be called again."""
        if self._wake >= 0:
            os.close(self._wake)
            self._wake = -1

    def _ask_for_room(self, descriptor: int) -> None:
        """To be told of room in a socket, only while something waits for it."""
        wanted = self._wants_room[descriptor] = not self._wants_room[descriptor]
        self._poller.modify(descriptor, select.POLLIN | (select.POLLOUT if wanted else 0))


class Questions:
    """What a client asks engines besides requests, over a :class:`Waiter`.

    All of it is to be called from the thread that polls. ``read`` takes what a connection has meanwhile, and raises
    EngineDied or not; one that is gone answers nothing more. EngineDied where an engine does not answer in time.
    """

    def __init__(self, waiter: Waiter, read: Callable[[Connection], None]) -> None:
        self._waiter = waiter
        self._read = read
        self._asked = 0

    def hello(self, connection: Connection, timeout_s: float) -> EngineInfo | None:
        """What an engine says of itself when its turn has come."""
        self._hear(connection, lambda: connection.info is not None, timeout_s, _silent)
        return connection.info

    def ping(self, connection: Connection, timeout_s: float) -> float:
        """Seconds until the engine answered."""
        start = time.monotonic()
        self._asked += 1
        connection.say(Kind.PING, self._asked)
        self._hear(connection, lambda: connection.pings_heard == self._asked, timeout_s, _unanswered)
        return time.monotonic() - start

    def counters(self, connection: Connection, timeout_s: float) -> dict[str, int]:
        """What the engine counted."""
        self._asked += 1
        connection.say(Kind.COUNTERS, self._asked)
        self._hear(connection, lambda: connection.counters_heard[0] == self._asked, timeout_s, _unanswered)
        return connection.counters_heard[1]

    def _hear(
        self,
        connection: Connection,
        heard: Callable[[], bool],
        timeout_s: float,
        late: Callable[[Connection, float], EngineDied],
    ) -> None:
        deadline = time.monotonic() + timeout_s
        ended_wait = False
        while not (heard() or connection.gone):
            left = deadline - time.monotonic()
            if left <= 0:
                raise late(connection, timeout_s)
            readable, woken = self._waiter.wait(left)
            for each in readable:
                self._read(each)
            ended_wait = ended_wait or woken
        if ended_wait:
            self._waiter.wake()  # it was meant for a poll


def _silent(connection: Connection, timeout_s: float) -> EngineDied:
    return EngineDied(
        f"{connection.name} said nothing within {timeout_s:g} s",
        where=connection.log,
        mend="it may be serving another client: an engine serves one at a time",
    )


def _unanswered(connection: Connection, timeout_s: float) -> EngineDied:
    return EngineDied(f"{connection.name} does not answer within {timeout_s:g} s", where=connection.log)
