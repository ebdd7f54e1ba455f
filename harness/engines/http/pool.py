"""The connections to all endpoints: opened, given requests, watched, closed; and which endpoint is dead.

A connection that is lost in the middle of a request may mean one request or the whole server. Another connection is
made to find out: where that is refused, all that the endpoint has to do fails as :data:`REPLICA_DIED`. A process that
is being ended may lose its connections before its listening socket, so the new one must last for a moment.
"""

from __future__ import annotations

import errno
import os
import select
import socket
import time
from collections.abc import Collection, Sequence
from typing import Final

from harness.engines.base import PROMPTS_DIFFER, REPLICA_DIED, Failure
from harness.engines.http.connection import Connection, Exchange
from harness.engines.http.course import Course
from harness.engines.http.deadlines import NEVER_NS, Deadlines
from harness.engines.http.endpoint import Endpoint
from harness.engines.http.gathered import Gathered
from harness.engines.http.outbox import Outbox
from harness.engines.http.problems import RESET, TIMEOUT, UNREACHABLE
from harness.engines.http.settings import HttpSettings
from harness.engines.http.watermark import Watermarks

BEGUN_AT_ONCE: Final = 64
"""So many requests are begun at once; answers that come meanwhile need not wait for a million to be sent."""
CONNECTING_AT_ONCE: Final = 128
"""So many connections to an endpoint are being made at once: those beyond what a server lets wait to be accepted are
dropped unseen, and tried again a second later and more."""
PROBE_LASTS_S: Final = 0.2
PROBES: Final = 3
"""A server that takes connections and drops them is not dead after so many."""
OUR_OWN: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.EADDRNOTAVAIL, errno.ENOBUFS, errno.ENOMEM})
"""Why no connection can be made from here; these say nothing of the endpoint."""
COUNTED: Final = ("requests", "retries", "connections_opened", "bytes_sent", "bytes_received", "failures")


class Pool:
    """Endpoints and their connections, in one epoll set."""

    def __init__(self, settings: HttpSettings, outbox: Outbox) -> None:
        """Raises MissingError for an endpoint whose host has no address."""
        self.endpoints = [Endpoint(address) for address in settings.endpoints]
        self.epoll = select.epoll()
        self.gathered = Gathered(self.epoll)
        self.marks = Watermarks()
        self.connections: dict[int, Connection] = {}
        """By descriptor."""
        self.counters = dict.fromkeys((*COUNTED, PROMPTS_DIFFER), 0)
        self.hungry: set[Endpoint] = set()
        """Endpoints for which more can be begun than was."""
        self._outbox = outbox
        self._most = settings.connections
        self._keep_alive_ns = int(settings.keep_alive_s * 1e9)
        self._settings = settings
        self._closing: list[socket.socket] = []
        self.check_ns = NEVER_NS
        """Nothing is late before."""
        self._timeouts: Deadlines[Exchange] = Deadlines(settings.request_timeout_s, lambda exchange: exchange.over)
        self._connects: Deadlines[Connection] = Deadlines(
            settings.connect_timeout_s, lambda connection: not connection.connecting
        )
        self._probes: Deadlines[Connection] = Deadlines(PROBE_LASTS_S, lambda connection: not connection.probe)

    def feed(self, endpoint: Endpoint) -> None:
        """Begins requests of an endpoint while it has connections for them, some at a time."""
        for _ in range(BEGUN_AT_ONCE):
            if endpoint.dead:
                self.fail(*endpoint.failures())
            if not self._can_begin(endpoint):
                self.hungry.discard(endpoint)
                return
            exchange = endpoint.next()
            if isinstance(exchange, Failure):
                self.fail(exchange)
            else:
                self._begin(endpoint, exchange)
        self.hungry.add(endpoint)

    def connected(self, connection: Connection) -> None:
        """A connection is made, or could not be."""
        endpoint = connection.endpoint
        endpoint.connecting -= 1
        error = connection.connected()
        if error:
            self._not_made(connection, error)
            return
        endpoint.settled = True
        if connection.probe:
            self._watch(connection)
            self._late(self._probes.add(connection, time.monotonic_ns()))
        elif connection.exchange is not None:
            self.send(connection)
            self.feed(endpoint)
        else:
            self._rest(connection)

    def send(self, connection: Connection) -> None:
        """Sends a request, or on with it."""
        exchange, rest = connection.exchange, connection.rest
        if exchange is not None:
            self.counters["bytes_sent"] += connection.send(exchange.pieces() if rest is None else rest)
            if connection.rest is None:
                exchange.course.sent()
        self._watch(connection)

    def unasked(self, connection: Connection) -> None:
        """A connection without a request is closed by the server, or it talks; either way it is given up."""
        endpoint, probe = connection.endpoint, connection.probe
        self.close(connection)
        if probe and endpoint.suspects:
            endpoint.probes += 1
            if endpoint.probes < PROBES:
                self._open(endpoint, None)
            else:
                self._acquit(endpoint)

    def done(self, connection: Connection) -> None:
        """A request is at its end, and its connection takes another, if it may."""
        if connection.gathered:
            connection.gathered = False
            self.gathered.give_back(connection.fd)
        self.marks.end(connection)
        if connection.leave():
            self._rest(connection)
        else:
            self.close(connection)

    def gather(self, connection: Connection, course: Course) -> None:
        """What comes next on a connection may wait for a moment; its request is sent."""
        if connection.mask == select.EPOLLIN:
            connection.gathered = True
            connection.may_hold = course.may_hold
            self.gathered.add(connection.fd)

    def again(self, connection: Connection, exchange: Exchange) -> None:
        """Sends a request a second time, on a connection of its own: the server closed this one just then."""
        self.close(connection)
        self.counters["retries"] += 1
        exchange.retried = True
        exchange.connection = None
        connection.endpoint.again.append(exchange)
        self.hungry.add(connection.endpoint)

    def lost(self, connection: Connection, exchange: Exchange, kind: str, words: str) -> None:
        """A connection ended in the middle of a request, which fails once it is known whether the endpoint lives."""
        self.close(connection)
        self._suspect(connection.endpoint, exchange, kind, words)

    def _suspect(self, endpoint: Endpoint, exchange: Exchange, kind: str, words: str) -> None:
        """A request is lost, and perhaps the endpoint with it."""
        if endpoint.dead:
            self.fail(endpoint.failed(exchange, REPLICA_DIED, f"{words}, and {endpoint.dead}"))
            return
        exchange.over = True
        endpoint.suspects.append((exchange, kind, words))
        if len(endpoint.suspects) == 1:
            endpoint.probes = 0
            self._open(endpoint, None)

    def fail(self, *failures: Failure) -> None:
        """Tells of failures."""
        self.counters["failures"] += len(failures)
        self._outbox.failures += failures

    def expire(self, now: int) -> None:
        """Ends what is late at a time, closes what is idle for too long, and says when to look again."""
        for exchange in self._timeouts.late(now):
            endpoint = exchange.endpoint
            self.fail(endpoint.failed(exchange, TIMEOUT, f"has no answer after {self._settings.request_timeout_s:g} s"))
            if exchange.connection is not None:
                self.close(exchange.connection)
            else:
                endpoint.again.remove(exchange)
        for connection in self._connects.late(now):
            self._not_made(connection, errno.ETIMEDOUT)
        for connection in self._probes.late(now):
            connection.probe = False
            self._acquit(connection.endpoint)
            self._rest(connection)
        for endpoint in self.endpoints:
            idle = endpoint.idle
            while idle and (first := next(iter(idle))).since_ns + self._keep_alive_ns <= now:
                self.close(first)
        dues = [queue.next_ns() for queue in (self._timeouts, self._connects, self._probes)]
        dues += [next(iter(each.idle)).since_ns + self._keep_alive_ns for each in self.endpoints if each.idle]
        self.check_ns = min(dues)

    def drop(self, numbers: Collection[int]) -> None:
        """Forgets some requests, and closes the connections on which those of them that are under way are."""
        for connection in tuple(self.connections.values()):
            exchange = connection.exchange
            if exchange is not None and exchange.number in numbers:
                exchange.over = True
                self.close(connection)
        for endpoint in self.endpoints:
            endpoint.drop(numbers)
        self.really_close()

    def cancel(self) -> None:
        """Closes the connections on which something is under way, so that the servers stop, and forgets all."""
        for connection in tuple(self.connections.values()):
            if connection not in connection.endpoint.idle:
                self.close(connection)
        for endpoint in self.endpoints:
            endpoint.forget()
        self.hungry.clear()
        self._timeouts.clear()
        self._connects.clear()
        self._probes.clear()
        self.expire(time.monotonic_ns())
        self.really_close()

    def shut(self) -> None:
        """Closes everything."""
        self.cancel()
        for connection in tuple(self.connections.values()):
            self.close(connection)
        self.really_close()
        self.gathered.close()
        self.epoll.close()

    def close(self, connection: Connection) -> None:
        """Gives up a connection, in whose place another may be made.

        Its descriptor stays taken until no event that is being served can mean it.
        """
        endpoint = connection.endpoint
        self.marks.forget(connection)
        if connection.gathered:
            connection.gathered = False
            self.gathered.drop(connection.fd)
        connection.leave()
        connection.endpoint.connecting -= connection.connecting
        connection.connecting = connection.probe = False
        del self.connections[connection.fd]
        endpoint.open -= 1
        endpoint.idle.pop(connection, None)
        self._closing.append(connection.socket)
        self.hungry.add(endpoint)

    def really_close(self) -> None:
        """Closes what was given up."""
        for each in self._closing:
            each.close()
        self._closing.clear()

    def _watch(self, connection: Connection) -> None:
        mask = select.EPOLLIN if connection.rest is None else select.EPOLLIN | select.EPOLLOUT
        if mask != connection.mask:
            connection.mask = mask
            self.epoll.modify(connection.fd, mask)

    def _acquit(self, endpoint: Endpoint) -> None:
        """The endpoint lives: what it lost was lost by itself."""
        for exchange, kind, words in endpoint.suspects:
            self.fail(endpoint.failed(exchange, kind, words))
        endpoint.suspects.clear()

    def _late(self, at_ns: int) -> None:
        """Something may be late at a time."""
        if at_ns < self.check_ns:
            self.check_ns = at_ns

    def _can_begin(self, endpoint: Endpoint) -> bool:
        if not (endpoint.again or endpoint.waiting):
            return False
        return bool(endpoint.idle) or (endpoint.open < self._most and endpoint.connecting < CONNECTING_AT_ONCE)

    def _begin(self, endpoint: Endpoint, exchange: Exchange) -> None:
        now = time.monotonic_ns()
        if not exchange.retried:
            self._late(self._timeouts.add(exchange, now))
        idle = endpoint.idle
        if idle and not exchange.retried:
            connection, _ = idle.popitem()
            if connection.since_ns + self._keep_alive_ns > now:
                connection.begin(exchange)
                self.send(connection)
                return
            self.close(connection)
        elif endpoint.open >= self._most:
            self.close(next(iter(idle)))
        self._open(endpoint, exchange)

    def _rest(self, connection: Connection) -> None:
        """A connection has nothing to do, and takes what waits."""
        connection.since_ns = time.monotonic_ns()
        self._late(connection.since_ns + self._keep_alive_ns)
        endpoint = connection.endpoint
        endpoint.idle[connection] = None
        self.feed(endpoint)

    def _open(self, endpoint: Endpoint, exchange: Exchange | None) -> None:
        """Makes a connection for a request, or to see whether the endpoint lives."""
        try:
            connection = Connection(endpoint)
        except OSError as error:
            self._failed_to_open(endpoint, exchange, error.errno or 0)
            return
        self.counters["connections_opened"] += 1
        endpoint.open += 1
        endpoint.connecting += 1
        self.connections[connection.fd] = connection
        connection.mask = select.EPOLLIN | select.EPOLLOUT
        self.epoll.register(connection.fd, connection.mask)
        if exchange is None:
            connection.probe = True
        else:
            connection.begin(exchange)
        self._late(self._connects.add(connection, time.monotonic_ns()))

    def _not_made(self, connection: Connection, error: int) -> None:
        exchange = connection.exchange
        self.close(connection)
        self._failed_to_open(connection.endpoint, exchange, error)

    def _failed_to_open(self, endpoint: Endpoint, exchange: Exchange | None, error: int) -> None:
        if error == errno.ECONNREFUSED and endpoint.try_next_address():
            self._open(endpoint, exchange)
            return
        words = _words(error, self._settings.connect_timeout_s)
        if error == errno.ECONNREFUSED or (exchange is None and error not in OUR_OWN):
            self._die(endpoint, words, () if exchange is None else (exchange,), error)
            return
        if exchange is None:
            self._acquit(endpoint)
        elif error == errno.ECONNRESET:  # it was in the queue of a listener that is gone, mostly
            self._suspect(endpoint, exchange, RESET, words)
        else:
            kind = TIMEOUT if error == errno.ETIMEDOUT else UNREACHABLE
            self.fail(endpoint.failed(exchange, kind, words))
        self.hungry.add(endpoint)

    def _die(self, endpoint: Endpoint, why: str, exchanges: Sequence[Exchange], error: int) -> None:
        """All that waits for the endpoint fails. What is under way may have been answered before: its end comes by
        itself where a process is gone, not where a machine is."""
        endpoint.dead = why
        for connection in [each for each in self.connections.values() if each.endpoint is endpoint]:
            if connection.connecting or (error != errno.ECONNREFUSED and connection.exchange is not None):
                exchanges = (*exchanges, *((connection.exchange,) if connection.exchange is not None else ()))
                self.close(connection)
        self.fail(*(endpoint.failed(each, REPLICA_DIED, why) for each in exchanges), *endpoint.failures())
        self.hungry.discard(endpoint)


def _words(error: int, connect_timeout_s: float) -> str:
    if error == errno.ECONNREFUSED:
        return "refuses connections"
    if error == errno.ETIMEDOUT:
        return f"takes no connection within {connect_timeout_s:g} s"
    return f"cannot be connected to: {os.strerror(error)}"
