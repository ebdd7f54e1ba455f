"""What a contestant is asked to do, and what it says of having done it."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class Load:
    """``answers`` of ``tokens`` tokens, ``ids`` of them in a chunk; ``streams`` at once; prompts of ``prompt`` ids.

    Before that each stream is asked for an answer of one token, which is not measured.
    """

    port: int
    streams: int
    answers: int
    tokens: int
    ids: int
    prompt: int

    def to_json(self) -> str:
        """For a command line."""
        return json.dumps(asdict(self))

    @classmethod
    def parse(cls, text: str) -> Load:
        """From :meth:`to_json`."""
        return cls(**json.loads(text))


@dataclass(frozen=True)
class Flight:
    """``requests`` for ``tokens`` tokens to servers at these ports, ``connections`` to each; streamed or whole."""

    ports: tuple[int, ...]
    processes: int
    connections: int
    requests: int
    tokens: int
    prompt: int
    streamed: bool

    def to_json(self) -> str:
        """For a command line."""
        return json.dumps(asdict(self))

    @classmethod
    def parse(cls, text: str) -> Flight:
        """From :meth:`to_json`."""
        content: dict[str, Any] = json.loads(text)
        return cls(**content | {"ports": tuple(content["ports"])})


@dataclass
class Took:
    """CPU seconds of the processes that speak HTTP (``client``) and of the one that drives them, and wall time."""

    answers: int
    client_s: float
    driver_s: float
    wall_s: float
    notes: dict[str, float] = field(default_factory=dict)

    def to_json(self) -> str:
        """For a pipe."""
        return json.dumps(asdict(self))

    @classmethod
    def parse(cls, text: str) -> Took:
        """From :meth:`to_json`."""
        return cls(**json.loads(text))


def cpu_s(pid: int) -> float:
    """CPU seconds of a process, all of its threads: its clock of the kind that clock_getcpuclockid(3) makes."""
    return time.clock_gettime_ns((~pid << 3) | 2) / 1e9


def percentile(values: Sequence[float], share: float) -> float:
    """The value below which a share of them lies."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
