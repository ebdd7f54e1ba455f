"""What crosses between the harness and the process that one LoadGen run lives in: the job down, the outcome up."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, model_validator

from harness.benchmarks.base import Logged
from harness.engines.address import EngineAddress
from harness.engines.base import Sampling, TokenEvents, Workload
from harness.ledger.record import Counts, FailedSample, TurnCounts

JOB = "job.json"
OUTCOME = "outcome.json"
WORKER_LOG = "worker.log"

FAILED_MARKER = np.array([-1, -1], dtype=np.int32)
"""What a failed sample is completed with: no token has this id and no UTF-8 text these bytes, so the accuracy log shows
it for what it is.
"""
FAILED_DATA = FAILED_MARKER.tobytes()


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ChatsFile(_Strict):
    """A store of chats as it was when it was made or found: by size and time, for it may hold gigabytes."""

    path: str
    size: int
    mtime_ns: int

    @classmethod
    def of(cls, path: Path) -> ChatsFile:
        """The file as it is now."""
        stat = path.stat()
        return cls(path=str(path.absolute()), size=stat.st_size, mtime_ns=stat.st_mtime_ns)

    def is_still(self, path: Path) -> bool:
        """Whether the file is as it was."""
        stat = path.stat()
        return (stat.st_size, stat.st_mtime_ns) == (self.size, self.mtime_ns)


class Replay(_Strict):
    """How trajectories are asked: so many at once, and whether a turn waits as long as its tool took."""

    max_concurrency: Annotated[int, Field(ge=1)]
    tool_delays: bool


class LegJob(_Strict):
    """All that the worker needs to know. Paths are absolute: it works in a folder of its own.

    ``rows`` is the size of the sample library: the whole data set but in a short run. ``dataset_sha256`` is what the
    record vouches for: files may change between legs. ``table`` is the data set's, ``dataset`` what the engine calls
    it; ``chats`` are what is asked of it, None for prompts of token ids. ``model`` and ``scenario`` are LoadGen's.
    ``audit`` is the path of an audit.config, or "" for none. ``logged`` is what of a reply LoadGen is handed: its text,
    or all of its JSON. ``replay`` is given where a row is a trajectory, the chats of one session. ``inside`` is the
    spec of an engine whose core the worker is to have in its own process, in place of the one at ``engine``: of one
    that only waits for a server, and has one replica. Without ``progress`` the worker tells nothing while it runs.
    """

    folder: str
    data_dir: str
    dataset_sha256: str
    round: str
    benchmark: str
    table: str
    dataset: str
    chats: ChatsFile | None
    rows: Annotated[int, Field(ge=1)]
    model: str
    scenario: str
    mode: str
    audit: str
    engine: EngineAddress
    sampling: Sampling
    min_answer_tokens: int
    watchdog_s: Annotated[float, Field(gt=0)]
    logged: Logged = "content"
    replay: Replay | None = None
    inside: dict[str, Any] | None = None
    progress: bool = True

    @model_validator(mode="after")
    def _trajectories_are_of_chats(self) -> LegJob:
        if self.replay is not None and self.chats is None:
            raise ValueError("trajectories of prompts that are no chats")
        return self

    @property
    def tells_first_tokens(self) -> bool:
        """Whether LoadGen is told of first tokens: in Server, and of every trajectory."""
        return self.scenario == "Server" or self.replay is not None

    def workload(self) -> Workload:
        """What the leg's requests have in common.

        Where a reply is logged whole its server need not count tokens: nothing is judged by them.
        """
        return Workload(
            self.dataset,
            self.sampling,
            TokenEvents.FIRST if self.tells_first_tokens else TokenEvents.NONE,
            bodies="" if self.chats is None else self.chats.path,
            usage_optional=self.replay is not None or self.logged == "reply",
        )


class Outcome(_Strict):
    """How the run ended, as its worker saw it. ``error`` is None where StartTest returned by itself.

    ``failures`` are the first of them, ``failure_kinds`` counts all by kind. ``engine_died``: it broke because the
    engine did. ``engine_counters`` is what the engine counted during the run (retries, connections); empty where it did
    not say. ``turns`` are None where a sample is one request.
    """

    counts: Counts
    turns: TurnCounts | None = None
    failures: list[FailedSample]
    failure_kinds: dict[str, int] = Field(default_factory=dict)
    error: str | None
    exit_code: int
    engine_died: bool = False
    library_rows: int
    loaded_rows: int
    engine_counters: dict[str, int] = Field(default_factory=dict)
