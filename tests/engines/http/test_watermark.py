"""Streams of which not every piece is told: what is saved by it, and that nothing is late for it."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.engines.base import TokenEvents
from harness.engines.http import watermark
from harness.engines.http.connection import Connection
from harness.engines.http.core import HttpCore
from harness.engines.http.deadlines import NEVER_NS
from harness.engines.http.dialects import DIALECTS
from harness.engines.http.watermark import Form, goes_on
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
    event,
    frame,
    idle,
    requests,
    server,
    stream,
    usage,
    workload,
)

KEY = DIALECTS["trtllm-serve"].ids_key
IDS = [[i, i + 1] for i in range(0, 40, 2)]
FLAT = [each for piece in IDS for each in piece]
LONG_S = 600.0


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is looked at for having been quiet: what is told was told by the socket."""
    monkeypatch.setattr(watermark, "QUIET_NS", int(LONG_S * 1e9))


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watermark, "QUIET_NS", 20_000_000)


# What can be left of a stream


def said(text: str, finish: str | None = None) -> dict[str, Any]:
    """A chunk as vLLM has it: a text, and the finish before the ids."""
    choice = {"index": 0, "text": text, "logprobs": None, "finish_reason": finish, "token_ids": [5], "extra": None}
    return {"id": "cmpl-5", "object": "text_completion", "created": 5, "model": MODEL, "choices": [choice]}


def delta(text: str | None, finish: str | None = None) -> dict[str, Any]:
    choice = {"index": 0, "delta": {"content": text} if text else {}, "finish_reason": finish}
    return {"id": "chat-5", "object": "chat.completion.chunk", "created": 5, "model": MODEL, "choices": [choice]}


def counted(content: dict[str, Any]) -> dict[str, Any]:
    counts = {"prompt_tokens": 1, "total_tokens": 2, "completion_tokens": 1}
    return {**content, "choices": [], "usage": counts}


OPEN = st.one_of(
    st.lists(st.integers(0, 2**31 - 1), min_size=1, max_size=80).map(event),
    st.text(max_size=80).map(said),
    st.text(min_size=1, max_size=80).map(delta),
)


def last_of(content: dict[str, Any]) -> dict[str, Any]:
    """The shortest event that ends such a stream."""
    (choice,) = content["choices"]
    least = {"delta": {}} if "delta" in choice else {"text": "", "token_ids": []}
    return content | {"choices": [choice | least | {"finish_reason": "stop"}]}


@given(content=OPEN, before=st.binary(max_size=300), one_chunk=st.booleans())
def test_no_end_is_shorter(content: dict[str, Any], before: bytes, one_chunk: bool) -> None:
    last = last_of(content)
    ends = [frame(last), frame(counted(last)), DONE]
    rest = chunk(b"".join(ends)) + END if one_chunk else b"".join(map(chunk, ends)) + END
    raw = bytearray(before + chunk(frame(content)))
    assert goes_on(raw)
    form = Form.of(raw, KEY)
    assert 100 < form.least_left <= len(rest)
    assert raw.endswith(form.tail) and form.tail.startswith(b'"finish_reason":null')
    for part in (last, counted(last)):
        assert not goes_on(raw + chunk(frame(last)) + (b"" if part is last else chunk(frame(part))))


def test_of_what_has_no_choice_nothing_is_known() -> None:
    assert Form.of(bytearray(chunk(frame({"a": 1, "finish_reason": None}))), KEY).least_left == 0


@pytest.mark.parametrize(
    "raw", [b"", b"\n\n\r\n", b'data: {"finish_reason":null}\n\n', b'"finish_reason":"stop"\n\n\r\n']
)
def test_what_does_not_end_with_an_event_that_goes_on(raw: bytes) -> None:
    assert not goes_on(bytearray(raw))


# What a core does with it


def connections(core: HttpCore) -> list[Connection]:
    return list(core._pool.connections.values())


def watermark_of(connection: Connection) -> int:
    return connection.socket.getsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT)


def held(core: HttpCore, n: int = 1) -> Callable[[Told], bool]:
    return lambda told: sum(each.held for each in connections(core)) == n


def frames(ids: Sequence[Sequence[int]] = IDS) -> list[bytes]:
    return [*map(chunk, stream(ids, "length")), END]


class Server:
    """Sends the beginning of a stream; then, when it is let go on, one more chunk that goes on, and the rest."""

    def __init__(
        self,
        pieces: Sequence[bytes],
        *,
        pause_s: float = 0.0,
        then: Callable[[Peer], object] | None = None,
        then_s: float = 0.05,
    ):
        self.pieces = pieces
        self.pause_s = pause_s
        self.then = then
        self.then_s = then_s
        self.go_on = threading.Event()
        self.went_on = threading.Event()
        self.sent_ns = 0
        self.gone: list[bool] = []

    def __call__(self, peer: Peer) -> None:
        while True:
            peer.request()
            peer.send(HEAD + self.pieces[0])
            peer.send(*self.pieces[1:4], pause_s=0.02)
            assert self.go_on.wait(20)
            peer.send(self.pieces[4])
            self.went_on.set()
            if self.then is not None:
                time.sleep(self.then_s)
                self.gone.append(bool(self.then(peer)))
                return
            peer.send(*self.pieces[5:-1], pause_s=self.pause_s)
            self.sent_ns = time.monotonic_ns()
            peer.send(self.pieces[-1])


def test_pieces_are_read_some_at_a_time(patient: None) -> None:
    read: list[tuple[bool, int]] = []

    def play(peer: Peer) -> None:
        peer.request()
        first, *more = frames()
        peer.send(HEAD + first, pause_s=0.05)
        peer.send(*more, pause_s=0.005)

    with server(play) as running, core_of(running.url) as core:

        def enough(told: Told) -> bool:
            for connection in connections(core):
                if told.tokens and not read:
                    read.append((False, 0))
                    receive = connection.recv_into

                    def counting(buffer: Any, of: Connection = connection, receive: Any = receive) -> int:
                        was, n = of.held, receive(buffer)
                        read.append((was, n))
                        return int(n)

                    connection.recv_into = counting
            return bool(told.over)

        core.submit(requests())
        assert drive(core, enough).answers == {100: FLAT}
        (form,) = {course._form for course in core._courses.values()}
    assert form is not None
    assert form.least_left > len(frames()[2])
    assert len(read) < len(IDS)
    assert sum(was for was, _ in read) > 5
    assert all(n >= form.least_left for was, n in read if was)


@pytest.mark.parametrize("pause_s", [0.0, 0.02])
@pytest.mark.parametrize("ids", [IDS[:5], IDS[:6], IDS[:7], [*IDS[:5], [7]], [*IDS[:5], []]])
def test_an_end_is_told_at_once(patient: None, pause_s: float, ids: list[list[int]]) -> None:
    playing = Server(frames(ids), pause_s=pause_s)
    with server(playing) as running, core_of(running.url) as core:
        core.submit(requests())
        told = drive(core, held(core))
        playing.go_on.set()
        drive(core, 1, told)
        assert told.answers == {100: [each for piece in ids for each in piece]}


def test_a_connection_that_was_held_tells_all_of_the_next_stream(patient: None) -> None:
    playing = Server(frames(IDS[:6]))
    with server(playing) as running, core_of(running.url, connections=1) as core:
        core.submit(requests(2))
        told = drive(core, held(core))
        (connection,) = connections(core)
        assert watermark_of(connection) > 100
        playing.go_on.set()
        drive(core, 2, told)
        assert told.answers == {100: FLAT[:12], 101: FLAT[:12]}
        assert len(running.peers) == 1 and connections(core) == [connection]
        assert watermark_of(connection) == 1 and not connection.held


def test_a_stream_that_ends_after_its_finish_was_told_is_not_held(patient: None) -> None:
    """Of one whose finish was read, little can be left."""
    seen: list[int] = []
    *before, done, end = frames(IDS[:6])

    def play(peer: Peer) -> None:
        peer.request()
        peer.send(HEAD + before[0])
        peer.send(*before[1:], pause_s=0.03)
        peer.send(done[:3], done[3:], end[:2], end[2:], pause_s=0.03)

    with server(play) as running, core_of(running.url) as core:

        def enough(told: Told) -> bool:
            seen.extend(each.held for each in connections(core))
            return bool(told.over)

        core.submit(requests())
        assert drive(core, enough).answers == {100: FLAT[:12]}
    assert True in seen and not seen[-1]


def padded(finish: str | None = None, **more: object) -> bytes:
    content = event([7], finish)
    content["choices"][0] |= more
    return chunk(frame(content))


def test_an_end_of_another_form_is_seen_though_late_and_such_streams_are_held_no_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nothing but the quiet may wake us: neither a chunk that is read with the end, nor the connection's own end."""
    monkeypatch.setattr(watermark, "QUIET_NS", 100_000_000)
    first = padded(padding="x" * 900)
    end = b"".join([padded(), padded("length"), chunk(frame(usage(4))), chunk(DONE), END])
    playing = Server([b"", first, first, b"", end], then=Peer.gone, then_s=1.0)
    with server(playing) as running, core_of(running.url) as core:
        core.submit(requests())
        told = drive(core, held(core))
        playing.go_on.set()
        drive(core, 1, told)
        assert told.answers == {100: [7] * 4}
        (course,) = core._courses.values()
        assert not course.may_hold
        core.submit(requests(1, first=200))
        drive(core, lambda told: not any(each.may_hold for each in connections(core)), told)
        drive(core, 2, told)
        assert told.answers[200] == [7] * 4


def test_an_error_that_is_shorter_than_any_end_is_told(hasty: None) -> None:
    pieces = [*frames()[:4], chunk(frame({"error": {"message": "out of blocks"}})) + chunk(DONE) + END]
    playing = Server(pieces, then=Peer.gone)
    with server(playing) as running, core_of(running.url) as core:
        core.submit(requests())
        told = drive(core, held(core))
        playing.go_on.set()
        drive(core, 1, told)
        assert told.failures[100].kind == "sse_error"


def test_a_stream_that_stalls_is_held_again_when_it_goes_on(hasty: None) -> None:
    go_on = threading.Event()

    def play(peer: Peer) -> None:
        peer.request()
        pieces = frames()
        peer.send(HEAD + pieces[0])
        peer.send(*pieces[1:4], pause_s=0.02)
        peer.send(pieces[4])
        assert go_on.wait(20)
        peer.send(*pieces[5:], pause_s=0.005)

    with server(play) as running, core_of(running.url) as core:
        core.submit(requests())
        told = drive(core, held(core))
        drive(core, held(core, 0), told)
        idle(core, 0.1)
        go_on.set()
        drive(core, held(core), told)
        drive(core, 1, told)
        assert told.answers == {100: FLAT}
        (course,) = core._courses.values()
        assert course.may_hold, "it was no end that came late"


def test_a_reset_is_told_at_once(patient: None) -> None:
    playing = Server(frames(), then=Peer.reset)
    with server(playing) as running, core_of(running.url) as core:
        core.submit(requests())
        told = drive(core, held(core))
        playing.go_on.set()
        drive(core, 1, told)
        assert told.failures[100].kind == "reset"
        assert core._pool.marks.next_ns > time.monotonic_ns() + LONG_S * 1e9


def test_a_connection_that_breaks_off_is_told_at_once(patient: None) -> None:
    playing = Server(frames(), then=lambda peer: None)
    with server(playing) as running, core_of(running.url) as core:
        core.submit(requests())
        told = drive(core, held(core))
        playing.go_on.set()
        drive(core, 1, told)
        assert told.failures[100].kind == "truncated"


def test_no_answer_in_time(patient: None) -> None:
    playing = Server(frames(), then=Peer.gone)
    with server(playing) as running, core_of(running.url, request_timeout_s=0.4) as core:
        before = time.monotonic()
        core.submit(requests())
        playing.go_on.set()
        told = drive(core, 1)
        assert told.failures[100].kind == "timeout"
        assert 0.4 <= time.monotonic() - before < 5


@pytest.mark.parametrize("how", ["cancel", "drop"])
def test_what_is_held_can_be_cancelled(patient: None, how: str) -> None:
    playing = Server(frames(), then=Peer.gone)
    with server(playing) as running, core_of(running.url, connections=1) as core:
        core.submit(requests())
        drive(core, held(core))
        playing.go_on.set()
        assert playing.went_on.wait(20)  # else a busy server finds the connection closed as it sends
        idle(core, 0.03)
        if how == "cancel":
            core.cancel()
        else:
            core.drop({100})
        assert not connections(core) and not core._pool.gathered.due(time.monotonic_ns())
        assert core._pool.marks.next_ns == NEVER_NS
        deadline = time.monotonic() + 10
        while not playing.gone and time.monotonic() < deadline:
            time.sleep(0.01)
        assert playing.gone == [True]
        playing.then = None
        core.submit(requests(1, first=200))
        assert drive(core, 1).answers == {200: FLAT}


def test_all_of_a_stream_is_told_where_every_token_is(patient: None) -> None:
    playing = Server(frames(), pause_s=0.005)
    playing.go_on.set()
    with server(playing) as running, core_of(running.url) as core:

        def enough(told: Told) -> bool:
            assert not any(each.held for each in connections(core))
            return bool(told.over)

        core.submit(requests(1, workload(TokenEvents.ALL)))
        drive(core, enough)


def test_a_dialect_without_a_usage_at_the_end_is_told_all() -> None:
    def play(peer: Peer) -> None:
        peer.request()
        meta = {"id": "x", "finish_reason": None, "prompt_tokens": 3, "completion_tokens": 1}
        for n in range(1, 9):
            content = {"text": "", "output_ids": [n], "meta_info": meta | {"completion_tokens": n}}
            content["meta_info"] |= {"finish_reason": {"type": "length"} if n == 8 else None}  # type: ignore[operator]  # a dict
            peer.send((HEAD if n == 1 else b"") + chunk(frame(json.dumps(content).encode())), pause_s=0.01)
        peer.send(chunk(DONE) + END)

    with server(play) as running, core_of(running.url, server="sglang") as core:

        def enough(told: Told) -> bool:
            assert not any(each.held for each in connections(core))
            return bool(told.over)

        core.submit(requests())
        assert drive(core, enough).answers == {100: list(range(1, 9))}
