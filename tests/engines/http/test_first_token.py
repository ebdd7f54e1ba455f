"""When the first token of a chat is told: when it comes, however the server frames its events."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import pytest

from harness.engines.bodies import BodyStore
from tests.engines.http.play import (
    DONE,
    END,
    HEAD,
    MODEL,
    PATIENCE_S,
    Peer,
    chunk,
    core_of,
    drive,
    frame,
    idle,
    requests,
    server,
    workload,
)

CALL = {"index": 0, "id": "a", "type": "function", "function": {"name": "look", "arguments": ""}}
FIRSTS = {
    "content": {"content": "a"},
    "reasoning_content": {"reasoning_content": "a"},
    "reasoning": {"reasoning": "a"},
    "tool_calls": {"tool_calls": [CALL]},
}
CLOSING = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"


def said(finish: str | None = None, **delta: Any) -> dict[str, Any]:
    return {"model": MODEL, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


USAGE = {"choices": [], "usage": {"completion_tokens": 3, "prompt_tokens": 4}}


@pytest.fixture
def store(tmp_path: Path) -> BodyStore:
    return BodyStore.write(tmp_path / "chats", [{"messages": [{"role": "user", "content": "x"}]}] * 2, [0, 0])


@pytest.mark.parametrize("chunked", [True, False])
@pytest.mark.parametrize("line", [b"\n", b"\r\n", b"\r"], ids=["LF", "CRLF", "CR"])
@pytest.mark.parametrize("first", FIRSTS)
def test_the_first_delta_is_told_when_it_comes(store: BodyStore, line: bytes, first: str, chunked: bool) -> None:
    """The server goes on only once it was told; what says nothing (a comment, a role) is not it."""
    go_on, told_ns = threading.Event(), [0]

    def framed(content: dict[str, Any] | bytes) -> bytes:
        text = frame(content).replace(b"\n", line)
        return chunk(text) if chunked else text

    def play(peer: Peer) -> None:
        comment = b": keep-alive" + line + line
        for _ in range(2 if chunked else 1):
            go_on.clear()
            peer.request()
            peer.send(HEAD if chunked else CLOSING, chunk(comment) if chunked else comment)
            peer.send(framed(said(role="assistant", content="")), pause_s=0.02)
            told_ns[0] = time.monotonic_ns()
            peer.send(framed(said(**FIRSTS[first])))
            if line == b"\r":  # of which the half of a CRLF cannot be told apart until more comes
                peer.send(chunk(b":" + line) if chunked else b":" + line)
            assert go_on.wait(PATIENCE_S)
            peer.send(framed(said(content="b")), framed(said("stop")), framed(USAGE), framed(DONE[6:-2]))
            peer.send(END if chunked else b"")
            if not chunked:
                return

    with server(play) as running, core_of(running.url, connections=1) as core:
        for number in (100, 101):
            core.submit(requests(1, workload(bodies=store.path), first=number))
            told = drive(core, lambda told: bool(told.tokens))
            idle(core, 0.02)
            seen_ns = time.monotonic_ns()
            go_on.set()
            drive(core, 1, told)
            assert not told.failures
            assert told_ns[0] <= told.first_ns[number] <= seen_ns < told.done_ns[number]
            assert told.tokens == {number: [-1]}
