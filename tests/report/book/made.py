"""Runs that never were, of any number of samples, for tests and benchmarks of what is gathered and drawn of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from harness.ledger import ResultsStore, StoredRun, write_record
from harness.ledger.record import Counts
from harness.ledger.samples import NONE, Int64, SampleState, write_samples
from harness.ledger.store import LOGS, SAMPLES
from tests.ledger.made_records import finished

MS = 1_000_000


def made_columns(n: int, *, seed: int = 0, rate: float = 1000.0, failed: int = 0) -> dict[str, Int64]:
    """The columns of a samples.arrow of ``n`` samples that were issued at a Poisson ``rate`` a second.

    TTFT lies around 80 ms with a long tail, TPOT around 12 ms, answers have 2 to some thousand tokens. The last
    ``failed`` samples failed.
    """
    rng = np.random.default_rng(seed)
    issued = (10**12 + np.cumsum(rng.exponential(1e9 / rate, n))).astype(np.int64)
    tokens = np.clip(rng.lognormal(5.5, 1.0, n), 2, 10240).astype(np.int64)
    first = issued + (rng.lognormal(0, 0.5, n) * 80 * MS).astype(np.int64)
    done = first + ((tokens - 1) * rng.normal(12 * MS, MS, n).clip(MS)).astype(np.int64)
    columns = {
        "index": np.arange(n) % 6396,
        "issued_ns": issued,
        "first_token_ns": first,
        "done_ns": done,
        "engine_first_token_ns": first - 1000,
        "engine_done_ns": done - 1000,
        "prompt_tokens": rng.integers(100, 2000, n),
        "answer_tokens": tokens,
        "finish": np.zeros(n, np.int64),
        "state": np.full(n, SampleState.ANSWERED, np.int64),
    }
    lost = slice(n - failed, n)
    columns["state"][lost] = SampleState.FAILED
    for name in ("first_token_ns", "done_ns", "engine_first_token_ns", "engine_done_ns", "answer_tokens", "finish"):
        columns[name][lost] = NONE
    return columns


def write_columns(folder: Path, columns: dict[str, Int64]) -> Path:
    """Writes them as the samples.arrow of a run's folder, on one replica."""
    folder.mkdir(parents=True, exist_ok=True)
    write_samples(folder / SAMPLES, columns, np.zeros(len(columns["state"]), np.int16), ["0"])
    return folder / SAMPLES


def made_run(
    root: Path, n: int, scenario: str = "Server", leg: str = "performance", *, failed: int = 0, **changes: Any
) -> StoredRun:
    """A finished run of ``n`` samples in the results folder ``root``; ``changes`` replace fields of its record.

    It has samples.arrow and no logs: what there is to say of those is told by whoever reads the run.
    """
    columns = made_columns(n, failed=failed)
    store = ResultsStore(root)
    run_id, folder = store.new_attempt("BOX", "gpt-oss-120b", scenario, leg)
    write_columns(folder, columns)
    (folder / LOGS).mkdir()
    answered = columns["state"] == SampleState.ANSWERED
    counts = Counts(
        issued=n,
        answered=n - failed,
        failed=failed,
        outstanding=0,
        output_tokens=int(columns["answer_tokens"][answered].sum()),
    )
    record = finished(run_id, **{"counts": counts, **changes})
    write_record(folder, record)
    return StoredRun(folder, record)
