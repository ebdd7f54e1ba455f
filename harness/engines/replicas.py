"""Several engine processes, or several replicas behind them, as one engine: requests spread, answers brought together.

What it takes for one request of many a second is a few microseconds of Python: a place is chosen among a handful, the
request goes out in the caller's thread, and one poll waits for all sockets.
"""

from __future__ import annotations

import dataclasses
import struct
import time
from array import array
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np

from harness.engines.address import EngineAddress, together
from harness.engines.base import (
    Answers,
    EngineInfo,
    Event,
    Failure,
    Int16Array,
    Int64Array,
    Replies,
    Requests,
    Workload,
)
from harness.engines.connection import Connection
from harness.engines.remote import RemoteEngine
from harness.engines.routing import LeastOutstanding, Sessions, balanced_split
from harness.engines.waiting import Questions, Waiter
from harness.errors import EngineDied

SPLIT_FROM: Final = 256
"""So many requests at once are split by columns; fewer are placed one by one."""
_pack_given: Final = struct.Struct("=2q").pack


def connect(address: EngineAddress, *, timeout_s: float = 30.0) -> RemoteEngine | ReplicasEngine:
    """A client of the engine at an address. It serves one at a time. EngineDied where it does not answer in time."""
    if address.simple:
        return RemoteEngine(Path(address.sockets[0]), log=Path(address.logs[0]), timeout_s=timeout_s)
    return ReplicasEngine(address, timeout_s=timeout_s)


class ReplicasEngine:
    """An :class:`~harness.engines.base.Engine` over lanes. One that dies ends it, once all that came before is told."""

    def __init__(self, address: EngineAddress, *, timeout_s: float = 30.0) -> None:
        """Connects to all and hears what they are. EngineDied where one does not answer in time, RunBroke where they
        do not agree.
        """
        self._lanes = address.lanes
        self._connections: list[Connection] = []
        self._least = LeastOutstanding([lane.replica for lane in self._lanes])
        self._sessions: dict[str, Sessions | None] = {}
        self._with_sessions: tuple[Sessions, ...] = ()
        self._of_lane: dict[Workload, list[Workload]] = {}
        self._last: tuple[Workload, list[Workload]] | None = None
        self._given = array("q")
        self._given_many: list[tuple[Int64Array, Int16Array]] = []
        self._held: list[Event] = []
        self._died: EngineDied | None = None
        try:
            for path, log in zip(address.sockets, address.logs, strict=True):
                self._connections.append(Connection(Path(path), log=Path(log), timeout_s=timeout_s))
            self._waiter = Waiter(self._connections)
        except BaseException:
            self._close_connections()
            raise
        self.wake = self._waiter.wake
        """Makes a waiting ``poll`` return."""
        self._questions = Questions(self._waiter, self._keep)
        try:
            self._info = together(self._hello(timeout_s), address.replicas)
        except BaseException:
            self.close()
            raise

    def info(self) -> EngineInfo:
        """What all of them are together."""
        return self._info

    def submit(self, requests: Requests) -> None:
        """Spreads requests over the replicas; see :class:`~harness.engines.base.Engine`.

        A few go where the fewest tokens are outstanding, or where their session is; many are split evenly.
        """
        sessions = self._sessions_of(requests.workload)
        if len(requests) >= SPLIT_FROM and sessions is None:
            self._split(requests)
        elif len(requests) == 1:
            self._submit_one(requests, sessions)
        else:
            self._submit_few(requests, sessions)

    def poll(self, timeout_s: float) -> list[Event]:
        """What came since the last call; see :class:`~harness.engines.base.Engine`."""
        if self._held:
            held, self._held = self._held, []
            return held
        deadline = time.monotonic() + timeout_s
        while self._died is None:
            readable, woken = self._waiter.wait(max(0.0, deadline - time.monotonic()))
            events: list[Event] = []
            for connection in readable:
                events += self._receive(connection)
            if events or woken or time.monotonic() >= deadline:
                return events
        raise self._died

    def replicas_of(self, numbers: Int64Array) -> Int16Array:
        """Which replica each request went to; -1 for one that was never submitted."""
        given, given_many = np.frombuffer(self._given.tobytes(), np.int64).reshape(-1, 2), tuple(self._given_many)
        whose = np.concatenate([given[:, 0], *(many for many, _ in given_many)])
        replicas = np.concatenate([given[:, 1].astype(np.int16), *(them for _, them in given_many)])
        if not len(whose):
            return np.full(len(numbers), -1, np.int16)
        order = np.argsort(whose, kind="stable")
        places = np.searchsorted(whose, numbers, side="right", sorter=order) - 1  # of a number used twice, the last use
        found = order[np.maximum(places, 0)]
        return np.where(whose[found] == numbers, replicas[found], np.int16(-1)).astype(np.int16)

    def counters(self, timeout_s: float) -> dict[str, int]:
        """What all that are there counted together; see :class:`~harness.engines.base.Engine`."""
        total: Counter[str] = Counter()
        for connection in self._connections:
            total.update(self._questions.counters(connection, timeout_s))
        return dict(total)

    def close(self) -> None:
        """Lets go of all; outstanding requests are forgotten."""
        self._close_connections()
        self._waiter.close()

    # -- the submitting thread ---------------------------------------------------------------------------------------

    def _submit_one(self, requests: Requests, sessions: Sessions | None) -> None:
        lane = self._place(requests, 0, sessions)
        workload = self._workload(requests.workload, lane)
        one = Requests(workload, requests.numbers, requests.rows, requests.prompts, requests.prompt_rows)
        if self._connections[self._lanes[lane].process].submit(one):
            self.wake()

    def _submit_few(self, requests: Requests, sessions: Sessions | None) -> None:
        lanes = np.fromiter((self._place(requests, i, sessions) for i in range(len(requests))), np.int16)
        for lane in np.unique(lanes).tolist():
            part = self._part(requests, np.flatnonzero(lanes == lane), lane)
            self._connections[self._lanes[lane].process].submit(part)
        self.wake()  # whichever has something waiting for room

    def _split(self, requests: Requests) -> None:
        """Nothing of it is counted as load: such a query is all there is."""
        rows = np.asarray(requests.prompt_rows, np.int64)
        lengths = np.zeros(len(requests), np.int64) if requests.workload.bodies else requests.prompts.lengths[rows]
        lanes = balanced_split(lengths, len(self._lanes))
        replicas = np.array([lane.replica for lane in self._lanes], np.int16)[lanes]
        self._given_many.append((np.asarray(requests.numbers, np.int64), replicas))
        order = np.argsort(lanes, kind="stable")
        ends = np.cumsum(np.bincount(lanes, minlength=len(self._lanes))).tolist()
        parts: list[list[Requests]] = [[] for _ in self._connections]
        for lane, (begin, end) in enumerate(zip([0, *ends[:-1]], ends, strict=True)):
            parts[self._lanes[lane].process].append(self._part(requests, order[begin:end], lane))
        for connection, its in zip(self._connections, parts, strict=True):
            connection.submit_in_turn(its)
        self.wake()

    def _part(self, requests: Requests, which: Int64Array, lane: int) -> Requests:
        """Some of the requests, for a lane."""
        numbers, rows = _some(requests.numbers, which), _some(requests.rows, which)
        prompt_rows = () if requests.workload.bodies else _some(requests.prompt_rows, which)
        return Requests(self._workload(requests.workload, lane), numbers, rows, requests.prompts, prompt_rows)

    def _place(self, requests: Requests, i: int, sessions: Sessions | None) -> int:
        number, workload = requests.numbers[i], requests.workload
        cap = workload.sampling.max_new_tokens
        prompt_tokens = 0 if workload.bodies else int(requests.prompts.lengths[requests.prompt_rows[i]])
        if sessions is None:  # noted before it can be answered
            lane = self._least.give(number, prompt_tokens, self._least.choose(cap))
        else:
            lane = sessions.give(number, requests.rows[i], prompt_tokens, cap)
        self._given.frombytes(_pack_given(number, self._lanes[lane].replica))
        return lane

    def _workload(self, workload: Workload, lane: int) -> Workload:
        """The workload as the lane's process is told of it."""
        if self._last is None or self._last[0] is not workload:
            of_lane = self._of_lane.get(workload)
            if of_lane is None:
                of_lane = [dataclasses.replace(workload, replica=lane.asked_as) for lane in self._lanes]
                self._of_lane[workload] = of_lane
            self._last = workload, of_lane
        return self._last[1][lane]

    def _sessions_of(self, workload: Workload) -> Sessions | None:
        """Who keeps sessions together; None where the workload's requests are of none."""
        if not workload.bodies:
            return None
        if workload.bodies not in self._sessions:
            from harness.engines.bodies import BodyStore

            store = BodyStore.open(Path(workload.bodies))
            some = bool(len(store)) and int(store.sessions.max()) >= 0
            found = Sessions(np.array(store.sessions), self._least) if some else None
            self._with_sessions += () if found is None else (found,)
            self._sessions[workload.bodies] = found
        return self._sessions[workload.bodies]

    # -- the polling thread ------------------------------------------------------------------------------------------

    def _receive(self, connection: Connection) -> list[Event]:
        """What is there; that it is gone is kept until all that came is told."""
        try:
            events = connection.receive()
        except EngineDied as error:
            self._waiter.forget(connection)
            self._died = self._died or error
            return []
        for event in events:
            self._account(event)
        if connection.lost is not None and self._died is None:
            self._died = self._replica_died(connection, connection.lost)
        return events

    def _account(self, event: Event) -> None:
        ended = self._ended
        if isinstance(event, Answers):
            if len(event.ends) == 1:
                ended(event.numbers[0], event.ends[0])
                return
            begin = 0
            for number, end in zip(event.numbers, event.ends, strict=True):
                ended(number, end - begin)
                begin = end
        elif isinstance(event, Replies):
            for number, tokens in zip(event.numbers, event.tokens, strict=True):
                ended(number, tokens)
        elif isinstance(event, Failure):
            ended(event.number, 0, failed=True)

    def _ended(self, number: int, tokens: int, failed: bool = False) -> None:
        self._least.ended(number, tokens)
        for sessions in self._with_sessions:
            sessions.ended(number, failed)

    def _replica_died(self, connection: Connection, lost: Failure) -> EngineDied:
        (replica,) = self.replicas_of(np.array([lost.number], np.int64)).tolist()
        return EngineDied(f"replica {self._info.replicas[replica]} died: {lost.message}", where=connection.log)

    def _keep(self, connection: Connection) -> None:
        self._held += self._receive(connection)

    def _hello(self, timeout_s: float) -> list[EngineInfo]:
        infos = [self._questions.hello(connection, timeout_s) for connection in self._connections]
        if self._died is not None:
            raise self._died
        for i, connection in enumerate(self._connections):
            connection.name = f"process {i} of {connection.name}"
        return [info for info in infos if info is not None]

    def _close_connections(self) -> None:
        for connection in self._connections:
            connection.close()


def _some(column: Sequence[int], which: Int64Array) -> array[int]:
    return array("q", np.asarray(column, np.int64)[which].tobytes())
