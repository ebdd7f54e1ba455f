"""Legs of trajectories over the scripted engine, each with real LoadGen in a worker of its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from harness.clients.loadgen.job import ChatsFile, LegJob, Outcome, Replay
from harness.clients.loadgen.launch import run_job
from harness.clients.loadgen.user_conf import write
from harness.engines.address import EngineAddress, lanes_each
from harness.engines.base import Sampling
from harness.engines.bodies import BodyStore
from harness.engines.group import EngineGroup, Member, start_group
from harness.engines.start import EngineSpec
from harness.events import Observer, ignore
from harness.ledger.samples import Int64, read_samples
from harness.ledger.turns import TURN_REPLIES, TURNS, TurnReply, read_turn_replies, read_turns
from harness.logs import DetailLog

MODEL = "qwen3.6-27b"
GREEDY = Sampling(0.0, 1.0, 0, 32, (), 1)


def store_of(path: Path, turns: Sequence[int], delays_ns: Sequence[int] | None = None) -> BodyStore:
    """Trajectories of so many turns each."""
    sessions = [session for session, count in enumerate(turns) for _ in range(count)]
    bodies = ({"messages": [{"role": "user", "content": f"{chat}"}]} for chat in range(len(sessions)))
    return BodyStore.write(path, bodies, sessions, tokens=[3] * len(sessions), delays_ns=delays_ns)


@contextmanager
def scripted(folder: Path, **settings: Any) -> Iterator[EngineGroup]:
    """A scripted engine; ``settings`` are its own."""
    members = [Member(EngineSpec("scripted", settings))]
    with start_group(members, log=folder / "engine.log", timeout_s=60, lanes=lanes_each(1)) as group:
        yield group


@dataclass(frozen=True)
class Ran:
    """What a leg left."""

    folder: Path
    outcome: Outcome

    @property
    def turns(self) -> Mapping[str, Int64]:
        return read_turns(self.folder / TURNS)

    @property
    def samples(self) -> Mapping[str, Int64]:
        return read_samples(self.folder / "samples.arrow")

    @property
    def replies(self) -> list[TurnReply]:
        return list(read_turn_replies(self.folder / TURN_REPLIES))

    @property
    def detail(self) -> DetailLog:
        return DetailLog.read(self.folder / "logs/mlperf_log_detail.txt")

    def states(self) -> list[list[int]]:
        """States of turns, by sample."""
        turns = self.turns
        return [turns["state"][turns["sample"] == sample].tolist() for sample in np.unique(turns["sample"])]


def job(
    folder: Path,
    engine: EngineGroup | EngineAddress,
    store: BodyStore,
    scenario: str,
    max_concurrency: int,
    **changes: Any,
) -> LegJob:
    """What the worker is told, with a user.conf that asks for short runs."""
    folder.mkdir()
    conf: dict[str, float] = {"target_qps": 50, "min_duration": 0, "min_query_count": 1} | changes.pop("conf", {})
    (folder / "user.conf").write_text(write(MODEL, scenario, conf))
    fields: dict[str, Any] = {
        "folder": str(folder),
        "data_dir": str(folder),
        "dataset_sha256": "ab" * 32,
        "round": "v6.1",
        "benchmark": MODEL,
        "table": "trajectories",
        "dataset": "x",
        "chats": ChatsFile.of(store.path),
        "rows": int(store.sessions.max()) + 1,
        "model": MODEL,
        "scenario": scenario,
        "mode": "PerformanceOnly",
        "audit": "",
        "engine": engine if isinstance(engine, EngineAddress) else engine.address,
        "sampling": GREEDY,
        "min_answer_tokens": 1,
        "watchdog_s": 20,
        "logged": "reply",
        "replay": Replay(max_concurrency=max_concurrency, tool_delays=False),
    }
    return LegJob(**fields | changes)


def run(asked: LegJob, observer: Observer = ignore) -> Ran:
    """Runs a leg to its end."""
    return Ran(Path(asked.folder), run_job(asked, "x", observer))
