"""Our own samples beside LoadGen's figures."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.ledger.samples import NONE, SampleState
from harness.logs import DetailLog
from harness.runs.compare import compare

SPACED = """
import os, sys, threading, time
import numpy as np
import mlperf_loadgen as lg

out = sys.argv[1]
settings = lg.TestSettings()
assert settings.FromConfig(f"{out}/user.conf", "x", "Offline", 1) == 0
settings.scenario, settings.mode = lg.TestScenario.Offline, lg.TestMode.PerformanceOnly
issued, done = [], []

def complete(ids):
    for number in ids:
        time.sleep(0.002)
        done.append(time.monotonic_ns())
        lg.QuerySamplesComplete([lg.QuerySampleResponse(number, 0, 0, 0)])

def issue(ids, rows):
    issued.extend([time.monotonic_ns()] * len(ids))
    threading.Thread(target=complete, args=(list(ids),)).start()

logs = lg.LogSettings()
logs.log_output.outdir = out
logs.enable_trace = False
sut = lg.ConstructFastSUT(issue, lambda: None)
lg.StartTestWithLogSettings(sut, lg.ConstructQSL(50, 50, lambda r: None, lambda r: None), settings, logs, "")
np.savez(f"{out}/samples.npz", issued=issued, done=done)
sys.stdout.flush()
os._exit(0)
"""


def columns(issued: Any, done: Any, first: Any = None, tokens: int = 4) -> dict[str, np.ndarray]:
    n = len(issued)
    return {
        "issued_ns": np.asarray(issued),
        "done_ns": np.asarray(done),
        "first_token_ns": np.full(n, NONE) if first is None else np.asarray(first),
        "answer_tokens": np.full(n, tokens),
        "state": np.full(n, SampleState.ANSWERED),
    }


def test_percentiles_are_taken_as_loadgen_takes_them(tmp_path: Path) -> None:
    """Completions 2 ms apart: a percentile taken one place off would be 2 ms off."""
    lines = {"target_qps": 1, "min_duration": 100, "min_query_count": 100}
    (tmp_path / "user.conf").write_text("".join(f"*.Offline.{key} = {value}\n" for key, value in lines.items()))
    environ = os.environ | {"OMP_NUM_THREADS": "1"}
    subprocess.run([sys.executable, "-c", SPACED, tmp_path], check=True, timeout=60, env=environ, cwd=tmp_path)
    samples = np.load(tmp_path / "samples.npz")
    assert len(samples["done"]) == 100
    detail = DetailLog.read(tmp_path / "mlperf_log_detail.txt")
    pairs = {pair.figure: pair for pair in compare(columns(samples["issued"], samples["done"]), detail.values)}
    for percent, place in (("50.00", 50), ("99.00", 99)):
        pair = pairs[f"result_{percent}_percentile_latency_ns"]
        assert pair.harness == sorted(samples["done"] - samples["issued"])[place]
        assert abs(pair.harness - pair.loadgen) < 1e6
    assert pairs["result_samples_per_second"].ratio == pytest.approx(1, abs=0.02)


LOGGED = {
    "effective_scenario": "Server",
    "result_query_count": 4,
    "result_completed_tokens_per_second": 8.0,
    "result_first_token_50.00_percentile_latency_ns": 2e8,
    "result_time_per_output_token_99.00_percentile_ns": 1e8,
    "result_50.00_percentile_latency_ns": 0,
    "result_99.00_percentile_latency_ns": "a while",
}


def figures(given: dict[str, np.ndarray], logged: dict[str, object]) -> dict[str, float]:
    return {pair.figure: pair.harness for pair in compare(given, logged)}


def test_figures_by_their_definition() -> None:
    given = columns([0, 0, 10**9, 10**9], [10**9, 2 * 10**9, 2 * 10**9, 2 * 10**9], [4 * 10**8, 5 * 10**8] * 2)
    given["first_token_ns"][2:] += 10**9
    assert figures(given, LOGGED) == pytest.approx(
        {
            "result_query_count": 4,
            "result_completed_tokens_per_second": 8.0,
            "result_first_token_50.00_percentile_latency_ns": 5e8,
            "result_time_per_output_token_99.00_percentile_ns": 5e8,
        }
    )


def test_only_answered_samples_have_times_but_all_are_counted() -> None:
    given = columns([0, 0], [10**9, NONE], [10**8, NONE])
    given["state"][1] = SampleState.FAILED
    ours = figures(given, LOGGED)
    assert ours["result_query_count"] == 2
    assert ours["result_completed_tokens_per_second"] == 4


def test_nothing_answered_leaves_the_count() -> None:
    given = columns([0], [NONE])
    given["state"][:] = SampleState.OUTSTANDING
    assert figures(given, LOGGED) == {"result_query_count": 1}


def test_offlines_one_query_is_not_counted_as_samples() -> None:
    assert "result_query_count" not in figures(columns([0], [1]), LOGGED | {"effective_scenario": "Offline"})


def test_an_answer_of_one_token_has_no_time_per_token() -> None:
    ours = figures(columns([0], [3 * 10**8], [10**8], tokens=1), LOGGED)
    assert "result_time_per_output_token_99.00_percentile_ns" not in ours


def test_answers_whose_tokens_nobody_counted_have_no_rate_of_tokens() -> None:
    ours = figures(columns([0], [10**9], tokens=NONE), LOGGED | {"result_completed_samples_per_sec": 1.0})
    assert ours == {"result_query_count": 1, "result_completed_samples_per_sec": 1}


def test_a_run_of_no_time_has_no_rates() -> None:
    assert figures(columns([5, 5], [5, 5]), LOGGED) == {"result_query_count": 2}
