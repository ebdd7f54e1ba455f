"""The two tables that legs ask: trajectories, each in many repeats, and BFCL's questions; and their chats on disk."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import orjson

from harness.benchmarks.base import DataFile, Dataset
from harness.benchmarks.qwen3_6_27b import store
from harness.benchmarks.qwen3_6_27b.bfcl import requests, table
from harness.benchmarks.qwen3_6_27b.bfcl.table import Table
from harness.benchmarks.qwen3_6_27b.dataset import TrajectorySet, read, read_file
from harness.benchmarks.qwen3_6_27b.files import NAME, REQUESTS_FOLDER, TRAJECTORY_TABLE
from harness.benchmarks.qwen3_6_27b.inline import domain
from harness.benchmarks.qwen3_6_27b.salts import Salts
from harness.benchmarks.qwen3_6_27b.store import Library
from harness.config.models import Agentic
from harness.engines.base import PromptTable
from harness.engines.bodies import MAGIC, BodyStore
from harness.errors import ConfigError, DatasetError
from harness.rules import TrajectoryRules

Tell = Callable[[str], None]

TRAJECTORIES: Final = TRAJECTORY_TABLE
BFCL: Final = table.TABLE
OWN_CHATS: Final = "requests.chats"
"""The chats that one run alone asks, in its folder."""
_VERSION: Final = 1
"""Grows whenever the same questions make other chats."""


def trajectories(folder: Path, rules: TrajectoryRules, agentic: Agentic) -> Dataset:
    """All repeats of the trajectories below the data set's folder, a row each. Raises DatasetError."""
    source = read(folder, rules)
    rows = agentic.repeats * len(source.trajectories)
    return Dataset(
        name=f"{NAME}/{TRAJECTORIES}",
        table=TRAJECTORIES,
        prompts=PromptTable.empty(rows),
        subsets=tuple(domain(each) for each in source.trajectories) * agentic.repeats,
        ground_truth=(None,) * rows,
        files=(source.file,),
        stand_in=source.stand_in,
        whole=source.whole,
        trajectories=True,
    )


def questions(folder: Path, rules: TrajectoryRules) -> Dataset:
    """BFCL's questions, a row each; made of the package where they are not there yet.

    Raises DatasetError where they are not the round's, MissingError where they cannot be made.
    """
    asked = table.prepare(folder, rules)
    return Dataset(
        name=f"{NAME}/{BFCL}",
        table=BFCL,
        prompts=PromptTable.empty(len(asked)),
        subsets=tuple(row.category for row in asked.rows),
        ground_truth=(None,) * len(asked),
        files=(DataFile(folder / table.NAME, asked.sha256),),
        stand_in=asked.stand_in,
        whole=asked.whole,
    )


def table_of(dataset: Dataset, rules: TrajectoryRules) -> Table:
    """The questions that are the rows of a data set. DatasetError where its file was changed since it was read."""
    file = dataset.files[0]
    found = table.read(file.path.parent, rules)
    _check_same(file, found.sha256)
    return found.head(dataset.rows)


def source_of(dataset: Dataset) -> TrajectorySet:
    """The trajectories that the rows of a data set repeat. DatasetError where its file was changed since."""
    file = dataset.files[0]
    found = read_file(file.path)
    _check_same(file, found.file.sha256)
    return found


def library_of(dataset: Dataset, agentic: Agentic) -> Library:
    """What the rows of a data set of trajectories are: as many repeats as they need, salted as it is asked.

    ``library.trajectory(row)`` is what a row replays, ``library.turns(row)`` its chats. Without ``dataset.salt`` one
    that salts by run is as one without salts. DatasetError where the data set's file was changed since it was read.
    """
    source = source_of(dataset)
    repeats = max(1, -(-dataset.rows // len(source.trajectories)))
    return Library(source, repeats, _salts(agentic, dataset.salt), more_of(agentic))


def more_of(agentic: Agentic) -> Mapping[str, Any]:
    """The fields that go with every chat."""
    return {"chat_template_kwargs": agentic.chat_template_kwargs} if agentic.chat_template_kwargs else {}


def prepared(dataset: Dataset, rules: TrajectoryRules, agentic: Agentic, folder: Path, tell: Tell) -> Dataset:
    """The data set with its chats, below ``folder`` (the data set's own); itself where each run makes its own.

    Raises DatasetError, and MissingError without disk space.
    """
    if not dataset.trajectories:
        return replace(dataset, chats=_questions_store(dataset, rules, agentic, folder, tell).path)
    if agentic.salt == "run":
        return dataset
    return replace(dataset, chats=store.prepare(library_of(dataset, agentic), folder, tell).path)


def prepared_for_run(dataset: Dataset, agentic: Agentic, salt: int, folder: Path, tell: Tell) -> Dataset:
    """The trajectories as one run alone asks them, salted by its number, their chats in ``folder``.

    Raises DatasetError, and MissingError without disk space.
    """
    salted = replace(dataset, salt=salt)
    place = folder / OWN_CHATS
    with store.writing(place):
        return replace(salted, chats=store.build(library_of(salted, agentic), place, tell).path)


def _salts(agentic: Agentic, salt: int | None) -> Salts | None:
    if agentic.salt == "upstream":
        return Salts()
    if agentic.salt is None and salt is not None:
        raise ConfigError("a run of prompts without salts has one", expected="no salt", where="agentic.salt")
    return None if salt is None else Salts(salt)


def _questions_store(dataset: Dataset, rules: TrajectoryRules, agentic: Agentic, folder: Path, tell: Tell) -> BodyStore:
    more = more_of(agentic)
    told = {"table": dataset.files[0].sha256, "more": more, "requests": _VERSION, "store": MAGIC.hex()}
    key = hashlib.sha256(orjson.dumps(told, option=orjson.OPT_SORT_KEYS)).hexdigest()[:16]
    place = folder / REQUESTS_FOLDER / f"{BFCL}-{dataset.rows}-{key}.chats"

    def make(place: Path) -> BodyStore:
        return BodyStore.write(place, requests.bodies(table_of(dataset, rules), more))

    return store.kept(place, dataset.rows, tell, make)


def _check_same(file: DataFile, sha256: str) -> None:
    if file.sha256 != sha256:
        raise DatasetError(
            "the data set was changed since it was read",
            where=file.path,
            expected=f"sha256 {file.sha256}",
            mend="leave it alone while legs run, and run again",
        )
