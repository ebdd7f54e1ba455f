"""How much of a stream must be there before its socket says that it can be read.

A chunk of a stream is read for nothing unless the answer's end is among what came. Behind an event that leaves open why
the answer ends there are at least another that says it, the usage, ``[DONE]`` and the last chunk: as long as fewer
bytes are there, the end is not. So the kernel is told to wake us for no fewer (SO_RCVLOWAT); the end of the connection
it tells at once. A stream whose end is of another form waits until it is looked at for having been quiet.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from harness.engines.http.deadlines import NEVER_NS

if TYPE_CHECKING:
    from harness.engines.http.connection import Connection

FINISH: Final = b'"finish_reason":'
OPEN: Final = b"null"
CHOICES: Final = b'"choices":['
NO_TEXT: Final = b'"text":""'
WHOLE: Final = b"\n\n\r\n"
"""How a chunk ends that ends with an event."""
END_BYTES: Final = len(
    b'],"usage":{"prompt_tokens":1,"total_tokens":1,"completion_tokens":1}}\n\ndata: [DONE]\n\n0\r\n\r\n'
)
"""What follows the beginning of the event that tells the usage, at least."""
SLACK: Final = 32
"""Bytes that an event may have more than another like it, in its numbers."""
QUIET_NS: Final = 100_000_000
"""After so long, and at most twice as long, a stream that was quiet is looked at whatever is there."""


def goes_on(raw: bytearray) -> bool:
    """Whether what came ends with a whole event, and the last that could have said why the answer ends did not."""
    if not raw.endswith(WHOLE):
        return False
    at = raw.rfind(FINISH)
    return at >= 0 and raw.startswith(OPEN, at + len(FINISH))


@dataclass(frozen=True, slots=True)
class Form:
    """What streams have in common, seen from one that goes on.

    ``least_left``: the fewest bytes that can follow an event that leaves the finish open; 0 where that cannot be told.
    ``tail``: how such an event ends, mostly.
    """

    least_left: int
    tail: bytes

    @classmethod
    def of(cls, raw: bytearray, ids_key: bytes) -> Form:
        """From what came, the last event of which leaves the finish open.

        There follow another like it without ids, and one with the usage in place of the choice. Of an event with a
        text only the beginning is counted: the text of others may be shorter.
        """
        event = bytes(raw[raw.rfind(b"data: {") :])
        tail = event[event.rfind(FINISH) :]
        head = event.find(CHOICES) + len(CHOICES)
        if head < len(CHOICES):
            return cls(0, tail)
        alike = head
        ids = event.find(ids_key) + len(ids_key)
        if NO_TEXT in event and ids >= len(ids_key):
            alike = len(event) - (event.index(b"]", ids) - ids)
        return cls(alike + head + END_BYTES - SLACK, tail)


class Watermarks:
    """The connections of which not every piece is told, by :attr:`Connection.held`."""

    def __init__(self) -> None:
        self._held: dict[Connection, int] = {}
        """With how much was kept of each when it was last looked at."""
        self.next_ns = NEVER_NS
        """When they are to be looked at."""

    def see(self, connection: Connection) -> None:
        """Something of a stream came."""
        on, exchange = goes_on(connection.raw), connection.exchange
        if on is connection.held or exchange is None:
            return
        if not on:
            self.release(connection)
            return
        form = exchange.course.form(connection.raw)
        connection.may_hold = exchange.course.may_hold
        if not connection.may_hold:
            return
        if not self._held:
            self.next_ns = time.monotonic_ns() + QUIET_NS
        self._held[connection] = -1
        connection.held, connection.slept = True, False
        connection.tail = form.tail
        connection.tell_from(form.least_left)

    def release(self, connection: Connection) -> None:
        """All that comes of a connection is to be told."""
        if connection.held:
            self.forget(connection)
            connection.tell_from(1)

    def end(self, connection: Connection) -> None:
        """Its stream is at its end. An end for which others than the quiet did not wake us may come so again."""
        if connection.slept and connection.exchange is not None:
            connection.exchange.course.may_hold = False
        self.release(connection)

    def forget(self, connection: Connection) -> None:
        """The connection is about to be closed."""
        connection.held = False
        self._held.pop(connection, None)
        if not self._held:
            self.next_ns = NEVER_NS

    def look(self, now_ns: int) -> None:
        """Releases those of which nothing came since the last look."""
        for connection, kept in tuple(self._held.items()):
            size = len(connection.raw)
            if size != kept:
                self._held[connection] = size
            else:
                connection.slept = connection.unread() > 0
                self.release(connection)
        self.next_ns = now_ns + QUIET_NS if self._held else NEVER_NS
