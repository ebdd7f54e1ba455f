"""Reader of the reference's data files: one checked table of prompts with what is known of each row.

The parquet says what the data set is. Where the pair of padded arrays lies beside it, it must say the same, and the
prompts are then taken from it through a memory map, which all processes share.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tokenize import TokenError
from typing import Any

import numpy as np
import numpy.typing as npt

from harness.benchmarks.base import DataFile, Dataset, Which, file_sha256
from harness.benchmarks.gpt_oss_120b.files import (
    COUNT,
    NAME,
    OLD_TOKENS,
    STAND_IN_KEY,
    SUBSET,
    TOKENS,
    TRUTH,
    TableFiles,
    table_files,
)
from harness.benchmarks.standins import STAND_IN_FILE
from harness.engines.base import Int64Array, PromptTable
from harness.errors import DatasetError
from harness.rules import TokenRules

MEND = "fetch it with: python -m harness fetch_dataset, or make a stand-in with: python -m harness make_dataset"
ROWS_AT_ONCE = 256


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a table must hold: rows in all, rows of each subset (None: whatever there is), ids below ``vocab_size``."""

    rows: int
    subsets: Mapping[str, int] | None
    vocab_size: int

    @classmethod
    def by(cls, rules: TokenRules, which: Which) -> Wanted:
        """What the rules of a round want of a table."""
        rows = rules.datasets[which].value
        accuracy = {name: subset.samples for name, subset in rules.accuracy_subsets.value.items()}
        subsets: dict[str, dict[str, int] | None] = {
            "performance": None,
            "accuracy": accuracy,
            # The audit asks the GPQA part alone; its file is named for it.
            "TEST07": {name: rows for name in accuracy if "gpqa" in name},
        }
        return cls(rows, subsets[which], rules.vocab_size.value)


def read(folder: Path, which: Which, wanted: Wanted) -> Dataset:
    """Reads one table of the data set's folder (``<data>/gpt-oss-120b``) and checks it.

    Raises DatasetError for a missing file or column, a wrong number of rows, another composition, ids outside the
    vocabulary, empty prompts, and for lengths or arrays that disagree with the parquet.
    """
    files = table_files(folder, which)
    table = _Table.of(files.parquet)
    prompts = table.prompts(wanted.vocab_size)
    subsets = table.strings(SUBSET)
    _check_rows(files.parquet, subsets, wanted)
    used = [files.parquet]
    pair = _pair(files)
    if pair is not None:
        prompts = _from_pair(*pair, prompts)
        used += pair
    return Dataset(
        name=f"{NAME}/{which}",
        table=which,
        prompts=prompts,
        subsets=tuple(subset or "" for subset in subsets),
        ground_truth=tuple(table.strings(TRUTH)),
        files=tuple(DataFile(path, file_sha256(path)) for path in used),
        stand_in=table.marked_stand_in or (folder / STAND_IN_FILE).exists(),
    )


def _check_rows(path: Path, subsets: list[str | None], wanted: Wanted) -> None:
    if len(subsets) != wanted.rows:
        raise DatasetError(f"the table has {len(subsets)} rows", where=path, expected=f"{wanted.rows} rows", mend=MEND)
    found = Counter(subset or "(none)" for subset in subsets)
    if wanted.subsets is not None and found != Counter(wanted.subsets):
        raise DatasetError(
            f"the rows are of other subsets: {_listed(found)}",
            where=f"{path}, column {SUBSET}",
            expected=_listed(wanted.subsets),
            mend=MEND,
        )


def _listed(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{counts[name]} {name}" for name in sorted(counts))


@dataclass(frozen=True, slots=True)
class _Table:
    """A parquet file with the columns that a run needs."""

    path: Path
    columns: Any  # pyarrow.Table
    marked_stand_in: bool

    @classmethod
    def of(cls, path: Path) -> _Table:
        import pyarrow as pa
        import pyarrow.parquet as pq

        if not path.is_file():
            raise DatasetError("a file of the data set is missing", where=path, mend=MEND)
        try:
            schema = pq.read_schema(path)
            names = schema.names
            tokens = TOKENS if TOKENS in names else OLD_TOKENS
            needed = [tokens, COUNT, TRUTH, SUBSET]
            missing = [TOKENS if name == OLD_TOKENS else name for name in needed if name not in names]
            if missing:
                raise DatasetError(
                    f"the table lacks the columns {', '.join(missing)}; it has {', '.join(names)}",
                    where=path,
                    expected=f"{TOKENS} (or {OLD_TOKENS}), {COUNT}, {TRUTH}, {SUBSET}",
                    mend=MEND,
                )
            columns = pq.read_table(path, columns=needed)
            columns.validate(full=True)  # Damage shows here, not as a crash in whoever reads the values.
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            raise DatasetError(f"not a parquet file that can be read: {error}", where=path, mend=MEND) from error
        renamed = columns.rename_columns([TOKENS, COUNT, TRUTH, SUBSET]).combine_chunks()
        return cls(path, renamed, STAND_IN_KEY in (schema.metadata or {}))

    def strings(self, name: str) -> list[str | None]:
        """A column as text; what is not there stays None."""
        values = self.columns.column(name).to_pylist()
        return [value if value is None or isinstance(value, str) else str(value) for value in values]

    def prompts(self, vocab_size: int) -> PromptTable:
        """The prompts, copied out of the table as int32."""
        flat, lengths = self._ids()
        starts = np.cumsum(lengths) - lengths
        self._check_counts(lengths)
        outside = np.flatnonzero((flat < 0) | (flat >= vocab_size))
        if len(outside):
            row = int(np.searchsorted(starts, outside[0], side="right")) - 1
            raise DatasetError(
                f"row {row} holds the token id {flat[outside[0]]}, {len(outside)} such ids in all",
                where=f"{self.path}, column {TOKENS}",
                expected=f"ids of the vocabulary: 0..{vocab_size - 1}",
                mend=MEND,
            )
        return PromptTable(flat.astype(np.int32), starts, lengths)

    def _ids(self) -> tuple[Int64Array, Int64Array]:
        import pyarrow as pa
        import pyarrow.compute as pc

        column = self.columns.column(TOKENS)
        kind = column.type
        where = f"{self.path}, column {TOKENS}"
        is_list = pa.types.is_list(kind) or pa.types.is_large_list(kind)
        if not is_list or not pa.types.is_integer(kind.value_type):
            raise DatasetError(f"the column is of type {kind}", where=where, expected="lists of integers", mend=MEND)
        lengths = pc.fill_null(pc.list_value_length(column), 0).to_numpy().astype(np.int64)
        empty = np.flatnonzero(lengths == 0)
        if len(empty):
            raise DatasetError(
                f"row {empty[0]} has an empty prompt, {len(empty)} such rows in all", where=where, mend=MEND
            )
        values = pc.list_flatten(column)
        if values.null_count:
            raise DatasetError(f"{values.null_count} token ids are null", where=where, mend=MEND)
        return values.to_numpy().astype(np.int64, copy=False), lengths

    def _check_counts(self, lengths: Int64Array) -> None:
        stated = self.columns.column(COUNT).to_pylist()
        for row, (said, length) in enumerate(zip(stated, lengths.tolist(), strict=True)):
            if said != length:
                raise DatasetError(
                    f"row {row} has {length} token ids where {COUNT} says {said}", where=self.path, mend=MEND
                )


def _pair(files: TableFiles) -> tuple[Path, Path] | None:
    if files.padded is None or files.lengths is None:
        return None
    there = [path for path in (files.padded, files.lengths) if path.is_file()]
    if len(there) == 1:
        other = files.lengths if there[0] == files.padded else files.padded
        raise DatasetError(
            f"{there[0].name} is there without {other.name}",
            where=there[0].parent,
            expected="both arrays, or neither",
            mend=MEND,
        )
    return (files.padded, files.lengths) if there else None


def _from_pair(padded_path: Path, lengths_path: Path, prompts: PromptTable) -> PromptTable:
    """The same prompts over the memory-mapped array; DatasetError where they are not the same."""
    lengths = _array(lengths_path).reshape(-1).astype(np.int64)
    if not np.array_equal(lengths, prompts.lengths):
        raise DatasetError(
            _first_difference(lengths, prompts.lengths),
            where=lengths_path,
            expected=f"the lengths that {COUNT} of the parquet says",
            mend=MEND,
        )
    padded = _array(padded_path)
    if padded.ndim != 2 or len(padded) != len(prompts) or (len(padded) and padded.shape[1] < lengths.max()):
        raise DatasetError(
            f"the array is of shape {padded.shape}",
            where=padded_path,
            expected=f"({len(prompts)}, at least {prompts.lengths.max(initial=0)})",
            mend=MEND,
        )
    _check_same_ids(padded_path, padded, prompts)
    if padded.dtype != np.int32 or not padded.flags.c_contiguous:
        return prompts  # Mapping it would mean converting it, and the ids are the same.
    return PromptTable.from_padded(padded, lengths)


def _first_difference(found: Int64Array, wanted: Int64Array) -> str:
    if len(found) != len(wanted):
        return f"there are {len(found)} lengths for {len(wanted)} rows"
    row = int(np.flatnonzero(found != wanted)[0])
    return f"row {row} is said to be {found[row]} tokens long, and is {wanted[row]}"


def _check_same_ids(path: Path, padded: npt.NDArray[Any], prompts: PromptTable) -> None:
    columns = np.arange(padded.shape[1])
    for begin in range(0, len(padded), ROWS_AT_ONCE):
        lengths = prompts.lengths[begin : begin + ROWS_AT_ONCE]
        found = padded[begin : begin + ROWS_AT_ONCE][columns < lengths[:, None]]
        start = int(prompts.starts[begin])
        wrong = np.flatnonzero(found != prompts.flat[start : start + len(found)])
        if len(wrong):
            row = begin + int(np.searchsorted(np.cumsum(lengths), wrong[0], side="right"))
            raise DatasetError(
                f"row {row} holds other token ids than the parquet", where=path, expected="the same ids", mend=MEND
            )


def _array(path: Path) -> npt.NDArray[Any]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            array: npt.NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, OSError, EOFError, TokenError, SyntaxError, TypeError, OverflowError, Warning) as error:
        # numpy parses the header as Python source; what is wrong with it comes out as any of these.
        raise DatasetError(f"not an array that can be read: {error}", where=path, mend=MEND) from error
    if not np.issubdtype(array.dtype, np.integer):
        raise DatasetError(f"the array is of type {array.dtype}", where=path, expected="integers", mend=MEND)
    return array
