"""The engine core over HTTP: one thread, an epoll set of non-blocking sockets, requests in columns.

A request waits as a row of the columns it came in until its endpoint has a connection for it. While an answer streams
in, its pieces are only kept, once the first token was seen; they are read when the answer is whole.
"""

from __future__ import annotations

import dataclasses
import os
import select
import time
from collections.abc import Collection
from pathlib import Path
from typing import Final

from harness.engines.base import PROMPTS_DIFFER, EngineInfo, Event, Requests, Workload
from harness.engines.bodies import BodyStore
from harness.engines.http.chat import Reply
from harness.engines.http.connection import Connection, Exchange
from harness.engines.http.course import Course
from harness.engines.http.deadlines import NEVER_NS
from harness.engines.http.endpoint import Waiting
from harness.engines.http.ids import IdsReader
from harness.engines.http.intake import Intake, Taken
from harness.engines.http.outbox import Outbox
from harness.engines.http.pool import Pool
from harness.engines.http.problems import (
    BAD_ANSWER,
    RESET,
    TOO_LONG,
    TRUNCATED,
    WRONG_MODEL,
    BadAnswer,
    http_status,
    quoted,
)
from harness.engines.http.response import BadFraming, Response
from harness.engines.http.settings import HttpSettings, allow_descriptors
from harness.engines.http.template import Head
from harness.errors import ConfigError, MissingError

READY_AT_ONCE: Final = 256
"""So many connections are served in a step; others are ready still in the next."""
OK: Final = 200
REFUSALS: Final = (400, 413, 422)
NOT_FOUND: Final = 404


class HttpCore:
    """An :class:`~harness.engines.base.EngineCore` whose work is done by HTTP servers.

    Raises ConfigError for settings that cannot be meant here, MissingError for a host without an address or an API key
    that is not in the environment.
    """

    def __init__(self, settings: HttpSettings) -> None:
        allow_descriptors(settings.connections * len(settings.endpoints))
        key = _api_key(settings.api_key_env)
        self._settings = settings
        self._heads = [Head(address.authority, address.prefix, key) for address in settings.endpoints]
        self._outbox = Outbox()
        self._pool = Pool(settings, self._outbox)
        self._intake = Intake(self._pool.marks)
        self._put_off = False
        """Whether what was gathered waited for first tokens to be told."""
        self._courses: dict[Workload, Course] = {}
        self._stores: dict[str, BodyStore] = {}
        names = tuple(address.name for address in settings.endpoints)
        self._info = dataclasses.replace(settings.info, kind="http", replicas=names)

    def info(self) -> EngineInfo:
        """What the servers said of themselves; the replicas are the endpoints' names."""
        return self._info

    def counters(self) -> dict[str, int]:
        """Requests, retries, connections opened, bytes sent and received, failures, since it was made."""
        return dict(self._pool.counters)

    def gauges(self) -> None:
        """Nothing: how full its servers are they tell themselves (:mod:`~harness.engines.metrics`)."""

    def descriptor(self) -> int:
        """The epoll set's: it is readable when one of the connections is ready."""
        return self._pool.epoll.fileno()

    def submit(self, requests: Requests) -> None:
        """Begins requests as far as the endpoint has connections; the rest waits.

        Raises DatasetError for a workload whose chats cannot be opened, ConfigError for a replica that is not there.
        """
        if not len(requests):
            return
        pool = self._pool
        course = self._course(requests.workload)
        endpoint = pool.endpoints[requests.workload.replica]
        pool.counters["requests"] += len(requests)
        endpoint.waiting.append(Waiting(requests, course))
        pool.feed(endpoint)
        pool.really_close()

    def step(self) -> list[Event]:
        """Serves the connections that are ready, ends what is late, begins what waits.

        First tokens are told before streams that go on are looked at, once; then it is their turn.
        """
        self._serve_ready()
        now = time.monotonic_ns()
        self._put_off = not self._put_off and bool(self._outbox) and self._pool.gathered.due(now)
        if not self._put_off:
            self._serve_gathered(now)
        return self._outbox.events() if self._outbox else []

    def _serve_ready(self) -> None:
        """Serves the connections of which everything is told at once."""
        pool = self._pool
        for fd, mask in pool.epoll.poll(0, READY_AT_ONCE):
            connection = pool.connections.get(fd)
            if connection is None:
                continue  # given up while those before it were served, or the set of those that are gathered
            if connection.connecting:
                pool.connected(connection)
                continue
            if mask & select.EPOLLOUT and connection.rest is not None:
                pool.send(connection)
            if mask != select.EPOLLOUT:
                self._receive(connection)

    def _serve_gathered(self, now: int) -> None:
        """Serves the others, where it is time, and sees what is late and what can be begun."""
        pool = self._pool
        if now >= pool.marks.next_ns:
            pool.marks.look(now)
        self._intake.share(len(pool.connections))
        for fd, _ in pool.gathered.ready(now):
            connection = pool.connections.get(fd)
            if connection is not None:
                self._receive(connection)
        if now >= pool.check_ns:
            pool.expire(now)
        for endpoint in tuple(pool.hungry):
            pool.feed(endpoint)
        pool.really_close()

    def wait_s(self) -> float | None:
        """0 where something is to be told or begun, else the time until something is late."""
        if self._outbox or self._put_off or self._pool.hungry:
            return 0.0
        due, look = self._pool.check_ns, self._pool.gathered.next_ns()
        due = min(due, self._pool.marks.next_ns, NEVER_NS if look is None else look)
        return None if due == NEVER_NS else max(0.0, (due - time.monotonic_ns()) / 1e9)

    def drop(self, numbers: Collection[int]) -> None:
        """Closes the connection of each of these requests, so that its server stops, and forgets those that wait."""
        self._pool.drop(numbers)

    def cancel(self) -> None:
        """Closes the connections on which something is under way, so that the servers stop, and forgets all."""
        self._pool.cancel()
        self._put_off = False
        self._courses.clear()
        self._outbox.clear()

    def close(self) -> None:
        """Closes all connections; nothing may be asked of it afterwards."""
        self.cancel()
        self._pool.shut()

    def _course(self, workload: Workload) -> Course:
        course = self._courses.get(workload)
        if course is None:
            if not 0 <= workload.replica < len(self._heads):
                raise ConfigError(f"replica {workload.replica} of {len(self._heads)} endpoints")
            store = self._store(workload.bodies) if workload.bodies else None
            course = Course(self._settings, self._heads[workload.replica], workload, store)
            self._courses[workload] = course
        return course

    def _store(self, path: str) -> BodyStore:
        if path not in self._stores:
            self._stores[path] = BodyStore.open(Path(path))
        return self._stores[path]

    def _receive(self, connection: Connection) -> None:
        """Takes a piece, and reads it with those that were kept where it is time."""
        taken = self._intake.take(connection)
        if taken is not None:
            self._received(connection, taken)

    def _received(self, connection: Connection, taken: Taken) -> None:
        """Reads what came; the connection may be at its end, or was reset."""
        data, ended, reset = taken
        exchange, response = connection.exchange, connection.response
        if exchange is None or response is None:
            self._pool.unasked(connection)
            return
        self._pool.counters["bytes_received"] += len(data)
        now = time.monotonic_ns()
        try:
            if data:
                response.feed(data)
            if ended and not reset:
                response.end()
            if response.pieces and response.status == OK and exchange.course.streams:
                self._read(connection, exchange, response, now)
            if ended:
                exchange.reader.catch_up()
        except (BadFraming, BadAnswer) as error:
            self._give_up(connection, exchange, error)
            return
        if response.complete:
            self._complete(connection, exchange, response, now)
        elif ended:
            self._lost(connection, exchange, response, reset)

    def _read(self, connection: Connection, exchange: Exchange, response: Response, now: int) -> None:
        """Reads what came of a stream."""
        reader, course, body = exchange.reader, exchange.course, response.take()
        if course.tells_all and isinstance(reader, IdsReader):
            tokens = course.told(reader.feed_and_tell(body))
            self._outbox.tokens(exchange.number, exchange.told, tokens, now)
            exchange.told += len(tokens)
        else:
            reader.feed(body)
        if exchange.first_ns or reader.first is None:
            return
        exchange.first_ns = now
        connection.later = response.chunked and not course.tells_all
        if connection.later and not response.complete:
            self._pool.gather(connection, course)
        if course.tells_first and not response.complete:
            self._outbox.first(exchange.number, reader.first, now)

    def _complete(self, connection: Connection, exchange: Exchange, response: Response, now: int) -> None:
        """The response is whole: its connection takes the next request, then it is read."""
        status, body, reader = response.status, response.take(), exchange.reader
        self._pool.done(connection)
        if status != OK:
            self._refused(exchange, status, body)
            return
        try:
            answer = reader.finish() if exchange.course.streams else reader.whole(body)
        except BadAnswer as error:
            self._pool.fail(exchange.endpoint.failed(exchange, error.kind, error.what))
            return
        exchange.over = True
        if isinstance(answer, Reply) and exchange.course.differs(exchange.row, answer.prompt_tokens):
            self._pool.counters[PROMPTS_DIFFER] += 1
        self._outbox.answer(exchange.number, answer, exchange.first_ns or now, now)

    def _refused(self, exchange: Exchange, status: int, body: bytes) -> None:
        kind = http_status(status)
        if status in REFUSALS and exchange.course.too_long(body):
            kind = TOO_LONG
        elif status == NOT_FOUND and b"model" in body.lower():
            kind = WRONG_MODEL
        self._pool.fail(exchange.endpoint.failed(exchange, kind, f"answered with status {status}: {quoted(body)}"))

    def _give_up(self, connection: Connection, exchange: Exchange, error: BadFraming | BadAnswer) -> None:
        endpoint = exchange.endpoint
        self._pool.close(connection)
        if isinstance(error, BadAnswer):
            self._pool.fail(endpoint.failed(exchange, error.kind, error.what))
        else:
            self._pool.fail(endpoint.failed(exchange, BAD_ANSWER, f"said what is no HTTP: {error}"))

    def _lost(self, connection: Connection, exchange: Exchange, response: Response, reset: str) -> None:
        """The connection is gone before the response was whole."""
        pool = self._pool
        if response.status not in (0, OK):
            pool.close(connection)
            self._refused(exchange, response.status, response.take())
        elif not response.begun and connection.reused and not exchange.retried:
            pool.again(connection, exchange)
        elif reset or not response.begun:
            words = f"reset the connection ({reset})" if reset else "closed the connection without an answer"
            pool.lost(connection, exchange, RESET, words)
        else:
            pool.lost(connection, exchange, TRUNCATED, "closed the connection in the middle of its answer")


def _api_key(variable: str) -> str | None:
    if not variable:
        return None
    key = os.environ.get(variable)
    if not key:
        raise MissingError(f"the servers' API key is not in the environment variable {variable}")
    if not (key.isascii() and key.isprintable()):
        raise ConfigError(f"the servers' API key in {variable} has characters that no header may have")
    return key
