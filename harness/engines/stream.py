"""Frames over a connected socket that never blocks: reading what is there, sending what fits, keeping the rest."""

from __future__ import annotations

import socket
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Final

from harness.engines.frames import Decoder, Frame

READ_BYTES: Final = 1 << 18
READS_AT_ONCE: Final = 8
"""How often the socket is read before its reader gets on with other work, though more may be there."""
SOCKET_BUFFER: Final = 1 << 20


class StreamEnded(Exception):
    """The other end is gone. Not a ConnectionError, so that one of an engine's own is never taken for it."""


class FrameStream:
    """One end of a connection. Frames that do not fit into the socket wait as iterators, so they are made when sent.

    Receiving and sending touch nothing in common: one thread may receive while another sends.
    """

    def __init__(self, connection: socket.socket) -> None:
        connection.setblocking(False)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SOCKET_BUFFER)
        self._socket = connection
        self._buffer = bytearray(READ_BYTES)
        self._view = memoryview(self._buffer)
        self._decoder = Decoder()
        self._begun: bytes | memoryview = b""
        self._waiting: deque[Iterator[bytes]] = deque()

    def fileno(self) -> int:
        """The socket's descriptor."""
        return self._socket.fileno()

    @property
    def backlog(self) -> bool:
        """Whether something waits for the socket to take it."""
        return bool(self._begun) or bool(self._waiting)

    def receive(self) -> list[Frame]:
        """The frames that are there. Raises StreamEnded where the other end is gone, WireError for garbage."""
        frames: list[Frame] = []
        for reads in range(READS_AT_ONCE):
            try:
                n = self._socket.recv_into(self._buffer)
            except BlockingIOError:
                break
            except ConnectionError as error:
                raise StreamEnded from error
            if n == 0:
                if reads == 0:
                    raise StreamEnded
                break
            frames += self._decoder.feed(self._view[:n])
            if n < READ_BYTES:
                break
        return frames

    def send(self, data: bytes) -> None:
        """Sends whole frames now, as far as they fit. Raises StreamEnded where the other end is gone."""
        if self.backlog:
            self._waiting.append(iter((data,)))
            return
        sent = self._try(data)
        if sent < len(data):
            self._begun = memoryview(data)[sent:]

    def send_later(self, frames: Iterable[bytes]) -> None:
        """Leaves frames for :meth:`flush`; each is made only when its turn comes."""
        self._waiting.append(iter(frames))

    def flush(self) -> None:
        """Sends of the backlog what fits, at most one frame: a long backlog leaves its caller time for other work.

        Raises StreamEnded where the other end is gone.
        """
        data = self._begun or self._next()
        if data is not None:
            sent = self._try(data)
            self._begun = b"" if sent == len(data) else memoryview(data)[sent:]

    def forget(self) -> None:
        """Drops the backlog, but for the rest of a frame of which the other end has the beginning."""
        self._waiting.clear()

    def close(self) -> None:
        """Closes the socket."""
        self._socket.close()

    def _try(self, data: bytes | memoryview) -> int:
        try:
            return self._socket.send(data)
        except BlockingIOError:
            return 0
        except ConnectionError as error:
            raise StreamEnded from error

    def _next(self) -> bytes | None:
        while self._waiting:
            for data in self._waiting[0]:
                return data
            self._waiting.popleft()
        return None
