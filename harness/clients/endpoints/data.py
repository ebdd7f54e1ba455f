"""Lays our data set where the client looks for its own copy: below its working folder, under a name without revision.

The client takes a copy that is there, whatever revision it was made of, and fetches the head of the repository where
there is none. So it is given the one file that the harness has checked.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from harness.errors import DatasetError, MissingError

CACHE: Final = "dataset_cache"


def lay_out(parquet: Path, run_folder: Path, place: str, rows: int | None) -> Path:
    """Puts ``parquet`` at ``dataset_cache/<place>`` in a run's folder: a link, or a copy of its first ``rows`` rows.

    Returns the path. DatasetError where it cannot be read, MissingError where nothing can be written.
    """
    target = run_folder / CACHE / place
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        if rows is None:
            target.symlink_to(parquet.absolute())
        else:
            _cut(parquet, target, rows)
    except pa.ArrowInvalid as error:
        raise DatasetError(f"not a readable parquet file: {error}", where=parquet) from None
    except OSError as error:
        raise MissingError(
            f"the client's copy of the data set cannot be made: {error.strerror or error}", where=target
        ) from None
    return target


def link(target: Path, run_folder: Path, name: str) -> None:
    """A link in a run's folder to a folder elsewhere. MissingError where there can be none."""
    try:
        (run_folder / name).symlink_to(target.absolute(), target_is_directory=True)
    except OSError as error:
        raise MissingError(
            f"the client's link to {name} cannot be made: {error.strerror}", where=run_folder / name
        ) from None


def _cut(parquet: Path, target: Path, rows: int) -> None:
    """Reads no more than it needs: the whole has gigabytes."""
    with pq.ParquetFile(parquet) as source, pq.ParquetWriter(target, source.schema_arrow) as sink:
        left = rows
        for batch in source.iter_batches(batch_size=min(rows, 256)):
            sink.write_batch(batch.slice(0, left))
            left -= min(left, batch.num_rows)
            if left == 0:
                return
