"""A parquet of the catalogue, read piece by piece: only the columns that are asked for, some rows at a time.

The client's file may be one row group of gigabytes. A reader goes through it in order and holds a page of each column.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from harness.benchmarks.qwen3_vl_235b_a22b.files import COLUMNS, NAME, STAND_IN_KEY
from harness.errors import DatasetError

ROWS_AT_ONCE: Final = 64
_BUFFER_BYTES: Final = 1 << 20
MEND: Final = (
    f"fetch it with: python -m harness fetch_dataset --benchmark={NAME}, or make a stand-in with: "
    f"python -m harness make_dataset --benchmark={NAME}"
)


@dataclass(frozen=True, slots=True)
class Piece:
    """Some rows of a table: ``rows`` of them from ``first`` on, which is row ``first_in_group`` of the row group."""

    group: int
    first_in_group: int
    first: int
    rows: int


@dataclass(frozen=True, slots=True)
class Catalogue:
    """A table that has the catalogue's columns, all of text."""

    path: Path
    rows: int
    stand_in: bool
    group_rows: tuple[int, ...]

    @classmethod
    def open(cls, path: Path) -> Catalogue:
        """Looks at a file's footer alone. Raises DatasetError for what is no parquet, or of other columns."""
        import pyarrow.parquet as pq

        if not path.is_file():
            raise DatasetError("a file of the data set is missing", where=path, mend=MEND)
        with _told(path), pq.ParquetFile(path) as file:
            schema, about = file.schema_arrow, file.metadata
            groups = tuple(about.row_group(i).num_rows for i in range(about.num_row_groups))
        _check_columns(path, schema)
        return cls(path, about.num_rows, STAND_IN_KEY in (schema.metadata or {}), groups)

    def pieces(self, rows: int | None = None) -> list[Piece]:
        """The first rows (or all) in pieces of at most :data:`ROWS_AT_ONCE`, none across a row group's end."""
        limit = self.rows if rows is None else min(rows, self.rows)
        found, begin = [], 0
        for group, size in enumerate(self.group_rows):
            found += [
                Piece(group, at, begin + at, min(ROWS_AT_ONCE, size - at, limit - begin - at))
                for at in range(0, size, ROWS_AT_ONCE)
                if begin + at < limit
            ]
            begin += size
        return found

    def column(self, name: str, rows: int | None = None) -> list[str | None]:
        """One column of the first rows, or of all."""
        reader = Reader(self, (name,))
        return [value for piece in self.pieces(rows) for (value,) in reader.read(piece)]


class Reader:
    """Reads pieces of a table in the order of their rows; what lies between two of them is passed over."""

    def __init__(self, catalogue: Catalogue, columns: Sequence[str]) -> None:
        self._catalogue = catalogue
        self._columns = list(columns)
        self._file: Any = None
        self._group = -1
        self._batches: Iterator[Any] = iter(())
        self._batch: Any = None
        self._end = 0

    def read(self, piece: Piece) -> list[tuple[str | None, ...]]:
        """The columns of each row, in the order they were asked for. Raises DatasetError for what is damaged."""
        rows: list[tuple[str | None, ...]] = []
        with _told(self._catalogue.path):
            if piece.group != self._group:
                self._open(piece.group)
            at, end = piece.first_in_group, piece.first_in_group + piece.rows
            while at < end:
                while self._end <= at:
                    self._advance()
                begin = self._end - self._batch.num_rows
                part = self._batch.slice(at - begin, min(end, self._end) - at)
                part.validate(full=True)  # Damage shows here, not as a crash in whoever reads the values.
                rows += zip(*(part.column(name).to_pylist() for name in self._columns), strict=True)
                at += part.num_rows
        return rows

    def _open(self, group: int) -> None:
        import pyarrow.parquet as pq

        if self._file is None:
            # Without a buffer of its own a column of a row group is read as a whole, and kept.
            self._file = pq.ParquetFile(self._catalogue.path, buffer_size=_BUFFER_BYTES, pre_buffer=False)
        self._batches = self._file.iter_batches(
            ROWS_AT_ONCE, row_groups=[group], columns=self._columns, use_threads=False
        )
        self._group, self._batch, self._end = group, None, 0

    def _advance(self) -> None:
        self._batch = next(self._batches, None)
        if self._batch is None:
            raise OSError("it has fewer rows than its footer says")
        self._end += self._batch.num_rows


@contextmanager
def _told(path: Path) -> Iterator[None]:
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise DatasetError(f"not a parquet file that can be read: {error}", where=path, mend=MEND) from error


def _check_columns(path: Path, schema: Any) -> None:  # noqa: ANN401 - pyarrow has no types
    import pyarrow as pa

    missing = [name for name in COLUMNS if name not in schema.names]
    if missing:
        raise DatasetError(
            f"the table lacks the columns {', '.join(missing)}; it has {', '.join(schema.names)}",
            where=path,
            expected=", ".join(COLUMNS),
            mend=MEND,
        )
    for name in COLUMNS:
        kind = schema.field(name).type
        value = kind.value_type if pa.types.is_dictionary(kind) else kind
        if not (pa.types.is_string(value) or pa.types.is_large_string(value) or pa.types.is_null(value)):
            raise DatasetError(
                f"the column {name} is of type {kind}", where=path, expected="text in every column", mend=MEND
            )
