"""Which replica a request goes to. Pure: requests in, places out; no sockets.

A *lane* is one way to a replica: (client process, replica). Where there are more processes than replicas, several lanes
lead to one replica, and its load is that of all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from harness.engines.base import Int16Array, Int64Array

NO_SESSION: Final = -1


@dataclass(slots=True)
class _Load:
    """What was given to a place and what of it has ended: requests, and tokens of their prompts.

    Two sums each, so that two threads may write one each.
    """

    given: int = 0
    given_tokens: int = 0
    ended: int = 0
    ended_tokens: int = 0
    last_asked: int = 0


class LeastOutstanding:
    """Gives each request to the replica with the fewest outstanding tokens; of equal ones to the one asked longest ago.

    How long an answer will be is guessed as the mean of those that came, at most the output cap. ``ended`` may be
    called from one thread and the rest from another.
    """

    def __init__(self, replica_of_lane: Sequence[int]) -> None:
        self._replica_of_lane = tuple(replica_of_lane)
        self._replicas = [_Load() for _ in range(max(replica_of_lane) + 1)]
        self._lanes_of: list[list[int]] = [[] for _ in self._replicas]
        for lane, replica in enumerate(replica_of_lane):
            self._lanes_of[replica].append(lane)
        self._running: dict[int, tuple[int, int]] = {}
        """Lane and prompt tokens of outstanding requests."""
        self._asked = 0
        self._answers = 0
        self._answer_tokens = 0

    def choose(self, cap: int) -> int:
        """The replica for the next request, whose answer has at most ``cap`` tokens."""
        answer = min(cap, self._answer_tokens / self._answers) if self._answers else cap
        best, least, asked = -1, 0.0, 0
        for replica, load in enumerate(self._replicas):
            tokens = load.given_tokens - load.ended_tokens + (load.given - load.ended) * answer
            if best < 0 or tokens < least or (tokens == least and load.last_asked < asked):
                best, least, asked = replica, tokens, load.last_asked
        return best

    def give(self, number: int, prompt_tokens: int, replica: int) -> int:
        """The lane for a request that goes to this replica, whose load it is from now on."""
        lanes = self._lanes_of[replica]
        lane = lanes[0] if len(lanes) == 1 else _in_turn(lanes)
        self._running[number] = lane, prompt_tokens
        self._asked += 1
        load = self._replicas[replica]
        load.given += 1
        load.given_tokens += prompt_tokens
        load.last_asked = self._asked
        return lane

    def ended(self, number: int, answer_tokens: int) -> None:
        """A request has its answer, of so many tokens, or failed (0). Of those that were not given nothing is known."""
        lane, prompt_tokens = self._running.pop(number, (-1, 0))
        if lane < 0:
            return
        load = self._replicas[self._replica_of_lane[lane]]
        load.ended += 1
        load.ended_tokens += prompt_tokens
        if answer_tokens:
            self._answers += 1
            self._answer_tokens += answer_tokens

    def outstanding(self) -> list[int]:
        """How many requests each replica has, of those that were placed."""
        return [load.given - load.ended for load in self._replicas]


class Sessions:
    """Keeps the requests of a session with one replica, which may have what came before in its cache.

    ``session_of_row`` is -1 for rows of no session. A new session goes where the fewest tokens are outstanding.
    """

    def __init__(self, session_of_row: Int64Array, others: LeastOutstanding) -> None:
        self._session_of_row = session_of_row
        self._others = others
        self._replica_of: dict[int, int] = {}

    def choose(self, row: int, cap: int) -> int:
        """The replica for the next request."""
        session = int(self._session_of_row[row])
        if session == NO_SESSION:
            return self._others.choose(cap)
        replica = self._replica_of.get(session)
        if replica is None:
            replica = self._replica_of[session] = self._others.choose(cap)
        return replica


def balanced_split(prompt_tokens: Int64Array, lanes: int) -> Int16Array:
    """The lane of each of n requests, so that lanes differ by one request at most and by few prompt tokens; int16.

    From the longest prompt to the shortest they are dealt out to and fro, so no lane always gets the longer of a round.
    """
    n = len(prompt_tokens)
    dealt = np.arange(n) % (2 * lanes)
    dealt = np.minimum(dealt, 2 * lanes - 1 - dealt).astype(np.int16)
    lane_of = np.empty(n, np.int16)
    lane_of[np.argsort(-prompt_tokens, kind="stable")] = dealt
    return lane_of


def _in_turn(lanes: list[int]) -> int:
    """Of the lanes to one replica the next: they differ only in which process does the work."""
    lanes.append(lanes.pop(0))
    return lanes[-1]
