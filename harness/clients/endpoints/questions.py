"""BFCL's questions as the endpoints client keeps its own copy of them, for runs that do not ask the round's.

The client makes its copy of the package in its own environment and then picks from it, so that the round's 995 are its
own doing. Where a run asks fewer, or made-up ones, they are laid where it looks for that copy, and it is told to pick
all of them.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from harness.benchmarks.qwen3_6_27b.bfcl.requests import body
from harness.benchmarks.qwen3_6_27b.bfcl.table import Row
from harness.clients.endpoints.data import CACHE
from harness.errors import MissingError


def lay_out_questions(rows: Sequence[Row], run_folder: Path, place: str) -> Path:
    """Writes ``rows`` to ``dataset_cache/<place>`` in a run's folder; returns the path. MissingError else."""
    target = run_folder / CACHE / place
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.Table.from_pylist([_kept(row) for row in rows]), target)
    except OSError as error:
        raise MissingError(
            f"the client's copy of the questions cannot be made: {error.strerror or error}", where=target
        ) from None
    return target


def _kept(row: Row) -> dict[str, str]:
    """A row in the client's columns, what is an object in them as JSON."""
    asked = body(row)
    return {
        "messages": json.dumps(asked["messages"]),
        "tools": json.dumps(asked["tools"]),
        "tool_choice": asked["tool_choice"],
        "ground_truth": json.dumps(row.truth or []),
        "func_description": json.dumps(row.functions),
        "subset": row.subset,
        "sample_id": row.id,
    }
