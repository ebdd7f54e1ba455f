"""Bodies of hundreds of kilobytes: sent as the socket takes them, by a client that does other things meanwhile."""

from __future__ import annotations

import hashlib
import json
import random
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.engines.base import TokenEvents
from harness.engines.bodies import BodyStore
from harness.engines.http import connection as connections
from harness.engines.http.connection import _unsent
from harness.engines.http.course import RELEASED_AFTER
from harness.engines.http.template import Pieces
from tests.engines.http.play import MODEL, Peer, core_of, drive, idle, requests, response, server, workload

SIZES = (200_000, 1_000_000, 3, 400_000)
FULL = 8 << 20
"""Bytes; more than a socket takes of a peer that reads nothing."""


def body(size: int) -> dict[str, Any]:
    text = random.Random(size).randbytes(size // 2).hex()
    url = f"data:image/JPEG;base64,{text}"
    return {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}]}]}


def digest(messages: object) -> str:
    return hashlib.sha256(json.dumps(messages).encode()).hexdigest()


def answer(peer: Peer, content: str) -> None:
    choice = {"index": 0, "message": {"role": "assistant", "content": content}, "finish_reason": "stop"}
    said = {"model": MODEL, "choices": [choice], "usage": {"completion_tokens": 1}}
    peer.send(response(json.dumps(said).encode()))


def echo(peer: Peer) -> None:
    """Says what came, as a hash."""
    while True:
        _, asked = peer.request()
        answer(peer, digest(asked["messages"]))


@pytest.fixture
def store(tmp_path: Path) -> BodyStore:
    return BodyStore.write(tmp_path / "chats", [body(size) for size in SIZES])


def asked(store: BodyStore, rows: list[int]) -> Any:
    return requests(0, workload(TokenEvents.NONE, bodies=store.path), rows=rows)


def slowly(play: Callable[[Peer], None]) -> Callable[[Peer], None]:
    """Takes a little at a time."""

    def played(peer: Peer) -> None:
        peer.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
        play(peer)

    return played


@pytest.mark.parametrize("play", [echo, slowly(echo)], ids=["at once", "slowly"])
def test_what_arrives_is_what_lies_in_the_store(store: BodyStore, play: Callable[[Peer], None]) -> None:
    with server(play) as running, core_of(running.url, connections=2) as core:
        core.submit(asked(store, [0, 1, 2, 3, 1, 0]))
        told = drive(core, 6)
        wanted = [digest(body(SIZES[row])["messages"]) for row in (0, 1, 2, 3, 1, 0)]
        assert [told.replies[100 + i]["content"] for i in range(6)] == wanted
        assert core.counters()["bytes_sent"] > sum(SIZES)
        assert core.counters()["retries"] == 0


def test_a_body_is_sent_from_where_it_lies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What waits to be sent is a view of the mapped file, however much of it was sent."""
    store = BodyStore.write(tmp_path / "chats", [body(FULL)])
    kept: list[Pieces] = []

    def watched(pieces: Pieces, sent: int) -> Pieces | None:
        kept.append(pieces)
        return _unsent(pieces, sent)

    monkeypatch.setattr(connections, "_unsent", watched)
    with server(slowly(echo)) as running, core_of(running.url) as core:
        core.submit(asked(store, [0]))
        drive(core, 1)
    assert len(kept) > 1
    whole = store[0]
    for pieces in kept:
        last = pieces[-1]
        assert isinstance(last, memoryview) and bytes(last) == bytes(whole[len(whole) - len(last) :])
        assert last.readonly and type(last.obj).__name__ == "mmap"


def test_pieces_of_which_some_was_sent() -> None:
    pieces = (b"head", b"", memoryview(b"body"))
    for sent in range(8):
        left = _unsent(pieces, sent)
        assert left is not None and b"".join(left) == b"headbody"[sent:]
    assert _unsent(pieces, 8) is None


def test_a_server_that_takes_nothing_holds_up_no_other_request(tmp_path: Path) -> None:
    store = BodyStore.write(tmp_path / "chats", [body(FULL), body(100)])
    reads = threading.Event()

    def play(peer: Peer) -> None:
        if peer.number == 0:
            assert reads.wait(20)
        echo(peer)

    with server(play) as running, core_of(running.url, connections=2) as core:
        core.submit(asked(store, [0, 1]))
        told = drive(core, lambda told: 101 in told.replies)
        assert 100 not in told.replies
        assert core.counters()["bytes_sent"] < FULL
        assert core.wait_s() != 0.0  # what the socket does not take is waited for, not tried again and again
        reads.set()
        drive(core, 2, told)
        assert told.replies[100]["content"] == digest(body(FULL)["messages"])


def test_a_server_that_never_takes_the_whole_body_is_late(tmp_path: Path) -> None:
    store = BodyStore.write(tmp_path / "chats", [body(FULL)])
    ended = threading.Event()
    with (
        server(lambda peer: ended.wait(20) and None) as running,
        core_of(running.url, request_timeout_s=0.3) as core,
    ):
        core.submit(asked(store, [0]))
        told = drive(core, 1)
        assert told.failures[100].kind == "timeout" and "no answer after 0.3 s" in told.failures[100].message
        assert not idle(core, 0.1).over
        ended.set()


def test_a_refusal_that_comes_before_the_body_is_taken(tmp_path: Path) -> None:
    store = BodyStore.write(tmp_path / "chats", [body(FULL), body(100)])

    def play(peer: Peer) -> None:
        peer.socket.recv(1000)
        if peer.number:
            peer.send(response(b'{"object":"error","message":"too much"}', "413 Payload Too Large"))
            peer.gone()
        else:
            peer.send(response(b"{}", "503 Busy"))
            peer.gone()

    with server(play) as running, core_of(running.url, connections=1) as core:
        core.submit(asked(store, [0, 1]))
        told = drive(core, 2)
        assert told.failures[100].kind == "http_503"
        assert told.failures[101].kind == "http_413"
        assert core.counters()["connections_opened"] == 2  # what was not sent whole leaves no connection behind


def test_a_connection_that_is_reset_in_the_middle_of_a_body(tmp_path: Path) -> None:
    store = BodyStore.write(tmp_path / "chats", [body(FULL)])

    def play(peer: Peer) -> None:
        peer.socket.recv(1000)
        peer.reset()

    with server(play) as running, core_of(running.url, connections=1) as core:
        core.submit(asked(store, [0]))
        told = drive(core, 1)
        assert told.failures[100].kind == "reset" and not told.replies
        assert core.counters()["retries"] == 0


def mapped_kb(store: BodyStore) -> int:
    """How much of a store this process has mapped in."""
    lines = iter(Path("/proc/self/smaps").read_text().splitlines())
    return sum(
        next(int(each.split()[1]) for each in lines if each.startswith("Rss:"))
        for line in lines
        if line.endswith(str(store.path))
    )


def test_chats_that_were_sent_are_not_kept_in_memory(tmp_path: Path) -> None:
    """By the client, whose map is its own; they are sent again all the same."""
    count, size = RELEASED_AFTER, 50_000
    store = BodyStore.write(tmp_path / "chats", [body(size) for _ in range(count)])
    with server(echo) as running, core_of(running.url, connections=4) as core:
        for _ in range(2):
            core.submit(asked(store, list(range(count))))
            told = drive(core, count)
            assert {each["content"] for each in told.replies.values()} == {digest(body(size)["messages"])}
            core.cancel()
        assert core.counters()["bytes_sent"] > 2 * count * size
        assert mapped_kb(store) < count * size / 1024 / 8
