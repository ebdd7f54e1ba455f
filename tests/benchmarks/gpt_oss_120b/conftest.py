from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from harness.benchmarks.base import Made, Which
from harness.benchmarks.gpt_oss_120b import files
from harness.benchmarks.gpt_oss_120b.standin import Counts, Repeated, make_dataset

SMALL = Counts(
    performance=12,
    accuracy={"aime25": Repeated(5, 4), "gpqa_diamond": Repeated(6, 5), "livecodebench_v6": Repeated(4, 3)},
    audit=30,
)
SMALL_ACCURACY = {"aime25": 20, "gpqa_diamond": 30, "livecodebench_v6": 12}


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """A stand-in of a few rows; needs openai-harmony."""
    return make_dataset(tmp_path_factory.mktemp("data") / "gpt-oss-120b", seed=7, counts=SMALL)


WriteTable = Callable[..., Path]


@pytest.fixture
def write_table(tmp_path: Path) -> WriteTable:
    """Writes the files of one table as given, right or wrong, and returns the data set's folder."""

    def write(
        prompts: Sequence[Any],
        *,
        which: Which = "accuracy",
        subsets: Sequence[str | None] | None = None,
        counts: Sequence[int] | None = None,
        token_column: str = files.TOKENS,
        token_type: pa.DataType | None = None,
        pair: bool = False,
        without: Sequence[str] = (),
    ) -> Path:
        paths = files.table_files(tmp_path, which)
        paths.parquet.parent.mkdir(parents=True, exist_ok=True)
        lengths = [len(p or ()) for p in prompts] if counts is None else list(counts)
        columns = {
            token_column: pa.array(prompts, token_type or pa.list_(pa.int64())),
            files.COUNT: pa.array(lengths, pa.int64()),
            files.TRUTH: pa.array([str(i) for i in range(len(prompts))], pa.string()),
            files.SUBSET: pa.array(list(subsets or ["aime25"] * len(prompts)), pa.string()),
        }
        pq.write_table(pa.table({name: c for name, c in columns.items() if name not in without}), paths.parquet)
        if pair:
            assert paths.padded is not None
            assert paths.lengths is not None
            padded = np.full((len(prompts), max(map(len, prompts)) + 2), -1, np.int32)
            for row, ids in zip(padded, prompts, strict=True):
                row[: len(ids)] = ids
            np.save(paths.padded, padded)
            np.save(paths.lengths, np.array(lengths, np.int32))
        return tmp_path

    return write
