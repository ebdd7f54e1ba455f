"""The sample library that LoadGen loads and unloads: prompts of token ids, or chats in a store on disk."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import numpy as np

from harness import benchmarks
from harness.benchmarks.base import Dataset
from harness.clients.loadgen.job import LegJob
from harness.engines.base import Int64Array, PromptTable
from harness.engines.bodies import BodyStore
from harness.errors import DatasetError

_MEND = "leave it alone while legs run, and run again"


class Library(Protocol):
    """What a leg asks, by row of the data set."""

    @property
    def prompts(self) -> PromptTable:
        """Prompts of token ids; those of chats are empty."""

    @property
    def prompt_tokens(self) -> Int64Array:
        """Tokens of each row's prompt, int64."""

    def load(self, rows: Sequence[int]) -> None:
        """Has these rows in memory soon: LoadGen's load callback."""

    def unload(self, rows: Sequence[int]) -> None:
        """Needs these rows no longer: LoadGen's unload callback."""


class PromptLibrary:
    """Prompts in one array, which may be a memory map: reading them once is loading them. It goes with the process."""

    def __init__(self, prompts: PromptTable) -> None:
        self.prompts = prompts
        self.prompt_tokens = prompts.lengths

    def load(self, rows: Sequence[int]) -> None:
        """Reads each prompt."""
        for row in rows:
            self.prompts[row].max()

    def unload(self, rows: Sequence[int]) -> None:
        """Nothing is held."""


class ChatLibrary:
    """Chats in a store that the engine's processes map as this one does: none of them is in memory of its own."""

    def __init__(self, store: BodyStore) -> None:
        self._store = store
        self.prompts = PromptTable.empty(len(store))
        self.prompt_tokens = store.tokens

    def load(self, rows: Sequence[int]) -> None:
        """Has the system read them ahead."""
        self._store.will_need(rows)

    def unload(self, rows: Sequence[int]) -> None:
        """Gives their memory back."""
        self._store.release(rows)


class TrajectoryLibrary:
    """Trajectories in such a store: row i is the chats of session i.

    DatasetError where fewer of them are there than ``rows``.
    """

    def __init__(self, store: BodyStore, rows: int) -> None:
        self.store = store
        self.prompts = PromptTable.empty(rows)
        try:
            self.chats = [store.rows_of(row) for row in range(rows)]
        except IndexError as error:
            raise DatasetError(
                f"fewer trajectories than the {rows} that are to be asked: {error}",
                where=store.path,
                mend="make it again",
            ) from None
        self.prompt_tokens = np.array([store.tokens[chats.start : chats.stop].sum() for chats in self.chats], np.int64)

    def load(self, rows: Sequence[int]) -> None:
        """Has the system read all chats of these ahead."""
        self.store.will_need(self._chats(rows))

    def unload(self, rows: Sequence[int]) -> None:
        """Gives their memory back."""
        self.store.release(self._chats(rows))

    def _chats(self, rows: Sequence[int]) -> list[int]:
        return [chat for row in rows for chat in self.chats[row]]


def open_library(job: LegJob) -> PromptLibrary | ChatLibrary | TrajectoryLibrary:
    """What a job asks. DatasetError where it is not what the answers will be scored against."""
    if job.chats is None:
        return PromptLibrary(_dataset(job).prompts)
    store = _store(job)
    return ChatLibrary(store) if job.replay is None else TrajectoryLibrary(store, job.rows)


def _store(job: LegJob) -> BodyStore:
    """The chats that were made of the data set when the command began; they are not made, or read whole, again."""
    if job.chats is None:
        raise ValueError("a job without chats")
    path = Path(job.chats.path)
    if not path.is_file() or not job.chats.is_still(path):
        raise DatasetError(
            "the chats of the data set were changed since the command began",
            where=path,
            expected=f"the file of {job.chats.size} bytes that was there",
            mend=_MEND,
        )
    store = BodyStore.open(path)
    if len(store) < job.rows:
        raise DatasetError(f"{len(store)} chats where {job.rows} are to be asked", where=path, mend="make it again")
    return store


def _dataset(job: LegJob) -> Dataset:
    from harness import rules  # chats do not need them, and they take a quarter of a second to be made

    dataset = benchmarks.get(job.benchmark, rules.load(job.round)).dataset(Path(job.data_dir), job.table)
    if dataset.sha256 != job.dataset_sha256:
        raise DatasetError(
            "the data set was changed since the command began",
            where=dataset.files[0].path.parent,
            expected=f"the {job.table} table with sha256 {job.dataset_sha256}",
            mend=_MEND,
        )
    return dataset
