"""The store of a table's chats: found where it was made before, else made, once, whoever else wants it too."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Final

from harness.benchmarks.base import Dataset
from harness.benchmarks.making import alone
from harness.benchmarks.qwen3_vl_235b_a22b import images, requests
from harness.benchmarks.qwen3_vl_235b_a22b.catalogue import Catalogue, Reader
from harness.benchmarks.qwen3_vl_235b_a22b.files import COLUMNS, REQUESTS_FOLDER
from harness.benchmarks.qwen3_vl_235b_a22b.prompts import Version, fingerprint, system_text
from harness.engines.bodies import MAGIC, BodyStore
from harness.errors import DatasetError, MissingError

Tell = Callable[[str], None]

PROCESSES_AT_MOST: Final = 16
"""More would wait for the one that writes; each takes some 150 MB."""
ROWS_A_PROCESS: Final = 2000
"""Fewer are not worth the second that a process takes to start."""
_SPARE_BYTES: Final = 64 << 20
_TELL_EVERY_S: Final = 10.0


def prepare(dataset: Dataset, folder: Path, version: Version, tell: Tell) -> Dataset:
    """The data set with its chats, below ``folder`` (the data set's own). They are made where they are not there.

    ``tell`` is given lines for people while that takes time. Raises DatasetError for a row that makes no chat;
    MissingError without Pillow, the tokenizer or disk space.
    """
    place = folder / REQUESTS_FOLDER / f"{dataset.table}-{dataset.rows}-{key(dataset, version)}.chats"
    if not _is_there(place, dataset.rows):
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            with alone(place, tell):
                if not _is_there(place, dataset.rows):
                    _make(dataset, place, version, tell)
        except OSError as error:
            raise MissingError(f"cannot write the requests: {error}", where=place) from error
    return replace(dataset, chats=place)


def key(dataset: Dataset, version: Version) -> str:
    """What names the store: it is another one when anything is other that its bytes depend on."""
    told = {
        "dataset": dataset.sha256,
        "prompt": fingerprint(version),
        "prompt version": version,
        "pillow": images.pillow_version(),
        "requests": requests.VERSION,
        "store": MAGIC.hex(),
    }
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()[:16]


def processes(rows: int) -> int:
    """How many processes make so many chats soonest."""
    return max(1, min(len(os.sched_getaffinity(0)), PROCESSES_AT_MOST, rows // ROWS_A_PROCESS))


def _is_there(place: Path, rows: int) -> bool:
    """Whether a whole store lies there. One that is damaged is made again."""
    if not place.exists():
        return False
    try:
        return len(BodyStore.open(place)) == rows
    except DatasetError:
        return False


def _make(dataset: Dataset, place: Path, version: Version, tell: Tell) -> None:
    table = dataset.files[0].path
    _check_room(table, place, dataset.rows)
    many = processes(dataset.rows)
    tell(f"making the requests of {dataset.name}: {dataset.rows:,} rows, {many} at a time")
    began = last = time.monotonic()

    def progress(done: int) -> None:
        nonlocal last
        if time.monotonic() - last >= _TELL_EVERY_S:
            last = time.monotonic()
            tell(f"requests: {done:,} of {dataset.rows:,}")

    requests.build(table, place, version=version, rows=dataset.rows, processes=many, progress=progress)
    tell(f"requests made in {time.monotonic() - began:.1f} s, {place.stat().st_size / 1e6:,.0f} MB: {place}")


def _check_room(table: Path, place: Path, rows: int) -> None:
    needed, free = expected_bytes(table, rows), shutil.disk_usage(place.parent).free
    if free < needed:
        raise MissingError(
            f"the requests need some {needed / 1e6:,.0f} MB, and {free / 1e6:,.0f} MB are free",
            where=place.parent,
            mend="make room, or name a data folder on a larger disk with --data_dir or HARNESS_DATA_DIR",
        )


def expected_bytes(table: Path, rows: int) -> int:
    """About how large the store of a table's first rows will be, by its first piece: text, picture, and the prompt."""
    catalogue = Catalogue.open(table)
    first = catalogue.pieces(rows)[:1]
    if not first:
        return _SPARE_BYTES
    found = Reader(catalogue, COLUMNS).read(first[0])
    mean = sum(len((text or "").encode()) for row in found for text in row) / len(found)
    return int((mean + len(system_text())) * rows * 1.1) + _SPARE_BYTES
