"""Connections that are looked at together, and how many are made at once."""

from __future__ import annotations

import select
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from threading import Event
from time import sleep

import pytest

from harness.engines.base import Answers, TokenEvents, Tokens
from harness.engines.http.connection import Connection
from harness.engines.http.gathered import PAUSE_NS, Gathered
from tests.engines.http.play import (
    END,
    HEAD,
    Peer,
    Told,
    chunk,
    core_of,
    drive,
    requests,
    server,
    stream,
    streams,
    workload,
)

NOW = 1_000_000_000


@dataclass
class Set:
    """Connections in a set within another: their ends here, which are gathered, and there."""

    outer: select.epoll
    gathered: Gathered
    here: list[socket.socket] = field(default_factory=list)
    there: list[socket.socket] = field(default_factory=list)

    def ready(self, at_ns: int) -> list[int]:
        """Which of them are told."""
        places = [each.fileno() for each in self.here]
        return sorted(places.index(fd) for fd, mask in self.gathered.ready(at_ns) if mask == select.EPOLLIN)

    def send(self, *places: int) -> None:
        for place in places:
            self.there[place].send(b"x")

    def read(self, *places: int) -> None:
        for place in places:
            assert self.here[place].recv(9) == b"x"


@pytest.fixture
def make() -> Iterator[Callable[[int], Set]]:
    with ExitStack() as stack:

        def of(n: int) -> Set:
            outer = stack.enter_context(select.epoll())
            made = Set(outer, Gathered(outer))
            stack.callback(made.gathered.close)
            for _ in range(n):
                here, there = (stack.enter_context(each) for each in socket.socketpair())
                outer.register(here, select.EPOLLIN)
                made.gathered.add(here.fileno())
                made.here.append(here)
                made.there.append(there)
            return made

        yield of


def test_what_comes_after_a_pause_is_told_at_once(make: Callable[[int], Set]) -> None:
    made = make(2)
    assert not made.outer.poll(0) and made.ready(NOW) == [] and made.gathered.next_ns() is None
    made.send(1)
    assert made.outer.poll(0)
    assert made.ready(NOW) == [1]


def test_what_comes_soon_after_waits_for_the_others(make: Callable[[int], Set]) -> None:
    made = make(3)
    made.send(0)
    assert made.ready(NOW) == [0]
    made.read(0)
    made.send(1, 2)
    assert not made.outer.poll(0) and made.gathered.next_ns() == NOW + PAUSE_NS
    assert made.ready(NOW + PAUSE_NS - 1) == []
    assert made.ready(NOW + PAUSE_NS) == [1, 2]
    assert made.gathered.next_ns() == NOW + 2 * PAUSE_NS


def test_after_a_look_that_found_nothing_the_outer_set_tells_again(make: Callable[[int], Set]) -> None:
    made = make(1)
    made.send(0)
    made.ready(NOW)
    made.read(0)
    assert made.ready(NOW + PAUSE_NS) == [] and made.gathered.next_ns() is None
    made.send(0)
    assert made.outer.poll(0) and made.ready(NOW + PAUSE_NS + 1) == [0]


def test_a_connection_that_is_given_back_is_told_by_the_outer_set(make: Callable[[int], Set]) -> None:
    made = make(1)
    made.gathered.give_back(made.here[0].fileno())
    made.send(0)
    assert made.outer.poll(0) == [(made.here[0].fileno(), select.EPOLLIN)] and made.ready(NOW) == []


def test_more_than_one_look_takes_is_looked_at_without_a_pause(
    make: Callable[[int], Set], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.engines.http.gathered.AT_ONCE", 2)
    made = make(3)
    made.send(0, 1, 2)
    assert len(made.ready(NOW)) == 2 and made.gathered.next_ns() == NOW


def test_a_look_is_due_where_there_are_connections_and_no_pause(make: Callable[[int], Set]) -> None:
    made = make(2)
    assert made.gathered.due(NOW)
    made.send(0)
    made.ready(NOW)
    assert not made.gathered.due(NOW + PAUSE_NS - 1) and made.gathered.due(NOW + PAUSE_NS)
    made.gathered.drop(made.here[0].fileno())
    assert made.gathered.due(NOW + PAUSE_NS) and made.ready(NOW + PAUSE_NS) == []
    made.gathered.give_back(made.here[1].fileno())
    assert not made.gathered.due(NOW + PAUSE_NS)


def test_first_tokens_are_told_before_streams_that_go_on_are_looked_at_but_once() -> None:
    both = Event()

    def play(peer: Peer) -> None:
        peer.request()
        first, second, *more = map(chunk, stream([[41], [43], [44]]))
        if peer.number == 0:
            peer.send(HEAD + first, second)
        assert both.wait(20)
        peer.send(*[*more, END] if peer.number == 0 else [HEAD + first])
        peer.gone()

    with server(play) as running, core_of(running.url, connections=2) as core:
        core.submit(requests(1))
        drive(core, lambda told: bool(told.tokens))
        core.submit(requests(1, first=200))
        drive(core, lambda _: len(running.peers) == 2 and not any(map(connecting, core._pool.connections.values())))
        both.set()
        sleep(0.2)  # the end of one is there and the first token of the other
        (tokens,) = core.step()
        assert isinstance(tokens, Tokens) and tokens.numbers == (200,) and core.wait_s() == 0
        (answer,) = core.step()
        assert isinstance(answer, Answers) and answer.numbers == (100,)


def connecting(connection: Connection) -> bool:
    return connection.connecting


def test_a_stream_is_gathered_from_its_first_token_to_its_end() -> None:
    seen: list[tuple[bool, bool]] = []

    def play(peer: Peer) -> None:
        for _ in range(2):  # one connection has both
            peer.request()
            frames = stream([[41], [42], [43]])
            peer.send(HEAD, chunk(frames[0]), pause_s=0.05)
            peer.send(*map(chunk, frames[1:-1]), pause_s=0.01)
            peer.send(chunk(frames[-1]), END)

    with server(play) as running, core_of(running.url, connections=1) as core:

        def enough(told: Told) -> bool:
            for connection in core._pool.connections.values():
                seen.append((bool(told.tokens), connection.gathered))
            return told.over == 2

        core.submit(requests(2))
        told = drive(core, enough)
        assert set(map(tuple, told.answers.values())) == {(41, 42, 43)}
        assert (False, False) in seen and (True, True) in seen and (False, True) not in seen
        assert not any(connection.gathered for connection in core._pool.connections.values())


def test_a_stream_of_which_every_token_is_told_is_not_gathered() -> None:
    with server(streams([[5], [6]])) as running, core_of(running.url) as core:

        def enough(told: Told) -> bool:
            assert not any(connection.gathered for connection in core._pool.connections.values())
            return told.over == 1

        core.submit(requests(1, workload(TokenEvents.ALL)))
        drive(core, enough)


def test_connections_are_made_some_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.engines.http.pool.CONNECTING_AT_ONCE", 3)
    seen = []
    with server(streams([[5], [6]])) as running, core_of(running.url, connections=20) as core:
        (endpoint,) = core._pool.endpoints

        def enough(told: Told) -> bool:
            seen.append(endpoint.connecting)
            return told.over == 40

        core.submit(requests(40))
        told = drive(core, enough)
        assert not told.failures
    assert max(seen) == 3 and seen[-1] == 0
