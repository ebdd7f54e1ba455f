"""The least that a Python client can do: sockets, one epoll, and a look at how a piece ends.

``python -m sse.floor LOAD`` keeps the load's streams open and prints what it took. Requests are encoded before; of an
answer nothing is read but that it has ended.
"""

from __future__ import annotations

import select
import socket
import sys
import time
from contextlib import ExitStack

from sse import shape
from sse.load import Load, Took

BUFFER = bytearray(1 << 16)
VIEW = memoryview(BUFFER)


def main(load: Load) -> None:
    """Runs a load."""
    with ExitStack() as stack:
        poll = stack.enter_context(select.epoll())
        sockets = {}
        for _ in range(load.streams):
            connection = stack.enter_context(socket.create_connection(("127.0.0.1", load.port)))
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            poll.register(connection, select.EPOLLIN)
            sockets[connection.fileno()] = connection
        ask(poll, sockets, request(load, 1), load.streams)
        started, cpu = time.monotonic(), time.process_time()
        ask(poll, sockets, request(load, load.tokens), load.answers)
        took = Took(load.answers, time.process_time() - cpu, 0.0, time.monotonic() - started)
    print(took.to_json())


def request(load: Load, tokens: int) -> bytes:
    """A request as any client must send it."""
    ids = ",".join(map(str, shape.prompt_ids(0, load.prompt)))
    body = (
        f'{{"model":"{shape.MODEL}","prompt":[{ids}],"max_tokens":{tokens},"temperature":1.0,"top_p":1.0,"top_k":0,'
        f'"seed":0,"stream":true,"stream_options":{{"include_usage":true}},"detokenize":false}}'
    )
    head = f"POST /v1/completions HTTP/1.1\r\nhost: 127.0.0.1:{load.port}\r\ncontent-type: application/json\r\n"
    return f"{head}content-length: {len(body)}\r\n\r\n{body}".encode()


def ask(poll: select.epoll, sockets: dict[int, socket.socket], data: bytes, answers: int) -> None:
    """Asks for so many answers, on every connection for the next when one has ended."""
    ended, size = shape.ENDED, len(shape.ENDED)
    tails = dict.fromkeys(sockets, b"")
    for connection in list(sockets.values())[:answers]:
        connection.sendall(data)
    asked, answered = min(answers, len(sockets)), 0
    while answered < answers:
        for fileno, _ in poll.poll():
            n = sockets[fileno].recv_into(BUFFER)
            if n == 0:
                raise ConnectionError("the server closed a connection")
            tail = bytes(VIEW[n - size : n]) if n >= size else (tails[fileno] + VIEW[:n])[-size:]
            if tail != ended:
                tails[fileno] = tail
                continue
            tails[fileno] = b""
            answered += 1
            if asked < answers:
                asked += 1
                sockets[fileno].sendall(data)


if __name__ == "__main__":
    main(Load.parse(sys.argv[1]))
