"""The client's end of an engine in another process."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from harness.engines.base import EngineInfo, Event, Int16Array, Int64Array, Requests
from harness.engines.connection import Connection
from harness.engines.waiting import Questions, Waiter
from harness.errors import EngineDied


class RemoteEngine:
    """An :class:`~harness.engines.base.Engine` behind a Unix socket.

    ``submit`` sends at once where the socket takes it; else the requests wait here and ``poll`` sends them, so a client
    that submits must also poll. Prompts are encoded about a megabyte at a time, when the socket has room for them.
    """

    def __init__(self, path: Path, *, log: Path | None = None, timeout_s: float = 30.0) -> None:
        """Connects and hears what the engine says of itself. Raises EngineDied where nobody answers in time.

        ``log`` is the engine's log, for messages.
        """
        self._connection = Connection(path, log=log, timeout_s=timeout_s)
        self._waiter = Waiter((self._connection,))
        self._questions = Questions(self._waiter, self._keep)
        self._held: list[Event] = []
        self.wake = self._waiter.wake
        """Makes a waiting ``poll`` return."""
        try:
            self._questions.hello(self._connection, timeout_s)
        except BaseException:
            self.close()
            raise

    def info(self) -> EngineInfo:
        """What the engine said when this client connected."""
        if self._connection.info is None:
            raise EngineDied(f"{self._connection.name} has not said what it is", where=self._connection.log)
        return self._connection.info

    def submit(self, requests: Requests) -> None:
        """Sends what fits now and leaves the rest to ``poll``. That the engine is gone is told by ``poll`` too."""
        if self._connection.submit(requests):
            self.wake()

    def poll(self, timeout_s: float) -> list[Event]:
        """What came since the last call; see :class:`~harness.engines.base.Engine`.

        That a replica died, which a failure of that kind tells, ends the engine once its events are told.
        """
        if self._held:
            events, self._held = self._held, []
            return events
        connection = self._connection
        if connection.last_words is not None:
            raise connection.died(connection.last_words)
        if connection.lost is not None:
            raise EngineDied(f"replica {self.info().replicas[0]} died: {connection.lost.message}", where=connection.log)
        deadline = time.monotonic() + timeout_s
        while True:
            readable, woken = self._waiter.wait(max(0.0, deadline - time.monotonic()))
            events = connection.receive() if readable else []
            if events or woken or time.monotonic() >= deadline:
                return events

    def cancel(self) -> None:
        """Forgets all requests, here and in the engine; no answer to any of them is told from now on.

        To be called from the thread that polls.
        """
        self._held = []
        self._connection.cancel()

    def drop(self, numbers: Sequence[int]) -> None:
        """Has the engine work no longer on these requests. What is on its way already is still told.

        May be called from the thread that submits. No later request may have one of these numbers.
        """
        if self._connection.drop(numbers):
            self.wake()

    def ping(self, timeout_s: float) -> float:
        """Seconds until the engine answered. Raises EngineDied where it does not in time.

        To be called from the thread that polls. Events that come meanwhile are told by the next ``poll``.
        """
        return self._questions.ping(self._connection, timeout_s)

    def replicas_of(self, numbers: Int64Array) -> Int16Array:
        """All were given to the first: what spreads requests over replicas is :mod:`~harness.engines.replicas`."""
        return np.zeros(len(numbers), np.int16)

    def counters(self, timeout_s: float) -> dict[str, int]:
        """What the engine counted; see :class:`~harness.engines.base.Engine`. Events are kept as in :meth:`ping`."""
        return self._questions.counters(self._connection, timeout_s)

    def close(self) -> None:
        """Closes the connection, upon which the engine forgets what was outstanding."""
        self._connection.close()
        self._waiter.close()

    def _keep(self, connection: Connection) -> None:
        self._held += connection.receive()
