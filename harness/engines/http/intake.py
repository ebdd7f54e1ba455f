"""What sockets receive: the pieces of a stream are kept, once its first token was seen, until many can be read at once.

Most of a client's time goes into this. A piece that is only kept costs a system call and a few lines here.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from harness.engines.http.connection import Connection
from harness.engines.http.response import END
from harness.engines.http.watermark import Watermarks

READ_BYTES: Final = 1 << 16
KEPT_BYTES: Final = 3 << 14
"""So much of an answer waits to be read, at most; what it says takes a twentieth of that."""
LEAST_KEPT_BYTES: Final = 1 << 14
ALL_KEPT_BYTES: Final = 1 << 26
"""So much waits of all answers together, unless they are so many that the least of each is more."""


class Taken(NamedTuple):
    """What came of a connection that is to be read now; whether it is at its end, and how it was reset if it was."""

    data: bytes | bytearray
    ended: bool = False
    reset: str = ""


class Intake:
    """Takes what came of connections; those that are told seldom are marked so."""

    __slots__ = ("_buffer", "_kept", "_marks", "_view")

    def __init__(self, marks: Watermarks) -> None:
        self._marks = marks
        self._kept = KEPT_BYTES
        self._buffer = bytearray(READ_BYTES)
        self._view = memoryview(self._buffer)

    def share(self, connections: int) -> None:
        """There are so many to keep something of."""
        self._kept = max(LEAST_KEPT_BYTES, min(KEPT_BYTES, ALL_KEPT_BYTES // (1 + connections)))

    def take(self, connection: Connection) -> Taken | None:
        """What is to be read, with what was kept before; None where nothing is yet."""
        try:
            n = connection.recv_into(self._buffer)
        except BlockingIOError:
            return None
        except OSError as error:  # a machine that is gone is told by ETIMEDOUT or EHOSTUNREACH
            return Taken(_emptied(connection), True, error.strerror or str(error))
        if not connection.later:
            return Taken(bytes(self._view[:n]), not n)
        raw = connection.raw
        raw += self._view[:n]
        if n and len(raw) < self._kept and connection.held and raw.endswith(connection.tail):
            return None
        if n and not self._due(connection, raw):
            return None
        return Taken(_emptied(connection), not n)

    def _due(self, connection: Connection, raw: bytearray) -> bool:
        """Whether what is kept of a stream is to be read: it may have ended, or is much. Else it may go on."""
        if raw.endswith(END) or len(raw) < len(END):
            return True
        if connection.may_hold:
            self._marks.see(connection)
        return len(raw) >= self._kept


def _emptied(connection: Connection) -> bytearray:
    """What was kept of a connection, which keeps it no longer."""
    raw, connection.raw = connection.raw, bytearray()
    return raw
