"""Trajectories in place of requests: an engine that is asked for whole ones, over an engine that is asked for turns.

LoadGen's sample is a trajectory, the engine's request one turn of it. LoadGen's thread only leaves trajectories here;
all that the engine is asked and tells passes through the thread that polls, so that the next turn goes out on the same
thread, and at once, that heard the end of the one before.

At a thousand turns a second each microsecond here is a thousandth of a core: a turn has no object of its own, and all
turns that are due together go out as one submission.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Sequence
from queue import SimpleQueue

import numpy as np

from harness.clients.loadgen.failures import SAYS_NOTHING, another_kind, not_outstanding
from harness.clients.loadgen.job import Replay
from harness.clients.loadgen.turn_order import Trajectory, TurnOrder
from harness.clients.loadgen.turn_record import FrozenTurns, TurnRecord
from harness.engines.base import (
    NOT_TOLD,
    Engine,
    EngineInfo,
    Event,
    Failure,
    Int16Array,
    Int64Array,
    PromptTable,
    Replies,
    Requests,
    Tokens,
    Workload,
)
from harness.engines.bodies import BodyStore
from harness.engines.replies import EMPTY, wholes

_NO_REPLICA = -1


class TrajectoryEngine:
    """An :class:`~harness.engines.base.Engine` whose requests are trajectories: row i is the chats of session i.

    At most ``replay.max_concurrency`` are under way, one that waits for its tool among them. A trajectory's first token
    is its first turn's; it is told with the reply to its last turn, and with the tokens of all of them
    (:data:`~harness.engines.base.NOT_TOLD` where the server did not count each). A turn that fails, or says nothing,
    fails its trajectory, and those after it are not asked. Every turn is noted in ``record``.
    """

    def __init__(self, engine: Engine, store: BodyStore, replay: Replay, record: TurnRecord) -> None:
        self._engine = engine
        self._store = store
        self.record = record
        """Every turn's notes."""
        self._order = TurnOrder(replay.max_concurrency, store.delays_ns.tolist() if replay.tool_delays else None)
        self._inbox: SimpleQueue[Requests] = SimpleQueue()
        self._out: dict[int, Trajectory] = {}
        """Whose turn it is that the engine has, by the number of its request."""
        self._samples = itertools.count()
        self._numbers: list[int] = []
        """LoadGen's number of each sample."""
        self._prompts = PromptTable.empty(len(store))
        self._workload: Workload | None = None
        self._last_progress_ns = time.monotonic_ns()
        self.wake = engine.wake
        self.close = engine.close
        self.counters = engine.counters
        """All three are the engine's."""

    def info(self) -> EngineInfo:
        """What the engine says of itself."""
        return self._engine.info()

    def stalled_s(self) -> float:
        """Seconds since the engine told anything while it had turns to answer; 0 where it has none (tools run)."""
        if not self._out:
            return 0.0
        return (time.monotonic_ns() - self._last_progress_ns) / 1e9

    # -- LoadGen's thread ----------------------------------------------------------------------------------------------

    def submit(self, requests: Requests) -> None:
        """Leaves trajectories for the thread that polls."""
        self._inbox.put(requests)
        self.wake()

    # -- the polling thread --------------------------------------------------------------------------------------------

    def poll(self, timeout_s: float) -> list[Event]:
        """Asks for the turns that are due and hears what came; often nothing of it ends a trajectory.

        See :class:`~harness.engines.base.Engine`. RunBroke for an answer to something that was not asked.
        """
        self._take()
        self._ask()
        events = self._engine.poll(self._order.wait_s(timeout_s, time.monotonic_ns()))
        if not events:
            return events
        told: list[Event] = []
        for event in events:
            if isinstance(event, Replies):
                self._hear_replies(event, told)
            elif isinstance(event, Tokens):
                self._hear_first_tokens(event, told)
            elif isinstance(event, Failure):
                self._fail(event.number, self._claim(event.number), event.kind, event.message, told)
            else:
                raise another_kind(event)
        self._last_progress_ns = time.monotonic_ns()
        self._ask()
        return told

    def replicas_of(self, numbers: Int64Array) -> Int16Array:
        """Which replica had the first turn of each trajectory; -1 where none was asked."""
        replicas = np.full(len(numbers), _NO_REPLICA, np.int16)
        samples, requests = self.record.first_numbers()
        if len(samples):
            begun = np.array(self._numbers, np.int64)[samples]
            order = np.argsort(begun)
            places = np.minimum(np.searchsorted(begun, numbers, sorter=order), len(begun) - 1)
            found = order[places]
            there = begun[found] == numbers
            replicas[there] = self._engine.replicas_of(requests[found[there]])
        return replicas

    def turns(self, rows: Int64Array, failed: Int64Array) -> FrozenTurns:
        """Every turn of the samples that LoadGen issued; see :meth:`TurnRecord.frozen`. For when nobody polls."""
        return self.record.frozen(rows, failed, self._store.rows_of)

    def fail_the_rest(self, kind: str, message: str) -> None:
        """The engine has gone: the turns that it has will not be answered. For when nobody polls any more."""
        for number, trajectory in self._out.items():
            self.record.failed(number, trajectory, kind, message)
        self._out = {}

    def _take(self) -> None:
        while not self._inbox.empty():
            requests = self._inbox.get_nowait()
            self._workload = requests.workload
            for number, row in zip(requests.numbers, requests.rows, strict=True):
                chats = self._store.rows_of(row)
                self._numbers.append(number)
                self._order.add(Trajectory(number, next(self._samples), row, chats.start, chats.stop, chats.start))

    def _ask(self) -> None:
        now = time.monotonic_ns()
        due = self._order.due(now)
        if not due or self._workload is None:
            return
        if not self._out:
            self._last_progress_ns = now  # the engine was not slow, it was idle
        issued, out = self.record.issued, self._out
        numbers, chats = [], []
        for trajectory in due:
            number = issued(trajectory, now)
            out[number] = trajectory  # before it can be answered
            numbers.append(number)
            chats.append(trajectory.chat)
        self._engine.submit(Requests(self._workload, numbers, chats, self._prompts, chats))

    def _hear_replies(self, event: Replies, told: list[Event]) -> None:
        ended: list[tuple[Trajectory, bytes, int, int]] = []
        prompts, cached = _or_not_told(event.prompt_tokens, event), _or_not_told(event.cached_tokens, event)
        for i, (number, reply) in enumerate(zip(event.numbers, wholes(event), strict=True)):
            trajectory = self._claim(number)
            if not reply:
                self._fail(number, trajectory, EMPTY, SAYS_NOTHING, told)
                continue
            first_ns, done_ns, tokens, finish = event.first_ns[i], event.done_ns[i], event.tokens[i], event.finish[i]
            note = first_ns, done_ns, tokens, prompts[i], cached[i], finish
            self.record.answered(number, trajectory, reply, *note)
            if trajectory.chat == trajectory.begin:
                trajectory.first_ns = first_ns
            trajectory.tokens = NOT_TOLD if NOT_TOLD in (tokens, trajectory.tokens) else trajectory.tokens + tokens
            if self._order.answered(trajectory, done_ns):
                ended.append((trajectory, reply, done_ns, finish))
        if ended:
            told.append(_last_replies(ended))

    def _hear_first_tokens(self, event: Tokens, told: list[Event]) -> None:
        """Upwards only that of a first turn is one."""
        numbers = []
        for number, position in zip(event.numbers, event.positions, strict=True):
            trajectory = self._out.get(number)
            if position or trajectory is None:
                continue
            self.record.first_token(number, event.at_ns)
            if trajectory.chat == trajectory.begin:
                numbers.append(trajectory.number)
        if numbers:
            ids = np.full(len(numbers), NOT_TOLD, np.int32)
            told.append(Tokens(numbers, (0,) * len(numbers), ids, event.at_ns))

    def _fail(self, number: int, trajectory: Trajectory, kind: str, message: str, told: list[Event]) -> None:
        self.record.failed(number, trajectory, kind, message)
        self._order.failed(trajectory)
        turns = trajectory.end - trajectory.begin
        words = f"turn {trajectory.turn + 1} of {turns} (chat {trajectory.chat}): {message}"
        told.append(Failure(trajectory.number, kind, words))

    def _claim(self, number: int) -> Trajectory:
        trajectory = self._out.pop(number, None)
        if trajectory is None:
            raise not_outstanding(number)
        return trajectory


def _or_not_told(column: Sequence[int], event: Replies) -> Sequence[int]:
    return column if len(column) else (NOT_TOLD,) * len(event)


def _last_replies(ended: list[tuple[Trajectory, bytes, int, int]]) -> Replies:
    """The replies of trajectories: each its last turn's, but for the first token and the tokens."""
    trajectories = [trajectory for trajectory, *_ in ended]
    return Replies(
        numbers=[trajectory.number for trajectory in trajectories],
        data=b"".join(reply for _, reply, *_ in ended),
        ends=list(itertools.accumulate(len(reply) for _, reply, *_ in ended)),
        tokens=[trajectory.tokens for trajectory in trajectories],
        first_ns=[trajectory.first_ns for trajectory in trajectories],
        done_ns=[done_ns for *_, done_ns, _ in ended],
        finish=[finish for *_, finish in ended],
    )
