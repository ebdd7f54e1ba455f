"""A server that takes chats of any size and answers each with the same reply: ``python -m sse.chats``.

It reads a body into one buffer again and again and keeps nothing of it, so that what is measured is the client. One
thread. It prints ``{"port": ...}`` when it listens and, when its standard input ends, CPU seconds, answers and bytes.
"""

from __future__ import annotations

import json
import select
import socket
import sys
import time
from typing import Final

from sse import shape
from sse.server import LENGTH

SCRATCH: Final = 1 << 20
REPLY: Final = json.dumps(
    {
        "id": "chatcmpl-00112233445566778899aabbccddeeff",
        "object": "chat.completion",
        "created": 1_780_315_200,
        "model": shape.MODEL,
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "x" * 160}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 1_000, "total_tokens": 1_040, "completion_tokens": 40},
    }
).encode()
RESPONSE: Final = shape.WHOLE_HEADERS.format(len(REPLY)).encode() + REPLY


class Connection:
    """A client's connection: the head that came so far, or how much of a body is still to come."""

    __slots__ = ("head", "left", "socket")

    def __init__(self, accepted: socket.socket) -> None:
        self.socket = accepted
        self.head = b""
        self.left = 0


class Server:
    """Answers whoever connects until standard input ends."""

    def __init__(self, listener: socket.socket) -> None:
        self._listener = listener
        self._scratch = memoryview(bytearray(SCRATCH))
        self._connections: dict[int, Connection] = {}
        self._poll = select.epoll()
        self._poll.register(listener, select.EPOLLIN)
        self._poll.register(sys.stdin, select.EPOLLIN)
        self.answered = 0
        self.received = 0

    def run(self) -> None:
        """Serves."""
        while True:
            for fileno, _ in self._poll.poll():
                if fileno == sys.stdin.fileno():
                    return
                if fileno == self._listener.fileno():
                    self._accept()
                else:
                    self._serve(self._connections[fileno])

    def _accept(self) -> None:
        accepted, _ = self._listener.accept()
        accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._connections[accepted.fileno()] = Connection(accepted)
        self._poll.register(accepted, select.EPOLLIN)

    def _serve(self, connection: Connection) -> None:
        try:
            count = connection.socket.recv_into(self._scratch)
        except ConnectionError:
            count = 0
        if not count:
            del self._connections[connection.socket.fileno()]
            connection.socket.close()
            return
        self.received += count
        if not connection.left:
            count = self._begin(connection, count)
            if count < 0:
                return
        connection.left -= count
        if not connection.left:
            connection.socket.sendall(RESPONSE)
            self.answered += 1

    def _begin(self, connection: Connection, count: int) -> int:
        """Reads a head; how much of its body is there already, -1 where the head is not whole."""
        connection.head += bytes(self._scratch[:count])
        head, end, rest = connection.head.partition(b"\r\n\r\n")
        if not end:
            return -1
        length = LENGTH.search(head)
        connection.left = int(length[1]) if length else 0
        connection.head = b""
        return len(rest)


def main() -> int:
    """Serves until standard input ends."""
    with socket.create_server(("127.0.0.1", 0), backlog=4096) as listener:
        server = Server(listener)
        print(json.dumps({"port": listener.getsockname()[1]}), flush=True)
        server.run()
    print(json.dumps({"cpu_s": time.process_time(), "answered": server.answered, "received": server.received}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
