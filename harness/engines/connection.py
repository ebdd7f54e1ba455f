"""One connection to an engine's process, as its client holds it: what is said, what is heard, and no waiting."""

from __future__ import annotations

import errno
import os
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from harness.engines import wire
from harness.engines.base import REPLICA_DIED, EngineInfo, Event, Failure, Requests, Workload
from harness.engines.frames import ANSWERS, FAILURES, REPLIES, TOKENS, Frame, Kind, WireError, signal_frame
from harness.engines.stream import FrameStream, StreamEnded
from harness.errors import EngineDied

AT_ONCE: Final = 32
"""Up to so many requests are encoded in ``submit``; more are left to the thread that polls."""
MOST_WORKLOADS: Final = 256
"""So many have a number at once: whoever asks every time with another sampling does not fill two processes' memory."""
RETRY_S: Final = 0.01
LOG_LINES: Final = 12
LOG_BYTES: Final = 8192


class Connection:
    """A socket on which frames are exchanged; whoever holds it waits for it.

    ``submit`` may be called from one thread while another calls all the rest. What the socket does not take waits here
    until ``flush``. ``log`` is the engine's log, for messages.
    """

    def __init__(self, path: Path, *, log: Path | None = None, timeout_s: float = 30.0) -> None:
        """Connects. Raises EngineDied where nobody answers in time."""
        self.log = log
        self.name = f"the engine at {path}"
        self.info: EngineInfo | None = None
        """What the engine said of itself, which it does before all else."""
        self.lost: Failure | None = None
        """The request whose failure told that a replica is gone."""
        self.last_words: str | None = None
        self.gone = False
        self.pings_heard = 0
        self.counters_heard: tuple[int, dict[str, int]] = (0, {})
        """The last question that was answered, and the answer."""
        self._stream = FrameStream(_connected(path, log, timeout_s))
        self._sending = threading.Lock()
        self._workloads: dict[Workload, int] = {}
        self._last: tuple[Workload, int] | None = None
        self._cancels, self._cancels_heard = 0, 0

    def fileno(self) -> int:
        """The socket's descriptor."""
        return self._stream.fileno()

    @property
    def backlog(self) -> bool:
        """Whether something waits for the socket to take it."""
        return self._stream.backlog

    def submit(self, requests: Requests) -> bool:
        """Sends what fits now; whether something waits. That the engine is gone is told by ``receive``."""
        with self._sending:
            number = self._number(requests.workload)
            try:
                if len(requests) <= AT_ONCE:
                    self._stream.send(wire.requests_frame(number, requests, 0, len(requests)))
                else:
                    self._stream.send_later(wire.requests_frames(number, requests))
            except StreamEnded:
                return False  # receive sees the end of the stream, and perhaps the engine's last words before it
            return self._stream.backlog

    def submit_in_turn(self, batches: Sequence[Requests]) -> None:
        """Leaves many requests to ``flush``, a frame of each batch in turn: none waits for all of another.

        At most :data:`MOST_WORKLOADS` batches, whose workloads need their numbers at the same time.
        """
        if len(batches) > MOST_WORKLOADS:
            raise ValueError(f"{len(batches)} batches in turn")
        with self._sending:
            for batch in batches:
                if batch.workload in self._workloads:
                    self._workloads[batch.workload] = self._workloads.pop(batch.workload)  # to give it up last
            frames = [wire.requests_frames(self._number(batch.workload), batch) for batch in batches]
            self._stream.send_later(_in_turn(frames))

    def say(self, kind: Kind, n: int) -> None:
        """Sends a frame that is nothing but its kind and a number."""
        with self._sending:
            self._send(signal_frame(kind, n))

    def drop(self, numbers: Sequence[int]) -> bool:
        """Has the engine work no longer on these requests; whether something waits, as for ``submit``.

        What is on its way already is still told.
        """
        with self._sending:
            self._send(wire.drop_frame(numbers))
            return self._stream.backlog

    def cancel(self) -> None:
        """Forgets all requests, here and in the engine; no answer to any of them is told from now on."""
        self._cancels += 1
        with self._sending:
            self._stream.forget()
            self._workloads, self._last = {}, None  # a workload that was to be told may be among what is forgotten
            self._send(signal_frame(Kind.CANCEL, self._cancels))

    def flush(self) -> None:
        """Sends of what waits one frame, if it fits."""
        with self._sending:
            try:
                self._stream.flush()
            except StreamEnded:
                return  # as in submit

    def receive(self) -> list[Event]:
        """What is there. Raises EngineDied where there is nothing and never will be."""
        events: list[Event] = []
        try:
            for frame in self._stream.receive():
                self._hear(frame, events)
        except StreamEnded:
            raise self.died("it closed the connection") from None
        except WireError as error:
            raise self.died(str(error)) from error
        if self.last_words is not None and not events:
            raise self.died(self.last_words)
        return events

    def died(self, why: str) -> EngineDied:
        """Notes that it is gone; the error that says so, with the last lines of the engine's log."""
        self.gone = True
        return EngineDied(f"{self.name} went away: {why}{last_lines(self.log)}", where=self.log)

    def close(self) -> None:
        """Closes the connection, upon which the engine forgets what was outstanding."""
        self._stream.close()

    def _number(self, workload: Workload) -> int:
        """The workload's number on this connection; the engine is told of a new one first.

        Where too many have a number, the one longest there gives it up: frames arrive in their order, so requests that
        went out under it have been read when the engine is told what it means from then on.
        """
        if self._last is not None and self._last[0] is workload:
            return self._last[1]
        number = self._workloads.get(workload)
        if number is None:
            number = len(self._workloads)
            if number == MOST_WORKLOADS:
                number = self._workloads.pop(next(iter(self._workloads)))
            self._workloads[workload] = number
            self._send(wire.workload_frame(number, workload))
        self._last = (workload, number)
        return number

    def _send(self, frame: bytes) -> None:
        try:
            self._stream.send(frame)
        except StreamEnded:
            return  # as in submit

    def _hear(self, frame: Frame, events: list[Event]) -> None:
        kind = frame.kind
        if kind is ANSWERS or kind is TOKENS or kind is REPLIES:
            if self._cancels == self._cancels_heard:
                events += wire.read_event(frame)
        elif kind is FAILURES:
            self._hear_failures(frame, events)
        elif kind is Kind.CANCEL:
            self._cancels_heard = frame.n
            events.clear()
        elif kind is Kind.PING:
            self.pings_heard = frame.n
        elif kind is Kind.COUNTERS:
            self.counters_heard = frame.n, wire.read_counters(frame)
        elif kind is Kind.FATAL:
            self.last_words = wire.read_fatal(frame)
        elif kind is Kind.INFO:
            self.info = wire.read_info(frame)
            self.name = f"the {self.info.kind} engine"
        else:
            raise WireError(f"an engine does not say {kind.name}")

    def _hear_failures(self, frame: Frame, events: list[Event]) -> None:
        if self._cancels != self._cancels_heard:
            return
        failures = wire.read_event(frame)
        events += failures
        for failure in failures:
            if isinstance(failure, Failure) and failure.kind == REPLICA_DIED and self.lost is None:
                self.lost = failure


def _in_turn(streams: list[Iterator[bytes]]) -> Iterator[bytes]:
    while streams:
        left = []
        for stream in streams:
            frame = next(stream, None)
            if frame is not None:
                left.append(stream)
                yield frame
        streams = left


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
