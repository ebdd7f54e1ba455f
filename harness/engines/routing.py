"""Which replica a request goes to. Pure: requests in, places out; no sockets.

A *lane* is one way to a replica: (client process, replica). Where there are more processes than replicas, several lanes
lead to one replica, and its load is that of all of them.
"""

from __future__ import annotations

from collections import Counter
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

    @property
    def replicas(self) -> int:
        """How many there are."""
        return len(self._replicas)

    def replica_of(self, lane: int) -> int:
        """Where a lane leads."""
        return self._replica_of_lane[lane]

    def choose(self, cap: int, among: Sequence[int] | None = None) -> int:
        """The replica for the next request, whose answer has at most ``cap`` tokens; one of ``among``, where given."""
        answer = min(cap, self._answer_tokens / self._answers) if self._answers else cap
        best, least, asked = -1, 0.0, 0
        for replica in range(len(self._replicas)) if among is None else among:
            load = self._replicas[replica]
            tokens = load.given_tokens - load.ended_tokens + (load.given - load.ended) * answer
            if best < 0 or tokens < least or (tokens == least and load.last_asked < asked):
                best, least, asked = replica, tokens, load.last_asked
        return best

    def give(self, number: int, prompt_tokens: int, replica: int) -> int:
        """The lane for a request that goes to this replica, whose load it is from now on."""
        lanes = self._lanes_of[replica]
        lane = lanes[0] if len(lanes) == 1 else _in_turn(lanes)
        self.give_to(number, prompt_tokens, lane)
        return lane

    def give_to(self, number: int, prompt_tokens: int, lane: int) -> None:
        """A request goes by this lane."""
        self._running[number] = lane, prompt_tokens
        self._asked += 1
        load = self._replicas[self._replica_of_lane[lane]]
        load.given += 1
        load.given_tokens += prompt_tokens
        load.last_asked = self._asked

    def ended(self, number: int, answer_tokens: int) -> None:
        """A request has its answer, of so many tokens (NOT_TOLD where nobody counted), or failed (0).

        Of those that were not given nothing is known.
        """
        lane, prompt_tokens = self._running.pop(number, (-1, 0))
        if lane < 0:
            return
        load = self._replicas[self._replica_of_lane[lane]]
        load.ended += 1
        load.ended_tokens += prompt_tokens
        if answer_tokens > 0:
            self._answers += 1
            self._answer_tokens += answer_tokens

    def outstanding(self) -> list[int]:
        """How many requests each replica has, of those that were placed."""
        return [load.given - load.ended for load in self._replicas]


class Sessions:
    """Keeps the requests of a session on one lane, to the replica that may have what came before in its cache.

    ``session_of_row`` is -1 for rows of no session. A session is under way from its first request until the answer to
    its last row, or until one of its requests failed; between two of them nothing of it need be outstanding. So a new
    one goes where the fewest are under way, and of such replicas to that with the fewest outstanding tokens. What is
    kept is one lane for each session there is. ``ended`` may be called from one thread and the rest from another.
    """

    def __init__(self, session_of_row: Int64Array, least: LeastOutstanding) -> None:
        self._session_of_row = session_of_row
        self._least = least
        self._last_row = {session: row for row, session in enumerate(session_of_row.tolist())}
        self._lane_of: dict[int, int] = {}
        self._under_way: dict[int, int] = {}
        """The replica of each session that is."""
        self._running: dict[int, int] = {}
        """The row of each outstanding request that is of a session."""

    def give(self, number: int, row: int, prompt_tokens: int, cap: int) -> int:
        """The lane for a request."""
        least, session = self._least, int(self._session_of_row[row])
        if session == NO_SESSION:
            return least.give(number, prompt_tokens, least.choose(cap))
        lane = self._lane_of.get(session)
        if lane is None:
            lane = self._lane_of[session] = least.give(number, prompt_tokens, least.choose(cap, self._fewest()))
        else:
            least.give_to(number, prompt_tokens, lane)
        self._under_way[session] = least.replica_of(lane)
        self._running[number] = row
        return lane

    def ended(self, number: int, failed: bool) -> None:
        """A request has its answer, or failed. Of those that were not given nothing is known."""
        row = self._running.pop(number, None)
        if row is None:
            return
        session = int(self._session_of_row[row])
        if failed or row == self._last_row[session]:
            self._under_way.pop(session, None)

    def under_way(self) -> list[int]:
        """How many sessions each replica has."""
        counts = Counter(tuple(self._under_way.values()))
        return [counts[replica] for replica in range(self._least.replicas)]

    def _fewest(self) -> list[int]:
        counts = self.under_way()
        return [replica for replica, count in enumerate(counts) if count == min(counts)]


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
