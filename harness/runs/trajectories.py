"""What a leg of trajectories has beside others: how they are asked, how many turns they have, prompts of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from harness.benchmarks.base import Benchmark, Dataset, forget_run
from harness.clients.loadgen.job import Replay
from harness.config.models import Agentic
from harness.engines.bodies import BodyStore
from harness.ledger import RunRecord, write_record
from harness.runs.plan import PlannedLeg

if TYPE_CHECKING:
    from harness.benchmarks.qwen3_6_27b.store import Library


def asking_of(leg: PlannedLeg) -> Agentic:
    """How the leg's benchmark asks trajectories, by configuration or where that says nothing."""
    return leg.config.agentic or Agentic()


def replay_of(leg: PlannedLeg, dataset: Dataset) -> Replay | None:
    """How the leg's client asks them; None where a row is one request."""
    if not dataset.trajectories:
        return None
    asking = asking_of(leg)
    return Replay(max_concurrency=asking.max_concurrency, tool_delays=asking.tool_delays)


def library_of(leg: PlannedLeg, dataset: Dataset) -> Library:
    """The trajectories that are the rows of a data set. DatasetError where its file was changed since it was read."""
    from harness.benchmarks.qwen3_6_27b import tables

    return tables.library_of(dataset, asking_of(leg))


def turns_of(leg: PlannedLeg, dataset: Dataset, rows: int) -> int | None:
    """Requests of the first rows, each asked once; None where a row is no trajectory."""
    if not dataset.trajectories:
        return None
    if dataset.chats is None:  # they are made for each run, of the same trajectories
        library = library_of(leg, dataset)
        return sum(len(library.turns(row)) for row in range(rows))
    return int(np.searchsorted(BodyStore.open(dataset.chats).sessions, rows))


def trajectories_of(leg: PlannedLeg, rows: int) -> int:
    """How many different trajectories the first rows of a library are: all of them once come before the repeats.

    ``rows`` are those of the whole library; ValueError where they are no whole repeats.
    """
    repeats = asking_of(leg).repeats
    if rows % repeats:
        raise ValueError(f"{rows} rows are no {repeats} repeats of some trajectories")
    return rows // repeats


@contextmanager
def own_chats(
    benchmark: Benchmark, dataset: Dataset, folder: Path, record: RunRecord, tell: Callable[[str], None]
) -> Iterator[tuple[Dataset, RunRecord]]:
    """The data set as this run alone asks it, and the record, written, that says by which salt.

    What was made for it is gone when the block ends, however it ends: its salt and the data set make it again, and it
    may be gigabytes. Raises DatasetError and MissingError.
    """
    asked = benchmark.prepare_run(dataset, folder, tell)
    try:
        if asked.salt != record.dataset.salt:
            record = record.model_copy(update={"dataset": record.dataset.model_copy(update={"salt": asked.salt})})
            write_record(folder, record)
        yield asked, record
    finally:
        forget_run(asked, folder)
