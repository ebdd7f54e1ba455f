"""Reader of the catalogue: one checked table, without its pictures, and what is true of each product.

A table is taken for the benchmark's where a file beside it says that it is of the round's revision, or for a stand-in
where its own metadata say so.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import orjson

from harness.benchmarks.base import DataFile, Dataset, file_sha256
from harness.benchmarks.qwen3_vl_235b_a22b import sidecar
from harness.benchmarks.qwen3_vl_235b_a22b.catalogue import MEND, Catalogue
from harness.benchmarks.qwen3_vl_235b_a22b.files import (
    CATEGORIES,
    FORMAT,
    NAME,
    TRUE_BRAND,
    TRUE_CATEGORY,
    TRUE_SECONDHAND,
    TableSource,
)
from harness.engines.base import PromptTable
from harness.errors import DatasetError

_FORMAT: Final = re.compile(r"[A-Z0-9][A-Z0-9_+-]*")
_BOOLEANS: Final = {"true": True, "false": False}


@dataclass(frozen=True, slots=True)
class Truths:
    """What is true of each row of a table: the path of its category, its brand, whether it is second-hand."""

    category: tuple[str, ...]
    brand: tuple[str, ...]
    is_secondhand: tuple[bool, ...]

    def __post_init__(self) -> None:
        if not len(self.category) == len(self.brand) == len(self.is_secondhand):
            raise ValueError(
                f"{len(self.category)} categories, {len(self.brand)} brands, {len(self.is_secondhand)} others"
            )

    def __len__(self) -> int:
        return len(self.category)


@dataclass(frozen=True, slots=True)
class Wanted:
    """The table that a round asks for, and the name of the subset that its rows are."""

    source: TableSource
    subset: str


def find(folder: Path, source: TableSource) -> Path:
    """The file of a table under the data set's folder. Raises DatasetError where it is nowhere."""
    places = source.candidates(folder)
    for path in places:
        if path.is_file():
            return path
    raise DatasetError(
        "the data set is missing",
        where=folder,
        expected=" or ".join(str(p.relative_to(folder)) for p in places),
        mend=MEND,
    )


def read(folder: Path, table: str, wanted: Wanted) -> Dataset:
    """Reads one table of the data set's folder (``<data>/qwen3-vl-235b-a22b``) and checks it; no picture is read.

    Raises DatasetError for a missing file or column, an unknown or another revision, a wrong number of rows, a list of
    categories that is empty or no JSON, a picture's format that is none, a row without a true category.
    """
    path = find(folder, wanted.source)
    catalogue = Catalogue.open(path)
    if not catalogue.stand_in:
        sidecar.check(path, wanted.source)
    _check_rows(catalogue, wanted.source.source.rows)
    for row, (kind, categories) in enumerate(zip(catalogue.column(FORMAT), catalogue.column(CATEGORIES), strict=True)):
        _check_format(path, row, kind)
        candidates(categories, f"{path}, row {row}, column {CATEGORIES}")
    return Dataset(
        name=f"{NAME}/{table}",
        table=table,
        prompts=PromptTable.empty(catalogue.rows),
        subsets=(wanted.subset,) * catalogue.rows,
        ground_truth=_true_categories(catalogue),
        files=(DataFile(path, file_sha256(path)),),
        stand_in=catalogue.stand_in,
        whole=catalogue.rows == wanted.source.source.rows,
    )


def truths(dataset: Dataset) -> Truths:
    """What is true of each row of a table that :func:`read` read. Raises DatasetError for what is no truth."""
    catalogue = Catalogue.open(dataset.files[0].path)
    where = f"{catalogue.path}, column {TRUE_SECONDHAND}"
    said = catalogue.column(TRUE_SECONDHAND, dataset.rows)
    for row, text in enumerate(said):
        if text not in _BOOLEANS:
            raise DatasetError(f"row {row} holds {text!r}", where=where, expected="true or false", mend=MEND)
    return Truths(
        category=tuple(truth or "" for truth in dataset.ground_truth),
        brand=tuple(brand or "" for brand in catalogue.column(TRUE_BRAND, dataset.rows)),
        is_secondhand=tuple(_BOOLEANS[text] for text in said if text is not None),
    )


def outside(dataset: Dataset) -> list[int]:
    """The rows whose true category is not among those that the prompt offers: no answer to them can be right."""
    path = dataset.files[0].path
    listed = Catalogue.open(path).column(CATEGORIES, dataset.rows)
    pairs = zip(dataset.ground_truth, listed, strict=True)
    return [row for row, (truth, text) in enumerate(pairs) if truth not in candidates(text, f"{path}, row {row}")]


def candidates(text: str | None, where: object = None) -> list[str]:
    """The list of categories of a row, from its JSON. Raises DatasetError where it is empty or none."""
    try:
        found = _loads(text or "")
    except ValueError as error:
        raise DatasetError(f"the list of categories is no JSON: {error}", where=where, mend=MEND) from error
    if not isinstance(found, list) or not found or not all(isinstance(each, str) and each for each in found):
        raise DatasetError(
            f"the list of categories is {_short(text)}",
            where=where,
            expected="a JSON list of at least one category, none of them empty",
            mend=MEND,
        )
    return found


def _loads(text: str) -> object:
    try:
        found: object = orjson.loads(text)
    except ValueError:  # Python's reader takes escaped lone surrogates, which the client's writer makes.
        found = json.loads(text)
    return found


def _check_rows(catalogue: Catalogue, wanted: int) -> None:
    if catalogue.rows == wanted or (catalogue.stand_in and 0 < catalogue.rows < wanted):
        return
    raise DatasetError(
        f"the table has {catalogue.rows} rows", where=catalogue.path, expected=f"{wanted} rows", mend=MEND
    )


def _check_format(path: Path, row: int, kind: str | None) -> None:
    if kind is None or not _FORMAT.fullmatch(kind):
        raise DatasetError(
            f"row {row} names the picture's format {kind!r}",
            where=f"{path}, column {FORMAT}",
            expected="Pillow's name of it, in upper case, such as JPEG",
            mend=MEND,
        )


def _true_categories(catalogue: Catalogue) -> tuple[str, ...]:
    found = catalogue.column(TRUE_CATEGORY)
    for row, truth in enumerate(found):
        if not truth:
            raise DatasetError(
                f"row {row} has no true category", where=f"{catalogue.path}, column {TRUE_CATEGORY}", mend=MEND
            )
    return tuple(truth for truth in found if truth)


def _short(text: str | None) -> str:
    return repr(text) if text is None or len(text) < 60 else repr(text[:57] + "...")
