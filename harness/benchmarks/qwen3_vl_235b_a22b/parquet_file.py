"""Writer of the catalogue's parquet: the client's columns, in row groups that are small enough to hold."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from pathlib import Path

from harness.benchmarks.qwen3_vl_235b_a22b.files import COLUMNS, ROWS_IN_GROUP


def write_table(path: Path, rows: Iterable[Mapping[str, str | None]], metadata: Mapping[bytes, bytes]) -> int:
    """Writes rows as they come, a group of them in memory at a time; the number of rows. Raises OSError."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema([(name, pa.string()) for name in COLUMNS], metadata=dict(metadata))
    waiting, written = iter(rows), 0
    with pq.ParquetWriter(path, schema) as writer:
        while group := list(itertools.islice(waiting, ROWS_IN_GROUP)):
            columns = [pa.array([row[name] for row in group], pa.string()) for name in COLUMNS]
            writer.write_table(pa.Table.from_arrays(columns, schema=schema), row_group_size=ROWS_IN_GROUP)
            written += len(group)
    return written
