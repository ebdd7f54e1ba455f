"""The data set of recorded trajectories, checked against the round."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from harness.benchmarks.base import DataFile, file_sha256
from harness.benchmarks.qwen3_6_27b.files import FETCH, STAND_IN_KEY, find, verified
from harness.benchmarks.qwen3_6_27b.rows import read_rows
from harness.benchmarks.qwen3_6_27b.trajectories import Trajectory, assemble
from harness.errors import DatasetError
from harness.rules.benchmark import PerformanceData, TrajectoryRules


@dataclass(frozen=True, slots=True)
class TrajectorySet:
    """The trajectories of one file.

    ``stand_in`` tells a file made by the harness from a recorded one, ``whole`` is False where trajectories were left
    away: a run on either may never be filed. ``unread`` are fields of the file that mean nothing, as ``role.field``.
    """

    trajectories: tuple[Trajectory, ...]
    file: DataFile
    stand_in: bool
    whole: bool
    unread: tuple[str, ...]

    @property
    def turns(self) -> int:
        """Requests of one pass."""
        return sum(len(trajectory.turns) for trajectory in self.trajectories)

    def head(self, trajectories: int) -> TrajectorySet:
        """The first trajectories alone, for short runs; itself where that is all. ValueError where there are fewer."""
        if not 1 <= trajectories <= len(self.trajectories):
            raise ValueError(f"the first {trajectories} of {len(self.trajectories)} trajectories")
        whole = self.whole and trajectories == len(self.trajectories)
        return TrajectorySet(self.trajectories[:trajectories], self.file, self.stand_in, whole, self.unread)


def read_file(path: Path) -> TrajectorySet:
    """The trajectories of any file of the format. Raises DatasetError for what is not of it."""
    found = assemble(read_rows(path), path)
    stand_in = any(STAND_IN_KEY in said for said in found.metadata)
    return TrajectorySet(found.all, DataFile(path, file_sha256(path)), stand_in, not stand_in, found.unread)


def read(folder: Path, rules: TrajectoryRules) -> TrajectorySet:
    """The round's trajectories, or a stand-in for them, below the data set's folder (``<data>/qwen3.6-27b``).

    Raises DatasetError where the file is missing, another than the round's, or not of the format.
    """
    wanted = rules.performance_data.value
    found = read_file(find(folder, wanted))
    if not found.stand_in:
        verified(found.file.path, wanted)
        _check_counts(found, wanted)
    return found


def _check_counts(found: TrajectorySet, wanted: PerformanceData) -> None:
    there = (len(found.trajectories), found.turns)
    if there != (wanted.trajectories, wanted.turns):
        raise DatasetError(
            f"there are {there[0]} trajectories of {there[1]} turns in all",
            where=found.file.path,
            expected=f"{wanted.trajectories} of {wanted.turns}, which the round says of this very file",
            mend=FETCH,
        )
