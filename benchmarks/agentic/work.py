"""What a contestant is asked to do, and what it says of having done it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Final

from harness.engines.base import Sampling, TokenEvents, Workload

MODEL: Final = "recorded"
SAMPLING: Final = Sampling(0.0, 1.0, 0, 1_024, (), 42)


@dataclass(frozen=True, slots=True)
class Work:
    """``passes`` over all trajectories of a store of chats, ``concurrency`` of them at once, to a server at ``port``.

    ``folder`` is for what a contestant writes, ``data`` the file that the chats were made of.
    """

    store: str
    data: str
    folder: str
    port: int
    concurrency: int
    passes: int

    def to_json(self) -> str:
        """For a command line."""
        return json.dumps(asdict(self))

    @classmethod
    def parse(cls, text: str) -> Work:
        """From :meth:`to_json`."""
        return cls(**json.loads(text))

    def workload(self) -> Workload:
        """As a leg asks it: streamed, for the sake of first tokens."""
        return Workload("trajectories", SAMPLING, TokenEvents.FIRST, bodies=self.store, usage_optional=True)


@dataclass(frozen=True, slots=True)
class Took:
    """Turns answered and failed; wall time and CPU time of all of a contestant's processes while they were asked.

    ``first_ms`` and ``whole_ms`` are means over the turns, from when each was asked; ``peak_mb`` is the most memory
    that the processes had, mapped files and all, added up; None where nobody looked.
    """

    turns: int
    failed: int
    wall_s: float
    cpu_s: float
    first_ms: float
    whole_ms: float
    peak_mb: float | None

    def to_json(self) -> str:
        """For a pipe."""
        return json.dumps(asdict(self))

    @classmethod
    def parse(cls, text: str) -> Took:
        """From :meth:`to_json`."""
        return cls(**json.loads(text))
