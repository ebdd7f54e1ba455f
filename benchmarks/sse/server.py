"""A server of answers at a fixed rate: ``python -m sse.server --shape 65x20 --interval-ms 20``.

It reads of a request what it must (its length, ``stream``, ``detokenize``, ``max_tokens``) and answers with bytes that
were made before, in trtllm-serve's shape. One thread; a wheel of timers whose slots are a fraction of a millisecond
wide serves all streams that are due with one turn. It closes no connection.

It prints ``{"port": ...}`` when it listens. When its standard input ends, it prints what it measured of itself and
ends: CPU seconds, answers, the most streams that were open at once, how late it was, and how long it took from each
request to the first byte and to the last.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import re
import resource
import select
import socket
import sys
import time
from collections.abc import Sequence
from typing import Final

from sse import shape

SLOT_NS: Final = 250_000
SLOTS_BEHIND: Final = 40_000
"""How far the wheel may lag behind the clock, on a machine that is busy with other things, before it turns over."""
READ_BYTES: Final = 1 << 15
SEND_BUFFER: Final = 1 << 20
LENGTH: Final = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)
MAX_TOKENS: Final = re.compile(rb'"max_tokens" *: *(\d+)')
STREAM: Final = re.compile(rb'"stream" *: *true')
IDS: Final = re.compile(rb'"detokenize" *: *false')
MODELS: Final = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\ncontent-type: application/json\r\n\r\n%b"


class Connection:
    """One client's connection, and the answer it is being given."""

    __slots__ = ("at_ns", "fileno", "next", "pieces", "received", "socket", "unsent")

    def __init__(self, connection: socket.socket) -> None:
        self.socket = connection
        self.fileno = connection.fileno()
        self.received = b""
        self.pieces: list[bytes] = []
        self.next = 0
        self.unsent = b""
        self.at_ns = 0


class Server:
    """Answers whoever connects until standard input ends."""

    def __init__(self, listener: socket.socket, of: shape.Shape, interval_ms: float, first_ms: float) -> None:
        listener.setblocking(False)
        self._listener = listener
        self._shape = of
        self._interval = round(interval_ms * 1e6 / SLOT_NS)
        self._first_ns = round(first_ms * 1e6)
        self._answers: dict[tuple[int, bool, bool], list[bytes]] = {}
        self._connections: dict[int, Connection] = {}
        self._poll = select.epoll()
        self._poll.register(listener, select.EPOLLIN)
        self._poll.register(sys.stdin, select.EPOLLIN)
        longest = max(self._interval, self._first_ns // SLOT_NS)
        self._wheel: list[list[Connection]] = [[] for _ in range(longest + SLOTS_BEHIND)]
        self._start = time.monotonic_ns()
        self._slot = 0
        self._waiting = 0
        self._busy_s = 0.0
        self.open = self.most_open = 0
        self.latest_ns = 0
        self.waited_ns: list[int] = []
        self.took_ns: list[int] = []

    def run(self) -> None:
        """Serves."""
        while self._turn():
            pass

    def _turn(self) -> bool:
        """Waits for a request or the next slot, and does what is due; False at the end."""
        if self._waiting:
            left = self._start + (self._slot + 1) * SLOT_NS - time.monotonic_ns()
            select.select((self._poll,), (), (), max(0, left) / 1e9)  # epoll waits whole milliseconds only
            events = self._poll.poll(0)
        else:
            events = self._poll.poll()
            self._slot = (time.monotonic_ns() - self._start) // SLOT_NS
        for fileno, flags in events:
            if fileno == self._listener.fileno():
                self._accept()
            elif fileno == sys.stdin.fileno():
                return False
            elif fileno in self._connections:
                self._serve(self._connections[fileno], flags)
        if self._waiting:
            self._tick()
        return True

    def _accept(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while True:
                accepted, _ = self._listener.accept()
                accepted.setblocking(False)
                accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                accepted.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER)
                connection = Connection(accepted)
                self._connections[connection.fileno] = connection
                self._poll.register(accepted, select.EPOLLIN)

    def _serve(self, connection: Connection, flags: int) -> None:
        if flags & select.EPOLLOUT:
            self._send(connection, b"")
        if flags & ~select.EPOLLOUT:
            try:
                received = connection.socket.recv(READ_BYTES)
            except BlockingIOError:
                return
            except ConnectionError:
                received = b""
            if not received:
                self._drop(connection)
                return
            connection.received += received
            self._read(connection)

    def _read(self, connection: Connection) -> None:
        """Begins to answer once a request is there as a whole."""
        head, end, rest = connection.received.partition(b"\r\n\r\n")
        if not end:
            return
        length = LENGTH.search(head)
        size = int(length[1]) if length else 0
        if len(rest) < size:
            return
        if len(rest) > size or connection.pieces:
            raise RuntimeError("a client sent a request before it had the answer to the one before")
        connection.received = b""
        if not head.startswith(b"POST"):
            body = json.dumps({"object": "list", "data": [{"id": shape.MODEL, "object": "model"}]}).encode()
            self._send(connection, MODELS % (len(body), body))
            return
        connection.at_ns = time.monotonic_ns()
        connection.pieces = self._answer(rest)
        connection.next = 0
        self.open += 1
        self.most_open = max(self.most_open, self.open)
        if self._first_ns:
            due = connection.at_ns + self._first_ns - self._start
            self._later(connection, -(-due // SLOT_NS) - self._slot)
        else:
            self._advance(connection)

    def _answer(self, body: bytes) -> list[bytes]:
        """The pieces that answer a request; all of them in one where nothing is to be waited for between them."""
        cap = MAX_TOKENS.search(body)
        tokens = min(int(cap[1]), self._shape.tokens) if cap else self._shape.tokens
        key = tokens, STREAM.search(body) is not None, IDS.search(body) is None
        if key not in self._answers:
            _, stream, as_text = key
            if stream:
                pieces = shape.streamed(tokens, self._shape.ids, as_text=as_text)
                self._answers[key] = pieces if self._interval else [b"".join(pieces)]
            else:
                self._answers[key] = [shape.whole(tokens, as_text=as_text)]
        return self._answers[key]

    def _later(self, connection: Connection, slots: int) -> None:
        self._wheel[(self._slot + max(1, slots)) % len(self._wheel)].append(connection)
        self._waiting += 1

    def _tick(self) -> None:
        """Serves the slots whose time has come."""
        now = time.monotonic_ns()
        until = (now - self._start) // SLOT_NS
        while self._slot < until:
            self._slot += 1
            self.latest_ns = max(self.latest_ns, now - self._start - self._slot * SLOT_NS)
            place = self._slot % len(self._wheel)
            due, self._wheel[place] = self._wheel[place], []
            self._waiting -= len(due)
            for connection in due:
                if connection.pieces:
                    self._advance(connection)

    def _advance(self, connection: Connection) -> None:
        """Sends the next piece of an answer."""
        if connection.next == 0:
            self.waited_ns.append(time.monotonic_ns() - connection.at_ns)
        piece = connection.pieces[connection.next]
        connection.next += 1
        if connection.next < len(connection.pieces):
            self._later(connection, self._interval)
        else:
            connection.pieces = []
            self.took_ns.append(time.monotonic_ns() - connection.at_ns)
            self.open -= 1
        self._send(connection, piece)

    def _send(self, connection: Connection, data: bytes) -> None:
        """Sends now what fits; the rest when there is room."""
        waited = bool(connection.unsent)
        data = connection.unsent + data if waited else data
        try:
            sent = connection.socket.send(data)
        except BlockingIOError:
            sent = 0
        except ConnectionError:
            self._drop(connection)
            return
        if sent < len(data) or waited:
            connection.unsent = data[sent:]
            room = select.EPOLLOUT if connection.unsent else 0
            self._poll.modify(connection.fileno, select.EPOLLIN | room)

    def _drop(self, connection: Connection) -> None:
        if self._connections.pop(connection.fileno, None) is None:
            return
        self._poll.unregister(connection.fileno)
        connection.socket.close()
        if connection.pieces:
            connection.pieces = []
            self.open -= 1


def main(argv: Sequence[str] | None = None) -> int:
    """Serves until standard input ends."""
    parser = argparse.ArgumentParser(prog="python -m sse.server", description=__doc__.split("\n", 1)[0])
    parser.add_argument("--shape", type=shape.Shape.parse, required=True, help="chunks of an answer x ids of a chunk")
    parser.add_argument("--interval-ms", type=float, default=0.0, help="between two chunks; 0: all at once")
    parser.add_argument("--first-ms", type=float, default=0.0, help="from the request to the first chunk")
    options = parser.parse_args(argv)
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with socket.create_server(("127.0.0.1", 0), backlog=4096) as listener:
        server = Server(listener, options.shape, options.interval_ms, options.first_ms)
        print(json.dumps({"port": listener.getsockname()[1]}), flush=True)
        server.run()
    told = {
        "cpu_s": time.process_time(),
        "answered": len(server.took_ns),
        "most_open": server.most_open,
        "latest_ms": server.latest_ns / 1e6,
        "waited_ns": server.waited_ns,
        "took_ns": server.took_ns,
    }
    print(json.dumps(told), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
