"""The client's end of an engine in another process."""

from __future__ import annotations

import errno
import os
import select
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import numpy as np

from harness.engines import wire
from harness.engines.base import EngineInfo, Event, Int16Array, Int64Array, Requests, Workload
from harness.engines.frames import ANSWERS, FAILURES, REPLIES, TOKENS, Frame, Kind, WireError, signal_frame
from harness.engines.stream import FrameStream, StreamEnded
from harness.errors import EngineDied

GONE: Final = select.POLLHUP | select.POLLERR
AT_ONCE: Final = 32
"""Up to so many requests are encoded in ``submit``; more are left to the polling thread."""
RETRY_S: Final = 0.01
LOG_LINES: Final = 12
LOG_BYTES: Final = 8192


class RemoteEngine:
    """An :class:`~harness.engines.base.Engine` behind a Unix socket.

    ``submit`` sends at once where the socket takes it; else the requests wait here and ``poll`` sends them, so a client
    that submits must also poll. Prompts are encoded about a megabyte at a time, when the socket has room for them.
    """

    def __init__(self, path: Path, *, log: Path | None = None, timeout_s: float = 30.0) -> None:
        """Connects and hears what the engine says of itself. Raises EngineDied where nobody answers in time.

        ``log`` is the engine's log, for messages.
        """
        self._log = log
        self._name = f"the engine at {path}"
        self._stream = FrameStream(_connected(path, log, timeout_s))
        self._wake = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._poller = select.poll()
        self._poller.register(self._wake, select.POLLIN)
        self._poller.register(self._stream, select.POLLIN)
        self._polls_for_room = False
        self._sending = threading.Lock()
        self._workloads: dict[Workload, int] = {}
        self._last: tuple[Workload, int] | None = None
        self._held: list[Event] = []
        self._last_words: str | None = None
        self._cancels, self._cancels_heard = 0, 0
        self._pings, self._pings_heard = 0, 0
        self._counts: tuple[int, dict[str, int]] = (0, {})
        self._info: EngineInfo | None = None
        try:
            self._info = self._hello(timeout_s)
        except BaseException:
            self.close()
            raise
        self._name = f"the {self._info.kind} engine"

    def info(self) -> EngineInfo:
        """What the engine said when this client connected."""
        if self._info is None:
            raise EngineDied(f"{self._name} has not said what it is", where=self._log)
        return self._info

    def submit(self, requests: Requests) -> None:
        """Sends what fits now and leaves the rest to ``poll``. That the engine is gone is told by ``poll`` too."""
        with self._sending:
            number = self._number(requests.workload)
            try:
                if len(requests) <= AT_ONCE:
                    self._stream.send(wire.requests_frame(number, requests, 0, len(requests)))
                else:
                    self._stream.send_later(wire.requests_frames(number, requests))
            except StreamEnded:
                return  # poll sees the end of the stream, and perhaps the engine's last words before it
            left = self._stream.backlog
        if left:
            self.wake()

    def poll(self, timeout_s: float) -> list[Event]:
        """What came since the last call; see :class:`~harness.engines.base.Engine`."""
        if self._held:
            events, self._held = self._held, []
            return events
        if self._last_words is not None:
            raise self._died(self._last_words)
        deadline = time.monotonic() + timeout_s
        while True:
            events, woken = self._wait(max(0.0, deadline - time.monotonic()))
            if events or woken or time.monotonic() >= deadline:
                return events

    def wake(self) -> None:
        """Makes a waiting ``poll`` return."""
        os.eventfd_write(self._wake, 1)

    def cancel(self) -> None:
        """Forgets all requests, here and in the engine; no answer to any of them is told from now on.

        To be called from the thread that polls.
        """
        self._held = []
        self._cancels += 1
        self._say(signal_frame(Kind.CANCEL, self._cancels), forget=True)

    def ping(self, timeout_s: float) -> float:
        """Seconds until the engine answered. Raises EngineDied where it does not in time.

        To be called from the thread that polls. Events that come meanwhile are told by the next ``poll``.
        """
        start = time.monotonic()
        self._pings += 1
        self._say(signal_frame(Kind.PING, self._pings))
        self._hear_until(lambda: self._pings_heard == self._pings, timeout_s)
        return time.monotonic() - start

    def replicas_of(self, numbers: Int64Array) -> Int16Array:
        """All were given to the first: what spreads requests over replicas stands before engines such as this one."""
        return np.zeros(len(numbers), np.int16)

    def counters(self, timeout_s: float) -> dict[str, int]:
        """What the engine counted; see :class:`~harness.engines.base.Engine`. Events are kept as in :meth:`ping`."""
        number = self._counts[0] + 1
        self._say(signal_frame(Kind.COUNTERS, number))
        self._hear_until(lambda: self._counts[0] == number, timeout_s)
        return self._counts[1]

    def close(self) -> None:
        """Closes the connection, upon which the engine forgets what was outstanding."""
        if self._wake >= 0:
            self._stream.close()
            os.close(self._wake)
            self._wake = -1

    def _number(self, workload: Workload) -> int:
        """The workload's number on this connection; the engine is told of a new one first."""
        if self._last is not None and self._last[0] is workload:
            return self._last[1]
        number = self._workloads.get(workload)
        if number is None:
            number = self._workloads[workload] = len(self._workloads)
            try:
                self._stream.send(wire.workload_frame(number, workload))
            except StreamEnded:
                return number  # as in submit
        self._last = (workload, number)
        return number

    def _say(self, data: bytes, *, forget: bool = False) -> None:
        with self._sending:
            if forget:
                self._stream.forget()
                self._workloads, self._last = {}, None  # a workload that was to be told may be among what is forgotten
            try:
                self._stream.send(data)
            except StreamEnded:
                return  # as in submit

    def _hear_until(self, heard: Callable[[], bool], timeout_s: float) -> None:
        """Waits for an answer to a question of our own; events that come meanwhile are left to ``poll``."""
        deadline = time.monotonic() + timeout_s
        ended_wait = False
        while not heard():
            left = deadline - time.monotonic()
            if left <= 0:
                raise EngineDied(f"{self._name} does not answer within {timeout_s:g} s", where=self._log)
            events, woken = self._wait(left)
            self._held += events
            ended_wait = ended_wait or woken
        if ended_wait:
            self.wake()  # it was meant for a poll

    def _wait(self, timeout_s: float) -> tuple[list[Event], bool]:
        """Waits once; what came, and whether somebody called ``wake``."""
        self._poll_for_room()
        events: list[Event] = []
        woken = False
        for descriptor, flags in self._poller.poll(timeout_s * 1000):
            if descriptor == self._wake:
                os.eventfd_read(self._wake)
                woken = True
                continue
            if flags & (select.POLLIN | GONE):
                events = self._receive()
            if flags & select.POLLOUT:
                self._flush()
        return events, woken

    def _poll_for_room(self) -> None:
        """Asks to be told of room in the socket only while something waits for it."""
        if self._stream.backlog != self._polls_for_room:
            self._polls_for_room = not self._polls_for_room
            room = select.POLLOUT if self._polls_for_room else 0
            self._poller.modify(self._stream, select.POLLIN | room)

    def _flush(self) -> None:
        with self._sending:
            try:
                self._stream.flush()
            except StreamEnded:
                return  # as in submit

    def _receive(self) -> list[Event]:
        events: list[Event] = []
        try:
            for frame in self._stream.receive():
                self._hear(frame, events)
        except StreamEnded:
            raise self._died("it closed the connection") from None
        except WireError as error:
            raise self._died(str(error)) from error
        if self._last_words is not None and not events:
            raise self._died(self._last_words)
        return events

    def _hear(self, frame: Frame, events: list[Event]) -> None:
        kind = frame.kind
        if kind is TOKENS or kind is ANSWERS or kind is FAILURES or kind is REPLIES:
            if self._cancels == self._cancels_heard:
                events += wire.read_event(frame)
        elif kind is Kind.CANCEL:
            self._cancels_heard = frame.n
            events.clear()
        elif kind is Kind.PING:
            self._pings_heard = frame.n
        elif kind is Kind.COUNTERS:
            self._counts = frame.n, wire.read_counters(frame)
        elif kind is Kind.FATAL:
            self._last_words = wire.read_fatal(frame)
        elif kind is Kind.INFO:
            self._info = wire.read_info(frame)
        else:
            raise WireError(f"an engine does not say {kind.name}")

    def _hello(self, timeout_s: float) -> EngineInfo:
        deadline = time.monotonic() + timeout_s
        while self._info is None:
            left = deadline - time.monotonic()
            if left <= 0:
                raise EngineDied(
                    f"{self._name} said nothing within {timeout_s:g} s",
                    where=self._log,
                    mend="it may be serving another client: an engine serves one at a time",
                )
            self._wait(left)
        return self._info

    def _died(self, why: str) -> EngineDied:
        return EngineDied(f"{self._name} went away: {why}{last_lines(self._log)}", where=self._log)


def _connected(path: Path, log: Path | None, timeout_s: float) -> socket.socket:
    deadline = time.monotonic() + timeout_s
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.setblocking(False)
    try:
        while (error := connection.connect_ex(str(path))) == errno.EAGAIN and time.monotonic() < deadline:
            time.sleep(RETRY_S)  # its queue of clients is full (unix(7)); nothing would tell when it is not
        if error:
            raise OSError(error, os.strerror(error))
    except OSError as error:
        connection.close()
        raise EngineDied(f"no engine answers at {path}: {error}{last_lines(log)}", where=log) from error
    return connection


def last_lines(log: Path | None) -> str:
    """How a log ends, indented below a sentence; empty where there is none."""
    try:
        if log is None or not log.stat().st_size:
            return ""
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - LOG_BYTES))
            text = file.read().decode("utf-8", "replace")
    except OSError:
        return ""
    return "; its log ends with" + "".join(f"\n    {line}" for line in text.splitlines()[-LOG_LINES:])
