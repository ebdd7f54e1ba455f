"""A core behind the engine interface, in the client's own process: the completion thread steps it."""

from __future__ import annotations

import time
from collections.abc import Callable
from queue import Empty, SimpleQueue

import numpy as np

from harness.engines.base import EngineCore, EngineInfo, Event, Int16Array, Int64Array, Requests


class InProcessEngine:
    """An :class:`~harness.engines.base.Engine` whose ``poll`` does the engine's work on the caller's thread."""

    def __init__(self, core: EngineCore) -> None:
        self._core = core
        self._inbox: SimpleQueue[Requests | None] = SimpleQueue()
        self.submit: Callable[[Requests], None] = self._inbox.put
        """Leaves requests for the polling thread; nothing of the engine runs on the caller's."""

    def info(self) -> EngineInfo:
        """What the core says of itself."""
        return self._core.info()

    def wake(self) -> None:
        """Makes a waiting ``poll`` return."""
        self._inbox.put(None)

    def poll(self, timeout_s: float) -> list[Event]:
        """Steps the core until it tells something, ``wake`` is called or ``timeout_s`` is over."""
        core, inbox = self._core, self._inbox
        deadline = time.monotonic() + timeout_s
        woken = False
        while True:
            wait_s = core.wait_s()
            if wait_s is None or wait_s > timeout_s:
                wait_s = timeout_s
            try:
                requests = inbox.get(True, wait_s) if wait_s > 0 else inbox.get_nowait()
                while True:
                    if requests is None:
                        woken = True
                    else:
                        core.submit(requests)
                    if inbox.empty():  # cheaper to ask than to catch
                        break
                    requests = inbox.get_nowait()
            except Empty:
                pass
            events = core.step()
            if events or woken:
                return events
            timeout_s = deadline - time.monotonic()
            if timeout_s <= 0:
                return events

    def replicas_of(self, numbers: Int64Array) -> Int16Array:
        """There is one replica, the core."""
        return np.zeros(len(numbers), np.int16)

    def counters(self, timeout_s: float) -> dict[str, int]:
        """What the core counted; it says so at once."""
        return self._core.counters()

    def close(self) -> None:
        """Forgets what is outstanding. For when nobody polls any more."""
        while not self._inbox.empty():
            self._inbox.get_nowait()
        self._core.cancel()
