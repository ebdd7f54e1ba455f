"""The catalogue from the hub, at the round's revisions, once: into the parquet that the mlcommons client makes of it.

Hugging Face's ``datasets`` reads the hub and decodes pictures, as upstream has it. What a person put there is verified,
or taken for the revision that they state.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final, Protocol

from harness.benchmarks.base import file_sha256
from harness.benchmarks.qwen3_vl_235b_a22b import images, sidecar
from harness.benchmarks.qwen3_vl_235b_a22b.catalogue import Catalogue, Reader
from harness.benchmarks.qwen3_vl_235b_a22b.dataset import find
from harness.benchmarks.qwen3_vl_235b_a22b.files import (
    CATEGORIES,
    DESCRIPTION,
    FORMAT,
    IMAGE,
    ROWS_IN_GROUP,
    TITLE,
    TRUE_BRAND,
    TRUE_CATEGORY,
    TRUE_SECONDHAND,
    TableSource,
)
from harness.benchmarks.qwen3_vl_235b_a22b.parquet_file import write_table
from harness.benchmarks.qwen3_vl_235b_a22b.sidecar import Sidecar
from harness.errors import ConfigError, DatasetError, MissingError

Tell = Callable[[str], None]

INSTALL: Final = "pip install '.[qwen3-vl,fetch]'"
PICTURE: Final = "product_image"
_TEXTS: Final = (TITLE, DESCRIPTION, TRUE_CATEGORY, TRUE_BRAND)
_HUB_COLUMNS: Final = (*_TEXTS, PICTURE, CATEGORIES, TRUE_SECONDHAND)
_TELL_EVERY_ROWS: Final = 16 * ROWS_IN_GROUP


class HubTable(Protocol):
    """What is used of ``datasets.Dataset``; safe to read from several threads."""

    @property
    def column_names(self) -> Sequence[str]:
        """Its columns."""

    def __len__(self) -> int: ...

    def __getitem__(self, row: int) -> Mapping[str, Any]: ...


Load = Callable[[TableSource], HubTable]


def fetch(folder: Path, source: TableSource, tell: Tell, load: Load | None = None) -> Path:
    """The table below the data set's folder; fetched and converted where it is not there yet.

    Raises DatasetError for rows that are not the round's, MissingError without ``datasets``, a network or disk space.
    """
    path = source.fetched(folder)
    if path.is_file() and sidecar.read(path) is not None:
        sidecar.check(path, source)
        tell(f"{source.table} was there: {path}")
        return path
    table = (load or from_hub)(source)
    _check(table, source)
    tell(f"converting {len(table):,} rows of {source.source.repo}")
    part = path.with_name(path.name + ".part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        rows = write_table(part, _rows(table, f"{source.source.repo} at {source.source.revision}", tell), {})
        about = source.source
        # The sidecar first: a table is never there without it.
        Sidecar(
            about.repo, about.revision, source.splits, rows, file_sha256(part), images.pillow_version(), "fetched"
        ).write(path)
        part.replace(path)
    except OSError as error:
        raise MissingError(f"cannot write the data set: {error}", where=path) from error
    finally:
        part.unlink(missing_ok=True)
    tell(f"{source.table} was fetched: {path}")
    return path


def from_hub(source: TableSource) -> HubTable:
    """The hub's table at the pinned revision. MissingError without the package or a network."""
    try:
        import datasets
    except ImportError as error:
        raise MissingError("the package datasets is not installed", mend=INSTALL) from error
    about = source.source
    try:
        table: HubTable = datasets.load_dataset(about.repo, split=source.splits, revision=about.revision)
    except (OSError, ValueError, datasets.exceptions.DatasetsError) as error:
        raise MissingError(
            f"the hub did not give the data set: {error}",
            where=f"{about.repo} at {about.revision}",
            mend="on a machine that reaches huggingface.co run the same command, then copy its data folder here",
        ) from error
    return table


def adopt(path: Path, revision: str, folder: Path, wanted: Sequence[TableSource]) -> Sidecar:
    """Takes a table that a person put there for the revision that they state. Raises ConfigError and DatasetError."""
    catalogue = Catalogue.open(path)
    if catalogue.stand_in:
        raise ConfigError("a stand-in is of no revision", where=path)
    source = next((s for s in wanted if path.absolute() in map(Path.absolute, s.candidates(folder))), None)
    if source is None:
        places = " or ".join(str(s.plain(folder)) for s in wanted)
        raise ConfigError("the table does not lie where it is read", where=path, expected=places, mend="put it there")
    about = source.source
    if revision != about.revision:
        raise ConfigError(
            f"the table is said to be of revision {revision}",
            where="--revision",
            expected=f"{about.revision}, which the round pins of {about.repo}",
        )
    if catalogue.rows != about.rows:
        raise DatasetError(f"the table has {catalogue.rows} rows", where=path, expected=f"{about.rows} rows")
    found = Sidecar(about.repo, revision, source.splits, catalogue.rows, file_sha256(path), "", "stated")
    found.write(path)
    return found


def verify_pictures(folder: Path, source: TableSource, tell: Tell) -> None:
    """Decodes every picture of a table. Raises DatasetError for the first that cannot be."""
    path = find(folder, source)
    catalogue = Catalogue.open(path)
    reader = Reader(catalogue, (IMAGE,))
    with ThreadPoolExecutor() as pool:
        for piece in catalogue.pieces():
            numbered = enumerate(reader.read(piece), start=piece.first)
            list(pool.map(lambda each: _decode(each[1][0], f"{path}, row {each[0]}"), list(numbered)))
            if piece.first % _TELL_EVERY_ROWS == 0 and piece.first:
                tell(f"pictures: {piece.first:,} of {catalogue.rows:,}")


def _decode(in_base64: str | None, where: str) -> None:
    if not in_base64:
        raise DatasetError("the row has no picture", where=where, mend=sidecar.FETCH)
    images.decode(images.from_base64(in_base64, where), where)


def _check(table: HubTable, source: TableSource) -> None:
    where, about = f"{source.source.repo} at {source.source.revision}", source.source
    missing = [name for name in _HUB_COLUMNS if name not in table.column_names]
    if missing:
        raise DatasetError(
            f"the table lacks the columns {', '.join(missing)}", where=where, expected=", ".join(_HUB_COLUMNS)
        )
    if len(table) != about.rows:
        raise DatasetError(f"the table has {len(table)} rows", where=where, expected=f"{about.rows} rows")


def _rows(table: HubTable, where: str, tell: Tell) -> Iterator[Mapping[str, str | None]]:
    """The rows in order, as the client's parquet has them. Pillow lets go of Python's lock while it decodes."""
    with ThreadPoolExecutor() as pool:
        for begin in range(0, len(table), ROWS_IN_GROUP):
            rows = range(begin, min(begin + ROWS_IN_GROUP, len(table)))
            yield from pool.map(lambda row: _row(table, row, f"{where}, row {row}"), rows)
            if begin % _TELL_EVERY_ROWS == 0 and begin:
                tell(f"rows: {begin:,} of {len(table):,}")


def _row(table: HubTable, row: int, where: str) -> Mapping[str, str | None]:
    with images.reading(where):  # ``datasets`` decodes a row's picture where the row is asked for
        sample = table[row]
    picture = sample[PICTURE]
    if picture is None:
        raise DatasetError("the row has no picture", where=where, expected=f"a picture in {PICTURE}")
    kind, content = images.round_trip(picture, where)
    return {
        **{name: sample[name] for name in _TEXTS},
        IMAGE: base64.b64encode(content).decode("ascii"),
        FORMAT: kind,
        CATEGORIES: json.dumps(sample[CATEGORIES]),
        TRUE_SECONDHAND: json.dumps(sample[TRUE_SECONDHAND]),
    }
