"""The trajectories: the recorded ones where they are, made-up ones where not; and their chats in a store."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Final

from harness.benchmarks.qwen3_6_27b import standin
from harness.benchmarks.qwen3_6_27b.dataset import TrajectorySet, read_file
from harness.benchmarks.qwen3_6_27b.files import path_of
from harness.benchmarks.qwen3_6_27b.requests import EncodedTrajectory
from harness.benchmarks.qwen3_6_27b.sampling import rules_of
from harness.engines.bodies import BodyStore
from harness.rules import load

REAL: Final = Path(__file__).parents[3] / "shared" / "data" / "agentic_coding_2.5h.jsonl"
ROUND: Final = "v6.1"


def trajectories(path: Path | None, folder: Path) -> TrajectorySet:
    """Those of ``path``; where it is None, the recorded ones beside the repository, or a stand-in in ``folder``."""
    if path is None and not REAL.exists():
        rules = rules_of(load(ROUND))
        place = Path(tempfile.mkdtemp(dir=folder)) / "stand-in"
        standin.make_dataset(place, seed=0, rules=rules)
        path = path_of(place, rules.performance_data.value)
    return read_file(path or REAL)


def store_of(source: TrajectorySet, path: Path) -> BodyStore:
    """The chats of all turns, a session for each trajectory."""
    all_ = source.trajectories
    sessions = [number for number, each in enumerate(all_) for _ in each.turns]
    names = tuple(each.id for each in all_)
    bodies = (chat for each in all_ for chat in EncodedTrajectory.of(each, {}).chats(each.system))
    return BodyStore.write(path, bodies, sessions, session_names=names)
