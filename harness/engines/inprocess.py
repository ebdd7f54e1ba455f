"""A core behind the engine interface, in the client's own process: the completion thread steps it."""

from __future__ import annotations

import time
from queue import Empty, SimpleQueue

from harness.engines.base import EngineCore, EngineInfo, Event, Requests


class InProcessEngine:
    """An :class:`~harness.engines.base.Engine` whose ``poll`` does the engine's work on the caller's thread."""

    def __init__(self, core: EngineCore) -> None:
        self._core = core
        self._inbox: SimpleQueue[Requests | None] = SimpleQueue()

    def info(self) -> EngineInfo:
        """What the core says of itself."""
        return self._core.info()

    def submit(self, requests: Requests) -> None:
        """Leaves them for the polling thread; nothing of the engine runs on the caller's."""
        self._inbox.put(requests)

    def wake(self) -> None:
        """Makes a waiting ``poll`` return."""
        self._inbox.put(None)

    def poll(self, timeout_s: float) -> list[Event]:
        """Steps the core until it tells something, ``wake`` is called or ``timeout_s`` is over."""
        deadline = time.monotonic() + timeout_s
        while True:
            woken = self._receive(timeout_s)
            events = self._core.step()
            if events or woken:
                return events
            timeout_s = deadline - time.monotonic()
            if timeout_s <= 0:
                return events

    def close(self) -> None:
        """Forgets what is outstanding. For when nobody polls any more."""
        while not self._inbox.empty():
            self._inbox.get_nowait()
        self._core.cancel()

    def _receive(self, timeout_s: float) -> bool:
        """Hands all that was submitted to the core, waiting for the first while the core has nothing to do; True where
        ``wake`` was called.
        """
        inbox = self._inbox
        wait_s = self._core.wait_s()
        if wait_s is not None and wait_s < timeout_s:
            timeout_s = wait_s
        woken = False
        try:
            requests = inbox.get(timeout=timeout_s) if timeout_s > 0 else inbox.get_nowait()
            while True:
                if requests is None:
                    woken = True
                else:
                    self._core.submit(requests)
                if inbox.empty():  # cheaper to ask than to catch
                    return woken
                requests = inbox.get_nowait()
        except Empty:
            return woken
