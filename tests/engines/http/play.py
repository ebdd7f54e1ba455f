"""A server that plays exact bytes, and what drives a core against it."""

from __future__ import annotations

import json
import select
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from harness.engines.base import (
    Answers,
    EngineInfo,
    Event,
    Failure,
    PromptTable,
    Replies,
    Requests,
    Sampling,
    TokenEvents,
    Tokens,
    Workload,
)
from harness.engines.http.core import HttpCore
from harness.engines.http.settings import HttpSettings

MODEL = "gpt-oss-120b"
PATIENCE_S = 20.0


class Peer:
    """A client's connection, from the server's side."""

    def __init__(self, connection: socket.socket, number: int) -> None:
        connection.settimeout(PATIENCE_S)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket = connection
        self.number = number
        self._data = b""

    def request(self) -> tuple[bytes, dict[str, Any]]:
        """Head and parsed body of the next request; EOFError where the client is gone."""
        while b"\r\n\r\n" not in self._data:
            self._more()
        head, _, self._data = self._data.partition(b"\r\n\r\n")
        (length,) = (int(line[15:]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:"))
        while len(self._data) < length:
            self._more()
        body, self._data = self._data[:length], self._data[length:]
        return head, json.loads(body)

    def _more(self) -> None:
        try:
            piece = self.socket.recv(1 << 20)
        except (ConnectionError, TimeoutError) as error:
            raise EOFError from error
        if not piece:
            raise EOFError
        self._data += piece

    def send(self, *pieces: bytes, pause_s: float = 0.0) -> None:
        """Sends pieces; with a pause, each is surely a read of its own."""
        for piece in pieces:
            self.socket.sendall(piece)
            if pause_s:
                time.sleep(pause_s)

    def gone(self) -> bool:
        """Waits until the client closes; whether it did."""
        try:
            return self.socket.recv(1) == b""
        except ConnectionError:
            return True

    def reset(self) -> None:
        """Closes with a reset."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()


class Server:
    """Listens on a free port; each connection is handed to ``play`` on a thread of its own and closed after it."""

    def __init__(self, play: Callable[[Peer], None], family: int = socket.AF_INET) -> None:
        self._play = play
        self.listener = socket.socket(family)
        self.listener.bind(("::1" if family == socket.AF_INET6 else "127.0.0.1", 0))
        self.listener.listen(512)
        self.port = self.listener.getsockname()[1]
        self.url = f"http://{'[::1]' if family == socket.AF_INET6 else '127.0.0.1'}:{self.port}"
        self.peers: list[Peer] = []
        self.errors: list[BaseException] = []
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            peer = Peer(connection, len(self.peers))
            self.peers.append(peer)
            thread = threading.Thread(target=self._serve, args=(peer,))
            self._threads.append(thread)
            thread.start()

    def _serve(self, peer: Peer) -> None:
        try:
            self._play(peer)
        except (EOFError, ConnectionError, OSError):
            pass  # the client went away
        except BaseException as error:  # noqa: BLE001  told at the end of the test
            self.errors.append(error)
        finally:
            peer.socket.close()

    def refuse(self) -> None:
        """Takes no more connections."""
        with suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()

    def stop(self) -> None:
        """Ends all threads; raises what one of them raised."""
        self.refuse()
        for peer in self.peers:
            with suppress(OSError):
                peer.socket.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(PATIENCE_S)
            assert not thread.is_alive()
        if self.errors:
            raise self.errors[0]


@contextmanager
def server(play: Callable[[Peer], None], family: int = socket.AF_INET) -> Iterator[Server]:
    running = Server(play, family)
    try:
        yield running
    finally:
        running.stop()


def info(**changes: Any) -> EngineInfo:
    return EngineInfo("http", 201_088, 1 << 20, 8, None, {"server": "1.2"}, {}, **changes)


def settings(*urls: str, **changes: Any) -> HttpSettings:
    content: dict[str, Any] = {
        "server": "trtllm-serve",
        "model": MODEL,
        "endpoints": [{"name": f"r{i}", "url": url} for i, url in enumerate(urls)],
        "connections": 8,
        "info": info(),
    }
    return HttpSettings.parse(content | changes)


@contextmanager
def core_of(*urls: str, **changes: Any) -> Iterator[HttpCore]:
    core = HttpCore(settings(*urls, **changes))
    try:
        yield core
    finally:
        core.close()


def workload(
    events: TokenEvents = TokenEvents.FIRST,
    cap: int = 10_000,
    stop: tuple[int, ...] = (200_002,),
    bodies: Path | str = "",
    replica: int = 0,
    temperature: float = 1.0,
) -> Workload:
    return Workload("perf", Sampling(temperature, 1.0, 0, cap, stop, 77), events, str(bodies), replica)


def requests(
    n: int = 1, of: Workload | None = None, first: int = 100, rows: Sequence[int] | None = None, prompt: int = 3
) -> Requests:
    table = PromptTable.from_lists([list(range(1, prompt + 1))])
    wanted = range(n) if rows is None else rows
    return Requests(of or workload(), range(first, first + len(wanted)), wanted, table, [0] * len(wanted))


class Told:
    """All that a core told, by request."""

    def __init__(self) -> None:
        self.answers: dict[int, list[int]] = {}
        self.replies: dict[int, dict[str, Any]] = {}
        self.finish: dict[int, int] = {}
        self.usage: dict[int, int] = {}
        self.prompt_tokens: dict[int, int] = {}
        self.cached_tokens: dict[int, int] = {}
        self.first_ns: dict[int, int] = {}
        self.done_ns: dict[int, int] = {}
        self.tokens: dict[int, list[int]] = {}
        self.failures: dict[int, Failure] = {}

    def take(self, event: Event) -> None:
        if isinstance(event, Failure):
            assert event.number not in self.failures
            self.failures[event.number] = event
        elif isinstance(event, Tokens):
            for number, position, token in zip(event.numbers, event.positions, event.tokens.tolist(), strict=True):
                assert number not in self.answers
                told = self.tokens.setdefault(number, [])
                assert position == len(told)
                told.append(token)
        else:
            self._take_whole(event)

    def _take_whole(self, event: Answers | Replies) -> None:
        start = 0
        for i, number in enumerate(event.numbers):
            assert number not in self.finish
            if isinstance(event, Answers):
                self.answers[number] = event.tokens[start : event.ends[i]].tolist()
            else:
                self.replies[number] = json.loads(event.data[start : event.ends[i]])
                self.usage[number] = event.tokens[i]
                self.prompt_tokens[number], self.cached_tokens[number] = event.prompt_tokens[i], event.cached_tokens[i]
            self.finish[number] = event.finish[i]
            self.first_ns[number], self.done_ns[number] = event.first_ns[i], event.done_ns[i]
            assert event.first_ns[i] <= event.done_ns[i]
            start = event.ends[i]

    @property
    def over(self) -> int:
        return len(self.finish) + len(self.failures)


def drive(core: HttpCore, enough: Callable[[Told], bool] | int, told: Told | None = None) -> Told:
    """Steps a core, as a host does, until enough was told."""
    told = Told() if told is None else told
    done = (lambda found: found.over >= enough) if isinstance(enough, int) else enough
    deadline = time.monotonic() + PATIENCE_S
    while not done(told):
        assert time.monotonic() < deadline, (told.__dict__, core.counters())
        wait_s = core.wait_s()
        select.select([core.descriptor()], [], [], 0.02 if wait_s is None else min(wait_s, 0.02))
        for event in core.step():
            told.take(event)
    return told


def idle(core: HttpCore, seconds: float) -> Told:
    """Steps a core for a while."""
    end = time.monotonic() + seconds
    return drive(core, lambda _: time.monotonic() >= end)


# What servers say


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked\r\n\r\n"
END = b"0\r\n\r\n"
DONE = b"data: [DONE]\n\n"


def frame(content: Mapping[str, Any] | bytes) -> bytes:
    data = content if isinstance(content, bytes) else json.dumps(content, separators=(",", ":")).encode()
    return b"data: " + data + b"\n\n"


def event(ids: Sequence[int] | None, finish: str | None = None, model: str = MODEL) -> dict[str, Any]:
    """A chunk of a completion, as trtllm-serve has it."""
    choice = {"index": 0, "text": "", "token_ids": ids, "logprobs": None, "finish_reason": finish, "stop_reason": None}
    return {
        "id": "cmpl-0123456789abcdef",
        "object": "text_completion",
        "created": 1_780_000_000,
        "model": model,
        "choices": [choice],
        "usage": None,
    }


def usage(tokens: int, model: str = MODEL) -> dict[str, Any]:
    counts = {"prompt_tokens": 3, "total_tokens": 3 + tokens, "completion_tokens": tokens}
    return event(None, model=model) | {"choices": [], "usage": counts}


def stream(pieces: Sequence[Sequence[int]], finish: str = "stop", told: int | None = None) -> list[bytes]:
    """The frames of a whole answer."""
    frames = [frame(event(ids, finish if ids is pieces[-1] else None)) for ids in pieces]
    n = sum(map(len, pieces)) if told is None else told
    return [*frames, frame(usage(n)), DONE]


def whole(ids: Sequence[int], finish: str = "stop", told: int | None = None, model: str = MODEL) -> bytes:
    """A whole response that is not streamed."""
    content = event(ids, finish, model) | {"usage": {"completion_tokens": len(ids) if told is None else told}}
    return response(json.dumps(content).encode())


def response(body: bytes, status: str = "200 OK", headers: str = "") -> bytes:
    head = f"HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n{headers}\r\n"
    return head.encode() + body


def streams(pieces: Sequence[Sequence[int]], finish: str = "stop") -> Callable[[Peer], None]:
    """Answers every request of a connection with the same stream."""

    def play(peer: Peer) -> None:
        while True:
            peer.request()
            peer.send(HEAD, *map(chunk, stream(pieces, finish)), END)

    return play
