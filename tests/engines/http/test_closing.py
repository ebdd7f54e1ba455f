"""What a core makes of servers that close connections, or die."""

from __future__ import annotations

import errno
import threading
import time
from collections.abc import Callable

import pytest

from harness.engines.base import REPLICA_DIED, TokenEvents
from harness.engines.http import pool
from tests.engines.http.play import (
    END,
    HEAD,
    Peer,
    chunk,
    core_of,
    drive,
    event,
    frame,
    idle,
    requests,
    server,
    stream,
    streams,
    whole,
    workload,
)

ANSWER = [[5], [6, 7], [8, 200_002]]
NONE = workload(TokenEvents.NONE)


# A server that closes connections


def closes_after(answers: int, then: Callable[[Peer], None] | None = None) -> Callable[[Peer], None]:
    """Closes its first connection after so many answers, when the next request is there."""

    def play(peer: Peer) -> None:
        served = 0
        while True:
            peer.request()
            if peer.number == 0 and served == answers:
                if then is not None:
                    then(peer)
                return
            peer.send(HEAD, *map(chunk, stream(ANSWER)), END)
            served += 1

    return play


@pytest.mark.parametrize("then", [None, Peer.reset])
def test_a_kept_connection_closed_just_then_is_tried_once_more(then: Callable[[Peer], None] | None) -> None:
    with server(closes_after(1, then)) as running, core_of(running.url, connections=1) as core:
        core.submit(requests(1, first=1))
        drive(core, 1)
        before = time.monotonic_ns()
        core.submit(requests(1, first=2))
        told = drive(core, 1)
        assert told.answers == {2: [5, 6, 7, 8]} and not told.failures
        assert told.first_ns[2] > before
        assert core.counters()["retries"] == 1 and core.counters()["connections_opened"] == 2


def test_but_not_twice() -> None:
    def play(peer: Peer) -> None:
        peer.request()
        if peer.number == 0:
            peer.send(HEAD, *map(chunk, stream(ANSWER)), END)
            peer.request()

    with server(play) as running, core_of(running.url, connections=1) as core:
        core.submit(requests(1, first=1))
        drive(core, 1)
        core.submit(requests(1, first=2))
        told = drive(core, 1)
        assert told.failures[2].kind == "reset" and core.counters()["retries"] == 1


def test_and_not_after_the_first_byte() -> None:
    with server(closes_after(1, lambda peer: peer.send(b"H"))) as running, core_of(running.url, connections=1) as core:
        core.submit(requests(1, first=1))
        drive(core, 1)
        core.submit(requests(1, first=2))
        told = drive(core, 1)
        assert told.failures[2].kind == "truncated" and core.counters()["retries"] == 0


def test_a_connection_that_was_idle_for_long_is_closed_and_not_used() -> None:
    with server(streams(ANSWER)) as running, core_of(running.url, keep_alive_s=0.1) as core:
        core.submit(requests(1, first=1))
        drive(core, 1)
        assert 0 < (core.wait_s() or 0) <= 0.1
        idle(core, 0.3)
        assert core.wait_s() is None
        core.submit(requests(1, first=2))
        assert len(drive(core, 1).answers) == 1
        assert core.counters()["connections_opened"] == 2 and core.counters()["retries"] == 0


def test_a_connection_that_the_server_closes_while_idle_is_not_used() -> None:
    def play(peer: Peer) -> None:
        peer.request()
        peer.send(HEAD, *map(chunk, stream(ANSWER)), END)

    with server(play) as running, core_of(running.url) as core:
        core.submit(requests(1, first=1))
        drive(core, 1)
        idle(core, 0.1)
        core.submit(requests(1, first=2))
        assert len(drive(core, 1).answers) == 1
        assert core.counters()["retries"] == 0


def test_a_server_that_says_more_than_was_asked_loses_the_connection() -> None:
    def play(peer: Peer) -> None:
        peer.request()
        peer.send(b"".join([whole([5, 6]), b"HTTP/1.1 200 OK\r\n"]))
        assert peer.gone()

    with server(play) as running, core_of(running.url, connections=1) as core:
        core.submit(requests(2, NONE))
        assert len(drive(core, 2).answers) == 2
        assert core.counters()["connections_opened"] == 2


# A server that dies


def test_a_server_that_was_never_there() -> None:
    with server(streams(ANSWER)) as running:
        running.refuse()
        with core_of(running.url) as core:
            core.submit(requests(200))
            told = drive(core, 200)
            assert {each.kind for each in told.failures.values()} == {REPLICA_DIED}
            assert all("refuses connections" in each.message for each in told.failures.values())
            core.submit(requests(1, first=900))
            assert drive(core, 1).failures[900].kind == REPLICA_DIED
            assert core.counters()["failures"] == 201


def test_a_server_that_dies_fails_what_it_has_and_what_comes() -> None:
    dies = threading.Event()

    def play(peer: Peer) -> None:
        peer.request()
        peer.send(HEAD, chunk(frame(event([1]))))
        dies.wait(20)
        peer.reset()

    with (
        server(play) as dying,
        server(streams(ANSWER)) as living,
        core_of(dying.url, living.url, connections=4) as core,
    ):
        core.submit(requests(10, first=0))
        told = drive(core, lambda told: len(told.tokens) == 4)
        dying.refuse()
        dies.set()
        drive(core, 10, told)
        assert {each.kind for each in told.failures.values()} == {REPLICA_DIED}
        assert all(each.message.startswith(f"endpoint r0 ({dying.url})") for each in told.failures.values())
        core.submit(requests(3, workload(replica=1), first=50))
        assert len(drive(core, 3).answers) == 3


def test_an_answer_that_came_before_the_server_died_is_not_lost() -> None:
    def play(peer: Peer) -> None:
        peer.request()
        peer.send(HEAD, chunk(frame(event([1]))))
        if peer.number == 0:
            time.sleep(0.2)
            running.refuse()
            peer.reset()
        else:
            time.sleep(0.4)
            peer.send(*map(chunk, stream([[2], [3]], "length", 3)), END)

    with server(play) as running, core_of(running.url, connections=2) as core:
        core.submit(requests(3))
        told = drive(core, 3)
        assert sorted(each.kind for each in told.failures.values()) == [REPLICA_DIED] * 2
        assert list(told.answers.values()) == [[1, 2, 3]]


def test_a_server_that_takes_connections_and_drops_them_is_not_dead() -> None:
    with server(lambda peer: None) as running, core_of(running.url, connections=2) as core:
        core.submit(requests(4))
        told = drive(core, 4)
        assert {each.kind for each in told.failures.values()} <= {"reset", "truncated"}


def test_no_more_open_files_is_not_the_server_s_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    with server(streams(ANSWER)) as running, core_of(running.url) as core:

        def none(*_: object) -> None:
            raise OSError(errno.EMFILE, "Too many open files")

        monkeypatch.setattr(pool, "Connection", none)
        core.submit(requests(5_000))
        told = drive(core, 5_000)
        assert {each.kind for each in told.failures.values()} == {"unreachable"}
        monkeypatch.undo()
        core.submit(requests(1, first=9_000))
        assert drive(core, 1).answers == {9_000: [5, 6, 7, 8]}


def test_a_dead_server_may_be_there_again_after_cancel() -> None:
    with server(streams(ANSWER)) as running, core_of(running.url) as core:
        core.submit(requests(1, first=1))
        drive(core, 1)
        core._pool.endpoints[0].dead = "refuses connections"
        core.submit(requests(1, first=2))
        assert drive(core, 1).failures[2].kind == REPLICA_DIED
        core.cancel()
        core.submit(requests(1, first=3))
        assert len(drive(core, 1).answers) == 1
