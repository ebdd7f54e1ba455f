"""One server: the requests that wait for it, and its connections."""

from __future__ import annotations

import socket
from collections import deque
from collections.abc import Collection
from typing import Any

from harness.engines.base import REPLICA_DIED, Failure, Requests
from harness.engines.dropping import only, places_without
from harness.engines.http.connection import Connection, Exchange
from harness.engines.http.course import Course
from harness.engines.http.settings import Address
from harness.errors import MissingError


class Waiting:
    """Requests of a workload that were not begun, from ``next`` on."""

    __slots__ = ("course", "next", "requests")

    def __init__(self, requests: Requests, course: Course) -> None:
        self.requests = requests
        self.course = course
        self.next = 0

    def without(self, numbers: Collection[int]) -> Waiting:
        """What is left of it without the requests of these numbers."""
        places = range(self.next, len(self.requests))
        return Waiting(only(self.requests, places_without(self.requests, places, numbers)), self.course)


class Endpoint:
    """A server's queue and its connections. Raises MissingError for a host that has no address."""

    def __init__(self, address: Address) -> None:
        self.name = address.name
        self.where = f"endpoint {address.name} ({address.url})"
        self._addresses = _resolved(address)
        self._at = 0
        self.settled = False
        """Whether a connection was made to the address that is tried now; others of the host are then left alone."""
        self.dead = ""
        """Why no request can be answered any more, where none can."""
        self.waiting: deque[Waiting] = deque()
        self.again: deque[Exchange] = deque()
        """Requests to be sent a second time, on a fresh connection."""
        self.suspects: list[tuple[Exchange, str, str]] = []
        """Requests whose connection was lost, with kind and words: failed as such if the endpoint turns out to live."""
        self.probes = 0
        """How many connections were made in vain to see whether it lives."""
        self.open = 0
        """How many connections it has."""
        self.connecting = 0
        """How many of them are still being made."""
        self.idle: dict[Connection, None] = {}
        """Those of them that wait for a request, the longest idle first."""

    @property
    def address(self) -> tuple[int, tuple[Any, ...]]:
        """Family and address to connect to."""
        return self._addresses[self._at]

    def try_next_address(self) -> bool:
        """Goes on to the host's next address, where none has worked yet and there is one."""
        if self.settled or self._at + 1 >= len(self._addresses):
            return False
        self._at += 1
        return True

    def next(self) -> Exchange | Failure:
        """Begins the next request that waits, or says why it cannot be. One must wait."""
        if self.again:
            return self.again.popleft()
        first = self.waiting[0]
        place, first.next = first.next, first.next + 1
        if first.next >= len(first.requests):
            self.waiting.popleft()
        unservable = first.course.unservable(first.requests, place)
        return unservable or Exchange(self, first.requests, place, first.course)

    def failures(self) -> list[Failure]:
        """Fails all that wait or are in suspense, for a dead endpoint."""
        message = f"{self.where} {self.dead}"
        failures = [
            self.failed(exchange, REPLICA_DIED, f"{words}, and {self.dead}") for exchange, _, words in self.suspects
        ]
        failures += [self.failed(exchange, REPLICA_DIED, self.dead) for exchange in self.again]
        for each in self.waiting:
            numbers = each.requests.numbers
            failures += [Failure(int(numbers[i]), REPLICA_DIED, message) for i in range(each.next, len(numbers))]
        self.suspects.clear()
        self.again.clear()
        self.waiting.clear()
        return failures

    def failed(self, exchange: Exchange, kind: str, words: str) -> Failure:
        """The failure of a request that was begun; it is over."""
        exchange.over = True
        return Failure(exchange.number, kind, f"{self.where} {words}")

    def drop(self, numbers: Collection[int]) -> None:
        """Forgets the requests of these numbers that are not under way."""
        for exchange in self.again:
            exchange.over = exchange.number in numbers
        self.again = deque(exchange for exchange in self.again if exchange.number not in numbers)
        self.suspects = [suspect for suspect in self.suspects if suspect[0].number not in numbers]
        left = [each.without(numbers) for each in self.waiting]
        self.waiting = deque(each for each in left if len(each.requests))

    def forget(self) -> None:
        """Drops all requests, and takes it that the server may be there again."""
        self.dead = ""
        self.suspects.clear()
        self.again.clear()
        self.waiting.clear()


def _resolved(address: Address) -> list[tuple[int, tuple[Any, ...]]]:
    try:
        found = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise MissingError(
            f"the host {address.host!r} has no address: {error.strerror}",
            where=address.url,
            mend="correct the URL, or make the name known to this machine",
        ) from None
    return [(family, where) for family, _, _, _, where in found]
