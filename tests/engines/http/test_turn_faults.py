"""Servers that fail at a turn of a trajectory: that request fails, with kind and words, and no other one suffers."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest

from harness.engines.base import PromptTable, Requests
from harness.engines.bodies import BodyStore
from harness.engines.http.core import HttpCore
from tests.engines.http.play import (
    DONE,
    END,
    HEAD,
    MODEL,
    Peer,
    Told,
    chunk,
    core_of,
    drive,
    frame,
    response,
    server,
    workload,
)

TURNS = 4
TIMEOUT_S = 0.5


def said(finish: str | None = None, **delta: Any) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return chunk(frame({"object": "chat.completion.chunk", "model": MODEL, "choices": [choice]}))


USAGE = chunk(frame({"model": MODEL, "choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 2}}))
CALL = {"index": 0, "id": "a", "type": "function", "function": {"name": "look", "arguments": "{}"}}
REPLY = (said(content="so "), said(tool_calls=[CALL]), said("tool_calls"), USAGE, chunk(DONE), END)
ERROR = chunk(frame({"error": {"message": "out of blocks"}}))


class Fault(NamedTuple):
    """What a server does in place of a reply, and what a client is to say of it."""

    play: Callable[[Peer], object]
    kind: str
    words: str
    close: bool = True
    """Whether the server closes the connection afterwards."""


def sends(*pieces: bytes, then: Callable[[Peer], object] = lambda peer: None) -> Callable[[Peer], object]:
    def play(peer: Peer) -> None:
        peer.send(*pieces)
        then(peer)

    return play


def resets(peer: Peer) -> None:
    time.sleep(0.02)  # what was sent is there before
    peer.reset()


FAULTS = {
    "429": Fault(sends(response(b'{"error":"slow down"}', "429 Busy")), "http_429", "status 429: .*slow down", False),
    "500": Fault(sends(response(b"oh no", "500 Oh")), "http_500", "status 500: oh no", False),
    "503, closed": Fault(sends(response(b"later", "503 Oh", "connection: close\r\n")), "http_503", "later"),
    "closes at once": Fault(sends(), "reset", "closed the connection without an answer"),
    "resets at once": Fault(resets, "reset", "reset the connection"),
    "hangs": Fault(sends(then=Peer.gone), "timeout", f"no answer after {TIMEOUT_S} s"),
    "hangs in the middle": Fault(sends(HEAD, REPLY[0], then=Peer.gone), "timeout", f"no answer after {TIMEOUT_S} s"),
    "cut in the middle": Fault(sends(HEAD, *REPLY[:2]), "truncated", "in the middle of its answer"),
    "cut before [DONE]": Fault(sends(HEAD, *REPLY[:4]), "truncated", "in the middle of its answer"),
    "reset in the middle": Fault(sends(HEAD, *REPLY[:2], then=resets), "reset", "reset the connection"),
    "no [DONE]": Fault(sends(HEAD, *REPLY[:4], END), "truncated", r"\[DONE\]", False),
    "error in the stream": Fault(sends(HEAD, REPLY[0], ERROR, *REPLY[4:]), "sse_error", "out of blocks", False),
    "error at once": Fault(sends(HEAD, ERROR, END), "sse_error", "out of blocks", False),
    "nothing said": Fault(sends(HEAD, said("stop", content=""), USAGE, *REPLY[4:]), "empty_answer", "no cont", False),
    "nothing sent": Fault(sends(response(b"")), "truncated", "", False),
    "no finish_reason": Fault(sends(HEAD, *REPLY[:2], *REPLY[3:]), "bad_answer", "no finish_reason", False),
    "no usage": Fault(sends(HEAD, *REPLY[:3], *REPLY[4:]), "bad_answer", "how many tokens", False),
    "no HTTP": Fault(sends(b"220 ready\r\n"), "bad_answer", "no HTTP"),
}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> BodyStore:
    """Nine trajectories of as many turns; a chat says whose turn it is."""
    sessions = [session for session in range(9) for _ in range(TURNS)]
    bodies = [{"messages": [{"role": "user", "content": str(row)}]} for row in range(len(sessions))]
    names = [f"trajectory {session}" for session in range(9)]
    return BodyStore.write(tmp_path_factory.mktemp("chats") / "chats", bodies, sessions, session_names=names)


def serving(bad: int, fault: Fault, asked: list[tuple[int, str]]) -> Callable[[Peer], None]:
    """Replies to every chat but one, and notes which were asked, in which session."""

    def play(peer: Peer) -> None:
        while True:
            head, body = peer.request()
            row = int(body["messages"][0]["content"])
            (session,) = re.findall(rb"\r\nX-Session-ID: ([^\r]+)", head + b"\r\n")
            asked.append((row, session.decode()))
            if row != bad:
                peer.send(HEAD, *REPLY)
                continue
            fault.play(peer)
            if fault.close:
                return

    return play


def replay(core: HttpCore, store: BodyStore, trajectories: int, at_once: int) -> Told:
    """Asks turn after turn of so many trajectories, some at a time; one that failed is not gone on with."""
    of, told, none = workload(bodies=store.path), Told(), PromptTable.empty(0)
    begun, going = iter(range(trajectories)), dict[int, Iterator[int]]()
    ended: set[int] = set()

    def ask(session: int | None) -> None:
        while session is not None:
            row = next(going.setdefault(session, iter(store.rows_of(session))), None)
            if row is not None:
                core.submit(Requests(of, (row,), (row,), none, ()))
                return
            session = next(begun, None)

    for _ in range(at_once):
        ask(next(begun, None))
    while len(ended) < trajectories * TURNS - sum(TURNS - 1 - row % TURNS for row in told.failures):
        drive(core, len(ended) + 1, told)
        for row in (told.finish.keys() | told.failures.keys()) - ended:
            ended.add(row)
            ask(next(begun, None) if row in told.failures else int(store.sessions[row]))
    return told


@pytest.mark.parametrize("at_once", [1, 8])
@pytest.mark.parametrize("turn", [0, 1, TURNS - 1])
@pytest.mark.parametrize("name", FAULTS)
def test_a_turn_that_a_server_fails(store: BodyStore, name: str, turn: int, at_once: int) -> None:
    fault, trajectories, asked = FAULTS[name], at_once + 1, list[tuple[int, str]]()
    bad = store.rows_of(at_once // 2)[turn]
    limits = {"connections": at_once, "request_timeout_s": TIMEOUT_S if fault.kind == "timeout" else 20.0}
    with server(serving(bad, fault, asked)) as running, core_of(running.url, **limits) as core:
        told = replay(core, store, trajectories, at_once)
        counters = core.counters()
    assert {row: failure.kind for row, failure in told.failures.items()} == {bad: fault.kind}
    message = told.failures[bad].message
    assert message.startswith(f"endpoint r0 ({running.url}) ") and re.search(fault.words, message), message
    skipped = set(range(bad + 1, bad + TURNS - turn))
    assert told.finish.keys() == set(range(trajectories * TURNS)) - {bad} - skipped
    assert all(reply["content"] == "so " and len(reply["tool_calls"]) == 1 for reply in told.replies.values())
    assert counters["failures"] == 1
    assert counters["retries"] == (turn > 0 and name in ("closes at once", "resets at once"))  # it was kept open
    times = {row: len([1 for each, _ in asked if each == row]) for row, _ in asked}
    assert {row for row, n in times.items() if n > 1} == ({bad} if counters["retries"] else set())
    assert all(session == f"trajectory {row // TURNS}" for row, session in asked)


@pytest.mark.parametrize("at_once", [1, 8])
def test_a_request_that_hangs_holds_nobody_up(store: BodyStore, at_once: int) -> None:
    """Its connection is closed when its time is over, and the next request goes out on another at once."""
    gone: list[bool] = []
    fault = Fault(lambda peer: gone.append(peer.gone()), "timeout", "")
    began = time.monotonic_ns()
    limits = {"connections": at_once, "request_timeout_s": TIMEOUT_S}
    with server(serving(0, fault, [])) as running, core_of(running.url, **limits) as core:
        told = replay(core, store, at_once + 1, at_once)
        opened = core.counters()["connections_opened"]
    assert gone == [True] and set(told.failures) == {0}
    assert opened <= at_once + 1
    if at_once == 1:  # nobody else has a connection: the next trajectory begins when the time is over, not before
        assert opened == 2
        assert min(told.first_ns.values()) - began >= TIMEOUT_S * 1e9
