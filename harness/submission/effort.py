"""The reasoning effort of the prompts that a run asked, read from the prompts: no log tells it."""

from __future__ import annotations

import functools
from pathlib import Path

import numpy as np

from harness import benchmarks
from harness.benchmarks.base import Benchmark
from harness.engines.base import Int64Array, PromptTable
from harness.env import data_dir
from harness.errors import MissingError, UnknownName
from harness.ledger.record import RunRecord
from harness.rules import load

EFFORTS = ("low", "medium", "high")
"""What a system text of the harmony format may ask for."""


def reasoning_effort(record: RunRecord) -> str | None:
    """The effort of the prompts of a run; several, joined by ``and``, where they differ.

    None where the data set is not here, or is another, or where its prompts ask for none.
    """
    if load(record.round).benchmark(record.id.benchmark).reasoning_effort is None:
        return None
    table = record.dataset.name.rpartition("/")[2]
    return _of_table(data_dir(), record.round, record.id.benchmark, table, record.dataset.sha256)


@functools.cache
def _of_table(folder: Path, round_: str, name: str, table: str, sha256: str) -> str | None:
    benchmark = benchmarks.get(name, load(round_))
    try:
        dataset = benchmark.dataset(folder, table)
        return effort_of(dataset.prompts, benchmark) if dataset.sha256 == sha256 else None
    except (MissingError, UnknownName):  # neither the data set nor its tokenizer is needed to lay out a tree
        return None


def effort_of(prompts: PromptTable, benchmark: Benchmark) -> str | None:
    """The effort that the prompts ask for: what the first words ``Reasoning: <effort>`` of each say."""
    ends = prompts.starts + prompts.lengths
    beyond = np.iinfo(np.int64).max
    firsts = []
    for effort in EFFORTS:
        found = _places(prompts, benchmark.encode(f"Reasoning: {effort}"))
        first = np.append(found, beyond)[np.searchsorted(found, prompts.starts)]
        firsts.append(np.where(first < ends, first, beyond))
    table = np.stack(firsts)
    said = {EFFORTS[n] for n in table.argmin(axis=0)[table.min(axis=0) < beyond]}
    return " and ".join(effort for effort in EFFORTS if effort in said) or None


def _places(prompts: PromptTable, ids: list[int]) -> Int64Array:
    """Where in the flat array the ids stand one after the other."""
    last = len(prompts.flat) - len(ids) + 1
    if last <= 0:
        return np.empty(0, np.int64)
    places = np.flatnonzero(prompts.flat[:last] == ids[0])
    for offset, token in enumerate(ids[1:], 1):
        places = places[prompts.flat[places + offset] == token]
    return places.astype(np.int64)
