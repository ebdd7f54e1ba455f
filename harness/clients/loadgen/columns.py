"""Puts what the SUT recorded together: columns by sample."""

from __future__ import annotations

import numpy as np

from harness.clients.loadgen.sut import Record
from harness.engines.base import PromptTable
from harness.ledger.samples import NONE, Int64, SampleState


def by_sample(record: Record, prompts: PromptTable) -> dict[str, Int64]:
    """The columns of samples.arrow (but the replica), in the order of issue."""
    rows = np.array(record.rows, dtype=np.int64)
    columns = {
        "index": rows,
        "issued_ns": np.repeat(_int64(record.issue_ns), _int64(record.issue_count)),
        "prompt_tokens": np.asarray(prompts.lengths, dtype=np.int64)[rows],
        "state": np.full(len(rows), SampleState.OUTSTANDING, dtype=np.int64),
    }
    done = _int64(record.done_number)
    columns["state"][done] = SampleState.ANSWERED
    for name, numbers, values in (
        ("first_token_ns", _int64(record.first_number), record.first_ns),
        ("done_ns", done, record.done_ns),
        ("engine_first_token_ns", done, record.engine_first_ns),
        ("engine_done_ns", done, record.engine_done_ns),
        ("answer_tokens", done, record.done_tokens),
        ("finish", done, record.done_finish),
    ):
        column = np.full(len(rows), NONE, dtype=np.int64)
        column[numbers] = _int64(values)
        columns[name] = column
    failed = np.array([failure.number for failure in record.failures], dtype=np.int64)
    columns["state"][failed] = SampleState.FAILED
    return columns


def _int64(values: object) -> Int64:
    return np.frombuffer(values, dtype=np.int64) if len(values) else np.empty(0, np.int64)  # type: ignore[call-overload, arg-type]
