"""One connection, and the request that is under way on it."""

from __future__ import annotations

import array
import errno
import fcntl
import os
import socket
import termios
from typing import TYPE_CHECKING, Final

from harness.engines.base import Requests
from harness.engines.http.chat import ChatReader
from harness.engines.http.ids import IdsReader
from harness.engines.http.response import Response
from harness.engines.http.template import Pieces

if TYPE_CHECKING:
    from harness.engines.http.endpoint import Endpoint
from harness.engines.http.course import Course

PENDING: Final = (errno.EINPROGRESS, errno.EWOULDBLOCK)


class Exchange:
    """A request that was begun, and what came of it."""

    __slots__ = (
        "connection",
        "course",
        "endpoint",
        "first_ns",
        "number",
        "over",
        "place",
        "reader",
        "requests",
        "retried",
        "seed",
        "told",
    )

    def __init__(self, endpoint: Endpoint, requests: Requests, place: int, course: Course) -> None:
        self.number = int(requests.numbers[place])
        self.endpoint = endpoint
        self.requests = requests
        self.place = place
        self.course = course
        self.seed = course.seed(int(requests.rows[place]))
        self.reader: IdsReader | ChatReader = course.reader()
        self.connection: Connection | None = None
        self.over = False
        """Whether its answer or failure was told."""
        self.first_ns = 0
        self.told = 0
        """How many of its tokens were told as they came."""
        self.retried = False

    @property
    def row(self) -> int:
        """Which sample it is of."""
        return int(self.requests.rows[self.place])

    def pieces(self) -> Pieces:
        """What is sent."""
        return self.course.template.request(self.requests, self.place, self.seed)


class Connection:
    """A non-blocking socket to an endpoint."""

    __slots__ = (
        "broken",
        "connecting",
        "endpoint",
        "exchange",
        "fd",
        "gathered",
        "held",
        "later",
        "mask",
        "may_hold",
        "probe",
        "raw",
        "recv_into",
        "response",
        "rest",
        "reused",
        "since_ns",
        "slept",
        "socket",
        "tail",
    )

    def __init__(self, endpoint: Endpoint) -> None:
        """Begins to connect. Raises OSError where that fails at once."""
        family, address = endpoint.address
        self.endpoint = endpoint
        self.socket = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        try:
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            result = self.socket.connect_ex(address)
        except BaseException:
            self.socket.close()
            raise
        if result not in (0, *PENDING):
            self.socket.close()
            raise OSError(result, os.strerror(result))
        self.fd = self.socket.fileno()
        self.recv_into = self.socket.recv_into
        self.gathered = False
        """Whether it is one of those that are looked at together."""
        self.mask = 0
        """Which events of it are waited for."""
        self.connecting = True
        self.broken = False
        """Whether the server takes no more of the request; it may have said why."""
        self.since_ns = 0
        """Since when it is idle."""
        self.reused = False
        """Whether it had a request before the one that it has."""
        self.probe = False
        """Whether it was made to see if the endpoint lives, and that is not known yet."""
        self.exchange: Exchange | None = None
        self.response: Response | None = None
        self.rest: Pieces | None = None
        """What of the request the socket did not take yet."""
        self.raw = bytearray()
        """What was received and is looked at later."""
        self.later = False
        """Whether pieces may be left for later: the first token was seen, and the end of chunks shows in its bytes."""

        self.may_hold = False
        """Whether few bytes of its stream need not be told of; see :mod:`harness.engines.http.watermark`."""
        self.held = False
        """Whether they are not, for the stream goes on."""
        self.tail = b""
        """How pieces of it end while it does, mostly."""
        self.slept = False
        """Whether it was quiet though bytes were there."""

    def connected(self) -> int:
        """How connecting ended: 0, or an errno."""
        self.connecting = False
        return self.socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)

    def begin(self, exchange: Exchange) -> None:
        """Takes a request, which :meth:`send` sends."""
        exchange.connection = self
        self.exchange = exchange
        self.response = Response()
        self.later = False

    def send(self, pieces: Pieces) -> int:
        """Sends what fits and keeps the rest; how much was sent."""
        try:
            sent = self.socket.send(pieces[0]) if len(pieces) == 1 else self.socket.sendmsg(pieces)
        except BlockingIOError:
            sent = 0
        except OSError:
            self.broken, self.rest = True, None
            return 0
        self.rest = _unsent(pieces, sent)
        return sent

    def tell_from(self, n: int) -> None:
        """Its socket is to be readable where n bytes are there, or its end."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, n)

    def unread(self) -> int:
        """How many bytes are there."""
        found = array.array("i", [0])
        fcntl.ioctl(self.fd, termios.FIONREAD, found)
        return found[0]

    def leave(self) -> bool:
        """Its request is at its end; whether it may take another."""
        response, self.response = self.response, None
        if self.exchange is not None:
            self.exchange.connection = None
            self.exchange = None
            self.reused = True
        if self.raw:
            self.raw = bytearray()
        self.later = self.may_hold = self.slept = False
        return response is not None and response.release() and self.rest is None and not self.broken


def _unsent(pieces: Pieces, sent: int) -> Pieces | None:
    """What is left of some pieces once so many bytes of them are sent: views, no copies."""
    for place, piece in enumerate(pieces):
        if sent < len(piece):
            return memoryview(piece)[sent:], *pieces[place + 1 :]
        sent -= len(piece)
    return None
