"""A server that answers each turn of recorded trajectories as it was answered.

What is asked is found by ``X-Session-ID`` and by how many of the messages are the assistant's; without that header, by
the messages. One thread, which reads of a body what it must and sends bytes that were made before: it is the other side
of the benchmark ``benchmarks/agentic`` (``recorded_process.py``), and tests run it on a thread of their own process.
"""

from __future__ import annotations

import heapq
import select
import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

import orjson

from tests.doubles.recorded_answers import (
    BROKEN_OFF,
    CLOSING,
    STATUS,
    Answer,
    Fault,
    Kind,
    Recorded,
    Style,
    Wanted,
    events,
    refused,
    streamed,
    whole,
)
from tests.doubles.recorded_requests import Connection

SEND_BUFFER: Final = 4 << 20
RESET_ON_CLOSE: Final = struct.pack("ii", 1, 0)


@dataclass(frozen=True, slots=True)
class Asked:
    """A request as it came: the value of X-Session-ID ("" for none), the place of its turn, the fault that it met."""

    session: str
    turn: int
    fault: Kind | None
    at_ns: int


class RecordedServer:
    """Serves until :meth:`stop`. ``first_ms`` is how long a first byte is kept back.

    ``asked`` are all requests for chats, in the order in which they came; ``bodies`` theirs, where they are kept.
    """

    def __init__(
        self,
        recorded: Recorded,
        *,
        style: Style | None = None,
        faults: Iterable[Fault] = (),
        first_ms: float = 0.0,
        keep_bodies: bool = False,
        model: str = "recorded",
    ) -> None:
        self._recorded = recorded
        self._style = style or Style()
        self._faults = tuple(faults)
        self._met: Counter[Fault] = Counter()
        self._first_ns = round(first_ms * 1e6)
        self._keep = keep_bodies
        self._model = model
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=4096)
        self._wake, self._woken = socket.socketpair()
        self._poll = select.epoll()
        self._poll.register(self._listener, select.EPOLLIN)
        self._poll.register(self._woken, select.EPOLLIN)
        self._connections: dict[int, Connection] = {}
        self._responses: dict[tuple[object, ...], bytes] = {}
        self._seen: dict[str, int] = {}
        self._waiting: list[tuple[int, int, Connection, bytes, Kind | None]] = []
        self._number = 0
        self.port: int = self._listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.asked: list[Asked] = []
        self.bodies: list[bytes] = []
        self.answered = 0
        """Turns that were answered as they were recorded."""
        self.dropped = 0
        """Connections that a client closed while its answer was kept back, or hung."""
        self.under_way = self.most_under_way = 0
        self.connections = 0
        self.late_ns: list[int] = []
        """How much later than it should each first byte went out, where it was kept back."""

    def stop(self) -> None:
        """Makes :meth:`run` return; from any thread."""
        self._wake.send(b"x")

    def close(self) -> None:
        """Closes all connections, and the listener."""
        for each in [*self._connections.values()]:
            each.socket.close()
        self._connections.clear()
        for one in (self._listener, self._wake, self._woken):
            one.close()
        self._poll.close()

    def run(self, until: int | None = None) -> None:
        """Serves; also until this descriptor is readable, where one is given."""
        if until is not None:
            self._poll.register(until, select.EPOLLIN)
        listener, ends = self._listener.fileno(), {self._woken.fileno(), until}
        while True:
            for fileno, _ in self._events():
                connection = self._connections.get(fileno)
                if connection is not None:
                    self._read(connection)
                elif fileno == listener:
                    self._accept()
                elif fileno in ends:
                    return
            if self._waiting:
                self._send_due()

    def _events(self) -> list[tuple[int, int]]:
        if not self._waiting:
            return self._poll.poll()
        left = max(0, self._waiting[0][0] - time.monotonic_ns())
        select.select((self._poll,), (), (), left / 1e9)  # epoll waits whole milliseconds only
        return self._poll.poll(0)

    def _accept(self) -> None:
        accepted, _ = self._listener.accept()
        accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        accepted.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER)
        self._connections[accepted.fileno()] = Connection(accepted)
        self._poll.register(accepted, select.EPOLLIN)
        self.connections += 1

    def _read(self, connection: Connection) -> None:
        whole_request = connection.receive()
        if whole_request is None:
            self._gone(connection)
        elif whole_request:
            self._answer(connection)

    # -- answers -------------------------------------------------------------------------------------------------------

    def _answer(self, connection: Connection) -> None:
        if not connection.line.startswith(b"POST"):
            self._tell(connection, self._told_of_itself(connection.line), None)
            return
        session, turn = connection.session, connection.turn()
        found = self._recorded.of_session(session, turn) if session else self._recorded.of_chat(connection.chat())
        fault = self._fault(found) if self._faults and found is not None else None
        self.asked.append(Asked(session, turn, fault, time.monotonic_ns()))
        if self._keep:
            self.bodies.append(connection.body())
        if found is None:
            words = f"nothing was recorded of turn {turn} of session {session!r}"
            self._tell(connection, refused(404, words), None)
            return
        self._number += 1
        connection.due = self._number
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        if fault is Kind.HANG:
            return
        response = self._response(found, self._cached(session, found), connection.wanted(self._model), fault)
        if self._first_ns:
            due = time.monotonic_ns() + self._first_ns
            heapq.heappush(self._waiting, (due, self._number, connection, response, fault))
        else:
            self._tell(connection, response, fault)

    def _cached(self, session: str, answer: Answer) -> int:
        """How many tokens a server had of the session's earlier prompts, which are the beginning of this one."""
        before = self._seen.get(session) if session else None
        self._seen[session] = answer.turn
        if before is None:
            return 0
        earlier = self._recorded.of_session(session, min(before, answer.turn))
        return 0 if earlier is None else min(earlier.prompt_tokens, answer.prompt_tokens - 1)

    def _fault(self, answer: Answer) -> Kind | None:
        for each in self._faults:
            if each.turn != answer.turn or each.id not in (None, answer.id):
                continue
            if each.times is None or self._met[each] < each.times:
                self._met[each] += 1
                return each.kind
        return None

    def _response(self, answer: Answer, cached: int, wanted: Wanted, fault: Kind | None) -> bytes:
        key = (answer.id, answer.turn, answer.prompt_tokens, cached, wanted, fault)
        made = self._responses.get(key)
        if made is None:
            made = self._responses[key] = self._made(answer, cached, wanted, fault)
        return made

    def _made(self, answer: Answer, cached: int, wanted: Wanted, fault: Kind | None) -> bytes:
        if fault is Kind.CLOSE:
            return b""
        if fault in STATUS:
            return refused(STATUS[fault], "a fault that was asked for")
        if wanted.stream:
            return streamed(events(answer, cached, wanted, self._style, fault), self._style, fault)
        if fault is Kind.SSE_ERROR:
            return refused(500, "a fault that was asked for")
        response = whole(answer, cached, wanted, self._style, fault)
        if fault is Kind.GARBLED:
            return response[:-1] + b"]"
        return response[: len(response) // 2] if fault in BROKEN_OFF else response

    def _send_due(self) -> None:
        now = time.monotonic_ns()
        while self._waiting and self._waiting[0][0] <= now:
            due, number, connection, response, fault = heapq.heappop(self._waiting)
            if connection.due == number:
                self.late_ns.append(time.monotonic_ns() - due)
                self._tell(connection, response, fault)

    def _tell(self, connection: Connection, response: bytes, fault: Kind | None) -> None:
        asked = connection.due > 0
        if asked and fault is not Kind.STALL:
            connection.due = 0
            self.under_way -= 1
        try:
            connection.socket.sendall(response)
        except ConnectionError:
            self._gone(connection)
            return
        if fault is Kind.RESET:
            connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_ON_CLOSE)
        if fault in CLOSING:
            self._gone(connection)
        elif asked and fault in (None, Kind.NO_DONE):
            self.answered += 1

    def _gone(self, connection: Connection) -> None:
        if connection.due:
            self.dropped += 1
            self.under_way -= 1
            connection.due = 0
        self._connections.pop(connection.socket.fileno(), None)
        connection.socket.close()

    def _told_of_itself(self, line: bytes) -> bytes:
        path = line.split(b" ")[1]
        if path == b"/v1/models":
            told: object = {"object": "list", "data": [{"id": self._model, "object": "model", "owned_by": "recorded"}]}
        elif path in (b"/health", b"/version"):
            told = {"version": "recorded"}
        else:
            return refused(404, "no such place")
        body = orjson.dumps(told)
        return b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body)


@contextmanager
def serving(recorded: Recorded, **options: object) -> Iterator[RecordedServer]:
    """A server on a thread of this process; ``options`` are :class:`RecordedServer`'s. Raises what broke it."""
    server = RecordedServer(recorded, **options)  # type: ignore[arg-type]  # the names are RecordedServer's own
    broke: list[BaseException] = []

    def run() -> None:
        try:
            server.run()
        except BaseException as error:  # noqa: BLE001 - told to whoever holds the server
            broke.append(error)

    thread = threading.Thread(target=run, name="recorded server")
    thread.start()
    try:
        yield server
    finally:
        server.stop()
        thread.join()
        server.close()
    if broke:
        raise broke[0]
