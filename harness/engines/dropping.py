"""Taking requests that nobody waits for any more out of an engine's own queue."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Iterator
from typing import TypeAlias

from harness.engines.base import Requests

Line: TypeAlias = deque[tuple[Requests, Iterator[int]]]
"""Requests in the order in which they came, each lot with its places that were not begun."""


def leave(line: Line, numbers: Collection[int]) -> None:
    """Takes the requests of these numbers out of a line; the others keep their order."""
    for _ in range(len(line)):
        requests, places = line.popleft()
        left = places_without(requests, places, numbers)
        if left:
            line.append((requests, iter(left)))


def places_without(requests: Requests, places: Iterable[int], numbers: Collection[int]) -> list[int]:
    """Those of some places whose requests have none of these numbers."""
    return [place for place in places if requests.numbers[place] not in numbers]


def only(requests: Requests, places: list[int]) -> Requests:
    """The requests at these places."""
    return Requests(
        requests.workload,
        [requests.numbers[place] for place in places],
        [requests.rows[place] for place in places],
        requests.prompts,
        () if requests.workload.bodies else [requests.prompt_rows[place] for place in places],
    )
