"""A stand-in for the recorded trajectories and BFCL's questions, for machines that have not the real ones: made up.

It is marked as a stand-in in its files and by a file of its own, and whatever ran on it can never be submitted.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import orjson

from harness.benchmarks import standins
from harness.benchmarks.base import Made
from harness.benchmarks.qwen3_6_27b import tasks
from harness.benchmarks.qwen3_6_27b.bfcl import standin as bfcl
from harness.benchmarks.qwen3_6_27b.files import NAME, STAND_IN_KEY, TRAJECTORY_TABLE, path_of
from harness.benchmarks.qwen3_6_27b.rows import METADATA
from harness.errors import ConfigError
from harness.rules import TrajectoryRules

VERSION: Final = 2
"""Grows whenever the same seed makes other data."""
TRAJECTORIES: Final = 3
"""How many there are where nobody asks for another number."""

_README: Final = f"""# A stand-in for the data set of {NAME}

Made by `python -m harness make_dataset` from a seed (STAND_IN.json says which). It has the files and fields of the
benchmark's data set, and none of its content: tasks and questions are made up. Runs on it are demonstrations and can
never be submitted.
"""


def make_dataset(folder: Path, *, seed: int, rules: TrajectoryRules, rows: int | None = None) -> Made:
    """Makes the stand-in in ``folder`` (``<data>/qwen3.6-27b``): whole or not at all, the same for a seed.

    ``rows`` is how many trajectories it has, and how many of BFCL's questions at most, which without it are as many as
    the round's; fewer are the first of more. An equal one is left as it is, another stand-in is replaced, anything else
    is refused with ConfigError. Raises MissingError without disk space.
    """
    if rows is not None and rows < 1:
        raise ConfigError(f"a data set of {rows} rows", where="--rows", expected="at least 1")
    many = rows or TRAJECTORIES
    described = {"seed": seed, "version": VERSION, "trajectories": many, "questions": rows}

    def write(new: Path) -> standins.Written:
        path = path_of(new, rules.performance_data.value)
        with path.open("wb") as file:
            file.write(orjson.dumps({"_type": METADATA, STAND_IN_KEY: {"seed": seed, "trajectories": many}}) + b"\n")
            for number in range(many):
                file.writelines(orjson.dumps(row) + b"\n" for row in tasks.rows(seed, number))
        asked = bfcl.write(new, rules, seed=seed, rows=rows)
        return standins.Written((path, *asked.files), {TRAJECTORY_TABLE: many, **asked.rows})

    return standins.make(folder, described, _README, write)
