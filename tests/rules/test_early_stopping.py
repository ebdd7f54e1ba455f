"""Early stopping: LoadGen's own numbers, from runs of LoadGen made here and from published logs."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.logs.detail import DetailLog
from harness.rules import early_stopping

RUN = Path(__file__).with_name("loadgen_run.py")
REAL = Path(__file__).parents[3] / "shared" / "data" / "real_v6.0" / "closed"
SHARES = st.sampled_from([0.5, 0.9, 0.95, 0.97, 0.99, 0.999])


def loadgen(folder: Path, **asked: Any) -> DetailLog:
    """The detail log of a short run of LoadGen, each sample of it also in its trace."""
    done = subprocess.run(
        [sys.executable, str(RUN), str(folder), json.dumps(asked)], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return DetailLog.read(folder / "mlperf_log_detail.txt")


def latencies(folder: Path) -> list[int]:
    trace = (folder / "mlperf_log_trace.json").read_text()
    return sorted(int(found) for found in re.findall(r'"issue_start_ns":\d+,"complete_ns":(\d+)', trace))


@pytest.mark.e2e
@pytest.mark.parametrize(("queries", "kept_back"), [(458, 0), (459, 0), (661, 1), (662, 1), (1200, 9), (8000, 60)])
def test_server_is_judged_as_loadgen_judges_it(queries, kept_back, tmp_path):
    log = loadgen(tmp_path, scenario="Server", queries=queries, limit_ms=400, percentile=0.99, kept_back=kept_back)
    # A machine that is busy may let more be late than were kept back: what LoadGen counted is what is compared.
    over = log.value("result_overlatency_query_count")
    assert over >= kept_back
    assert log.value("early_stopping_met") is early_stopping.passes(queries, over, 0.99)
    told = re.search(r"at least (\d+) more queries", log.value("early_stopping_result"))
    more = early_stopping.min_queries(over, 0.99) - queries
    assert (int(told[1]) if told else 0) == max(more, 0)


@pytest.mark.e2e
@pytest.mark.parametrize(("queries", "percentile"), [(300, 0.9), (700, 0.9), (3000, 0.9), (2500, 0.97)])
def test_single_stream_is_estimated_as_loadgen_estimates_it(queries, percentile, tmp_path):
    log = loadgen(tmp_path, scenario="SingleStream", queries=queries, limit_ms=0, percentile=percentile, kept_back=0)
    values = latencies(tmp_path)
    assert len(values) == queries
    assert early_stopping.estimate(values, percentile) == log.value("early_stopping_latency_ss")
    words = log.value("early_stopping_result")
    fewest, discarded = (int(n) for n in re.findall(r"(?:Processed at least|Would discard) (\d+)", words))
    assert fewest == early_stopping.min_queries(1, percentile)
    assert discarded == early_stopping.allowed_over(queries, percentile) - 1
    at_p99 = early_stopping.estimate(values, 0.99)
    if at_p99 is None:
        assert f"least {early_stopping.min_queries(1, 0.99)} total queries" in words
    else:
        assert at_p99 == log.value("early_stopping_latency_ms")


@pytest.mark.e2e
def test_too_few_queries_of_single_stream_have_no_estimate(tmp_path):
    log = loadgen(tmp_path, scenario="SingleStream", queries=63, limit_ms=0, percentile=0.9, kept_back=0)
    assert log.value("early_stopping_met") is False
    assert early_stopping.estimate(latencies(tmp_path), 0.9) is None
    assert f"at least {early_stopping.min_queries(1, 0.9)} queries" in log.value("early_stopping_result")


@pytest.mark.shared
@pytest.mark.skipif(not REAL.exists(), reason="the shared data folder is not beside the repository")
def test_published_server_logs_agree():
    judged = 0
    for path in sorted(REAL.rglob("Server/performance/run_1/mlperf_log_detail.txt")):
        log = DetailLog.read(path)
        if not log.value("early_stopping_result"):
            continue  # of token latencies LoadGen logs no count over the limit that is of one of them
        judged += 1
        queries, over = log.value("generated_query_count"), log.value("result_overlatency_query_count")
        assert early_stopping.passes(queries, over, 0.99) is log.value("early_stopping_met")
    assert judged


@given(over=st.integers(0, 4000), percentile=SHARES)
@settings(max_examples=60, deadline=None)
def test_the_two_directions_are_each_other_s_inverse(over, percentile):
    queries = early_stopping.min_queries(over, percentile)
    assert early_stopping.allowed_over(queries, percentile) == over
    assert early_stopping.allowed_over(queries - 1, percentile) == over - 1
    assert early_stopping.passes(queries, over, percentile)
    assert not early_stopping.passes(queries - 1, over, percentile)


@given(queries=st.integers(0, 2_000_000), more=st.integers(0, 100_000), percentile=SHARES)
@settings(max_examples=60, deadline=None)
def test_more_queries_allow_no_fewer_to_be_over(queries, more, percentile):
    allowed = early_stopping.allowed_over(queries, percentile)
    assert allowed <= early_stopping.allowed_over(queries + more, percentile)
    assert -1 <= allowed <= queries * (1 - percentile)


@given(share=st.floats(1e-6, 0.0098), percentile=st.just(0.99))
@settings(max_examples=60, deadline=None)
def test_a_share_over_the_limit_passes_from_its_number_on_and_not_just_below(share, percentile):
    queries = early_stopping.min_queries_at_share(share, percentile)
    assert queries is not None
    assert early_stopping.passes(queries, whole_over(queries, share), percentile)
    assert not early_stopping.passes(queries - 1, whole_over(queries - 1, share), percentile)
    assert early_stopping.passes(2 * queries, whole_over(2 * queries, share), percentile)


@pytest.mark.parametrize(("share", "queries"), [(0, 459), (5e-324, 662), (1e-12, 662), (0.001, 662)])
def test_of_a_share_one_query_at_least_is_over(share, queries):
    assert early_stopping.min_queries_at_share(share, 0.99) == queries


def whole_over(queries: int, share: float) -> int:
    return -int(-round(queries * share, 6) // 1)


@pytest.mark.parametrize("share", [0.01, 0.011, 1.0])
def test_no_number_of_queries_saves_a_share_that_the_percentile_does_not_leave(share):
    assert early_stopping.min_queries_at_share(share, 0.99) is None


def test_a_plan_is_made_in_milliseconds():
    before = time.process_time()
    assert early_stopping.allowed_over(270_336, 0.99) < 270_336 // 100
    assert early_stopping.allowed_over(1_000_000, 0.99) < 10_000
    assert time.process_time() - before < 0.2


@pytest.mark.parametrize(
    ("queries", "over", "percentile", "said"),
    [
        (-1, 0, 0.99, "queries: -1"),
        (10, -1, 0.99, "over the limit: -1"),
        (10, 0, 99, "percentile 99"),
        (10, 0, 1.0, "percentile 1.0"),
        (10, 0, float("nan"), "percentile nan"),
    ],
)
def test_numbers_out_of_their_range_are_refused(queries, over, percentile, said):
    with pytest.raises(ValueError, match=said):
        early_stopping.passes(queries, over, percentile)


@pytest.mark.parametrize("share", [-0.1, 1.5, float("nan")])
def test_a_share_is_of_zero_to_one(share):
    with pytest.raises(ValueError, match="share over the limit"):
        early_stopping.min_queries_at_share(share, 0.99)


def test_more_over_than_there_are_queries_do_not_pass():
    assert not early_stopping.passes(5, 6, 0.5)
    assert early_stopping.allowed_over(0, 0.99) == -1
