"""A stand-in for the catalogue in the mlcommons client's files and columns, for machines that have not the real one.

Its pictures come with the package, its products are made up. It is marked as a stand-in in every parquet file and by a
file of its own, and whatever ran on it can never be submitted.
"""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from harness.benchmarks import standins
from harness.benchmarks.base import Made
from harness.benchmarks.qwen3_vl_235b_a22b import images, pictures
from harness.benchmarks.qwen3_vl_235b_a22b.files import (
    CATEGORIES,
    DESCRIPTION,
    FORMAT,
    IMAGE,
    STAND_IN_KEY,
    TITLE,
    TRUE_BRAND,
    TRUE_CATEGORY,
    TRUE_SECONDHAND,
    TableSource,
    tables,
)
from harness.benchmarks.qwen3_vl_235b_a22b.parquet_file import write_table
from harness.benchmarks.qwen3_vl_235b_a22b.products import Product, product
from harness.errors import ConfigError
from harness.rules import ImageRules

VERSION: Final = 1
"""Grows whenever the same seed makes other data."""

_README = """# A stand-in for the data set of qwen3-vl-235b-a22b

Made by `python -m harness make_dataset` from a seed (STAND_IN.json says which). It has the files and columns that the
mlcommons client makes of the benchmark's data set, and none of its content: the products are made up, and sixteen small
pictures under CC0 are shared by all of them. Runs on it are demonstrations and can never be submitted.
"""


def make_dataset(folder: Path, *, seed: int, rules: ImageRules, rows: int | None = None) -> Made:
    """Makes the stand-in in ``folder`` (``<data>/qwen3-vl-235b-a22b``): whole or not at all, the same for a seed.

    Each table has the round's rows, or at most ``rows``. An equal one is left as it is, another stand-in is replaced,
    anything else is refused with ConfigError. Raises MissingError without Pillow or disk space.
    """
    if rows is not None and rows < 1:
        raise ConfigError(f"a data set of {rows} rows", where="--rows", expected="at least 1")
    wanted = tables(rules)
    counts = {table.table: min(table.source.rows, rows or table.source.rows) for table in wanted}
    described = {"seed": seed, "version": VERSION, "counts": counts, "pillow": images.pillow_version()}

    def write(new: Path) -> standins.Written:
        files = []
        for table in wanted:
            path = table.plain(new)
            path.parent.mkdir(parents=True)
            made = _rows(seed, table, counts[table.table])
            write_table(path, made, {STAND_IN_KEY: json.dumps(described).encode()})
            files.append(path)
        return standins.Written(tuple(files), counts)

    return standins.make(folder, described, _README, write)


def _rows(seed: int, table: TableSource, rows: int) -> Iterator[Mapping[str, str]]:
    rng = random.Random(f"{seed}/{table.table}")  # noqa: S311 - products, not secrets
    sent = {name: images.round_trip(images.opened(pictures.load(name), name), name) for name in pictures.NAMES}
    encoded = {name: (kind, base64.b64encode(content).decode("ascii")) for name, (kind, content) in sent.items()}
    for number in range(rows):
        made = product(rng, number)
        yield as_row(made, *encoded[made.picture])


def as_row(made: Product, kind: str, in_base64: str) -> dict[str, Any]:
    """A product as a row of the parquet."""
    return {
        TITLE: made.title,
        DESCRIPTION: made.description,
        IMAGE: in_base64,
        FORMAT: kind,
        CATEGORIES: made.categories_json,
        TRUE_CATEGORY: made.category,
        TRUE_BRAND: made.brand,
        TRUE_SECONDHAND: json.dumps(made.is_secondhand),
    }
