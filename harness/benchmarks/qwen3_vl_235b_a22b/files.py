"""Where the catalogue's files lie and which columns they have: those that the mlcommons client makes.

Source: mlcommons/endpoints ``dataset_manager/predefined/shopify_product_catalogue/__init__.py``. The tables' paths are
that client's too, so that it reads the very files that the harness reads.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from harness.errors import UnknownName
from harness.rules import ImageRules
from harness.rules.benchmark import DatasetSource

NAME: Final = "qwen3-vl-235b-a22b"

CATALOGUE: Final = "catalogue"
CATALOGUE_8K: Final = "catalogue-8k"
TABLES: Final[Mapping[str, str]] = {CATALOGUE: "default", CATALOGUE_8K: "Interactive"}
"""The tables, and the keys of the rules' ``dataset_sources`` that say where each comes from."""
CLIENT_IDS: Final[Mapping[str, str]] = {
    CATALOGUE: "shopify_product_catalogue",
    CATALOGUE_8K: "shopify_product_catalogue_8k",
}
"""What the mlcommons client calls them."""
CLIENT_CACHE: Final = "dataset_cache"
"""The folder in which that client keeps what it made, where nobody told it another."""

TITLE: Final = "product_title"
DESCRIPTION: Final = "product_description"
IMAGE: Final = "product_image_base64"
FORMAT: Final = "product_image_format"
CATEGORIES: Final = "potential_product_categories"
TRUE_CATEGORY: Final = "ground_truth_category"
TRUE_BRAND: Final = "ground_truth_brand"
TRUE_SECONDHAND: Final = "ground_truth_is_secondhand"
COLUMNS: Final = (
    TITLE,
    DESCRIPTION,
    IMAGE,
    FORMAT,
    CATEGORIES,
    TRUE_CATEGORY,
    TRUE_BRAND,
    TRUE_SECONDHAND,
)
ROWS_IN_GROUP: Final = 256
"""Rows of a row group in the files made here: what one process reads at a time, some 30 MB of real pictures."""

STAND_IN_KEY: Final = b"harness.stand_in"
"""The key of the parquet schema's metadata that marks a table made by the harness."""
REQUESTS_FOLDER: Final = "requests"


@dataclass(frozen=True, slots=True)
class TableSource:
    """Where a table comes from under a round's rules, and where it may lie."""

    table: str
    source: DatasetSource

    @classmethod
    def of(cls, rules: ImageRules, table: str) -> TableSource:
        """UnknownName where the round has no such table."""
        there = {name: key for name, key in TABLES.items() if key in rules.dataset_sources}
        if table not in there:
            raise UnknownName("table", table, there, where=f"the data set of {NAME}")
        return cls(table, rules.dataset_sources[there[table]].value)

    @property
    def splits(self) -> str:
        """The splits as the hub and the client name several of them, e.g. ``train+test``."""
        return "+".join(self.source.splits)

    @property
    def relative(self) -> Path:
        """The file below the client's folder of data sets."""
        client_id = CLIENT_IDS[self.table]
        return Path(client_id, self.splits, f"{client_id}_{self.splits}.parquet")

    def fetched(self, folder: Path) -> Path:
        """Where ``fetch_dataset`` puts it: below the revision, so that no other one is ever taken for it."""
        return folder / self.source.revision / self.relative

    def plain(self, folder: Path) -> Path:
        """Where a stand-in lies, or what a person put there."""
        return folder / self.relative

    def candidates(self, folder: Path) -> tuple[Path, ...]:
        """Where it is looked for, in this order: fetched, put there, the client's cache as a whole."""
        return (self.fetched(folder), self.plain(folder), folder / CLIENT_CACHE / self.relative)


def tables(rules: ImageRules) -> tuple[TableSource, ...]:
    """The tables of a round."""
    return tuple(TableSource.of(rules, name) for name, key in TABLES.items() if key in rules.dataset_sources)
