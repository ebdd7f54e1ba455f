"""Where the reference's files of gpt-oss-120b lie, and which columns they have.

Source: mlcommons/inference language/gpt-oss-120b, README and run_mlperf.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from harness.benchmarks.base import Which

NAME = "gpt-oss-120b"

TABLES: Mapping[str, Which] = {which: which for which in get_args(Which)}
"""The tables of the data set: each kind of leg has its own."""

TOKENS = "input_tokens"
OLD_TOKENS = "tok_input"
"""What builds of the data set before its v4.0 call the column of token ids."""
COUNT = "num_tokens"
TEXT = "text_input"
MESSAGES = "original_messages"
TRUTH = "ground_truth"
SUBSET = "dataset"

TESTS_FOLDER = "livecodebench"
"""LiveCodeBench's problems with their tests, in the data set's folder: a download of its own, not of MLCommons'."""

STAND_IN_KEY = b"harness.stand_in"
"""The key of the parquet schema's metadata that marks a table made by the harness."""


@dataclass(frozen=True, slots=True)
class TableFiles:
    """The files of one table: the parquet, and the pair of arrays (padded ids, lengths) where it has one."""

    parquet: Path
    padded: Path | None
    lengths: Path | None


def table_files(folder: Path, which: Which) -> TableFiles:
    """The files of a table under the data set's folder; whether they exist is not looked at."""
    if which == "performance":
        perf = folder / "perf"
        return TableFiles(
            perf / "perf_eval_ref.parquet",
            perf / "input_ids_padded_perf_eval.npy",
            perf / "input_lens_perf_eval.npy",
        )
    acc = folder / "acc"
    if which == "accuracy":
        return TableFiles(
            acc / "acc_eval_ref.parquet",
            acc / "input_ids_padded_acc_eval.npy",
            acc / "input_lens_acc_eval.npy",
        )
    return TableFiles(acc / "acc_eval_compliance_gpqa.parquet", None, None)
