"""A core that waits for sockets, in its client's own process: the completion thread steps it.

What :mod:`~harness.engines.inprocess` is to a core that computes. It saves a second process what a request and its
answer take to cross, and both the wait for each other: for few requests, each waiting for the one before, that is more
than the core's own work.
"""

from __future__ import annotations

import contextlib
import os
import select
import threading
import time
from queue import SimpleQueue

import numpy as np

from harness.engines.base import REPLICA_DIED, EngineCore, EngineInfo, Event, Failure, Int16Array, Int64Array, Requests
from harness.errors import EngineDied


class InsideEngine:
    """An :class:`~harness.engines.base.Engine` over a core with a descriptor and one replica.

    ValueError for another core.
    """

    def __init__(self, core: EngineCore) -> None:
        descriptor, replicas = core.descriptor(), core.info().replicas
        if descriptor is None or len(replicas) != 1:
            raise ValueError(f"a core with descriptor {descriptor} and {len(replicas)} replicas")
        self._core = core
        self._inbox: SimpleQueue[Requests] = SimpleQueue()
        self._polling = 0
        """The thread that polls."""
        self._waiting = False
        """Whether ``poll`` may be waiting, and must be told of what is left for it."""
        self._lost: Failure | None = None
        self._wake = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._poller = select.poll()
        for number in (self._wake, descriptor):
            self._poller.register(number, select.POLLIN)

    def info(self) -> EngineInfo:
        """What the core says of itself."""
        return self._core.info()

    def submit(self, requests: Requests) -> None:
        """Begins requests where the polling thread itself calls, else leaves them for it: the core has no other."""
        if threading.get_ident() == self._polling:
            self._take()  # those that came before
            self._core.submit(requests)
            return
        self._inbox.put(requests)
        if self._waiting:
            self.wake()

    def wake(self) -> None:
        """Makes a waiting ``poll`` return, or the next one."""
        os.eventfd_write(self._wake, 1)

    def poll(self, timeout_s: float) -> list[Event]:
        """Steps the core until it tells something; see :class:`~harness.engines.base.Engine`.

        That the replica died ends the engine once its events are told.
        """
        if self._lost is not None:
            raise EngineDied(f"replica {self.info().replicas[0]} died: {self._lost.message}")
        self._polling = threading.get_ident()
        deadline = time.monotonic() + timeout_s
        while True:
            self._take()
            left_s = deadline - time.monotonic()
            woken = self._wait(left_s)
            self._take()
            events = self._core.step()
            if events or woken or left_s <= 0:
                self._note_the_lost(events)
                return events

    def replicas_of(self, numbers: Int64Array) -> Int16Array:
        """There is one."""
        return np.zeros(len(numbers), np.int16)

    def counters(self, timeout_s: float) -> dict[str, int]:
        """What the core counted; it says so at once."""
        return self._core.counters()

    def close(self) -> None:
        """Forgets what is outstanding, and its connections. For when nobody polls any more; may be called again."""
        if self._wake >= 0:
            self._core.cancel()
            os.close(self._wake)
            self._wake = -1

    def _take(self) -> None:
        while not self._inbox.empty():
            self._core.submit(self._inbox.get_nowait())

    def _wait(self, at_most_s: float) -> bool:
        """Until the core has something to do, its sockets or the inbox have something: whether ``wake`` ended it."""
        core_s = self._core.wait_s()
        wait_s = at_most_s if core_s is None else min(core_s, at_most_s)
        self._waiting = True
        if not self._inbox.empty():  # looked at after the flag, as ``submit`` looks at the flag after it
            wait_s = 0.0
        ready = self._poller.poll(max(0.0, wait_s) * 1000)
        self._waiting = False
        if not any(number == self._wake for number, _ in ready):
            return False
        with contextlib.suppress(BlockingIOError):
            os.eventfd_read(self._wake)
        return True

    def _note_the_lost(self, events: list[Event]) -> None:
        for event in events:
            if isinstance(event, Failure) and event.kind == REPLICA_DIED:
                self._lost = self._lost or event
