from __future__ import annotations

import hashlib
import re
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.logs import FilePass, LogError, SummaryLog

REAL = Path(__file__).parents[3] / "shared" / "data" / "real_v6.0" / "closed"


def test_a_real_server_summary_agrees_with_the_detail_log(loadgen_runs):
    from harness.logs import DetailLog

    folder = loadgen_runs["Server", "performance"]
    summary = SummaryLog.read(folder / "mlperf_log_summary.txt")
    detail = DetailLog.read(folder / "mlperf_log_detail.txt")
    assert (summary.validity, summary.scenario, summary.mode) == ("VALID", "Server", "PerformanceOnly")
    assert (summary.warnings, summary.errors) == (detail.warning_count, 0)
    name, value = summary.headline
    assert name == "Completed tokens per second"
    assert value == pytest.approx(detail.number("result_completed_tokens_per_second"), rel=1e-4)
    assert summary.percentiles()["latency (ns)"][99.0] == detail.number("result_99.00_percentile_latency_ns")
    assert summary.percentiles()["first token latency (ns)"][50.0] > 0
    assert summary.parameters["min_duration (ms)"] == "1000"
    assert summary.stat("Max latency (ns)") == detail.number("result_max_latency_ns")
    assert summary.stat("no such figure") is None


def test_a_real_invalid_offline_summary(loadgen_runs):
    summary = SummaryLog.read(loadgen_runs["Offline", "performance"] / "mlperf_log_summary.txt")
    assert summary.validity == "INVALID"
    assert summary.head["Min duration satisfied"] == "NO"
    assert summary.headline[0] == "Tokens per second"


def test_an_accuracy_summary_has_counts_alone(loadgen_runs):
    summary = SummaryLog.read(loadgen_runs["Server", "accuracy"] / "mlperf_log_summary.txt")
    assert (summary.validity, summary.scenario, summary.mode, summary.headline) == (None, None, None, None)
    assert summary.errors == 0


def test_errors_are_counted(broken_run):
    assert SummaryLog.read(broken_run / "mlperf_log_summary.txt").errors > 0


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"\xff\xfe",
        b"Result is : VALID\n",
        b"x" * 100_000,
        b"x" * 60_000,
        b"9" * 5000 + b" errors encountered.\n",
        (b"x" * 50_000 + b"\n") * 21,
        b"\n" * (1 << 20) + b"No errors encountered.\n",
    ],
)
def test_what_is_no_summary(tmp_path, text):
    path = tmp_path / "mlperf_log_summary.txt"
    path.write_bytes(text)
    with pytest.raises(LogError) as caught:
        SummaryLog.read(path)
    assert str(path) in caught.value.where


def test_crlf_and_figures_that_are_none(tmp_path, loadgen_runs):
    path = tmp_path / "mlperf_log_summary.txt"
    source = (loadgen_runs["Server", "performance"] / "mlperf_log_summary.txt").read_text()
    path.write_text(re.sub(r"(Max latency \(ns\) +: ).*", r"\1nan", source), newline="\r\n")
    summary = SummaryLog.read(path)
    assert (summary.validity, summary.stat("Max latency (ns)")) == ("VALID", None)
    assert summary.stat("Min latency (ns)") > 0


@pytest.mark.parametrize("text", ["No errors encountered.", "NO ERRORS ENCOUNTERED.", "no error", "0 Errors"])
def test_a_count_in_any_case(tmp_path, text):
    path = tmp_path / "mlperf_log_summary.txt"
    path.write_text(f"{text}\n")
    assert SummaryLog.read(path).errors == 0


def test_a_line_of_spaces_takes_no_time(tmp_path):
    path = tmp_path / "mlperf_log_summary.txt"
    path.write_text("a" + " " * 60_000 + "b\nNo warnings encountered.\nNo errors encountered.\n")
    begin = time.process_time()
    assert SummaryLog.read(path).errors == 0
    assert time.process_time() - begin < 1


def test_one_pass_reads_and_hashes(loadgen_runs):
    path = loadgen_runs["Server", "performance"] / "mlperf_log_summary.txt"
    with FilePass(path) as file:
        assert SummaryLog.read(file) == SummaryLog.read(path)
        assert file.sha256() == hashlib.sha256(path.read_bytes()).hexdigest()


@settings(max_examples=60, deadline=None)
@given(cut=st.integers(0, 4000), byte=st.integers(0, 255), at=st.integers(0, 3999))
def test_mutations_give_a_summary_or_a_log_error(loadgen_runs, tmp_path_factory, cut, byte, at):
    mutated = bytearray((loadgen_runs["Server", "performance"] / "mlperf_log_summary.txt").read_bytes()[:cut])
    mutated[at : at + 1] = bytes([byte])
    path = tmp_path_factory.mktemp("mutated") / "mlperf_log_summary.txt"
    path.write_bytes(bytes(mutated))
    try:
        summary = SummaryLog.read(path)
    except LogError as error:
        assert str(path) in error.where
    else:
        assert summary.errors >= 0
        summary.percentiles()


@pytest.mark.shared
@pytest.mark.skipif(not REAL.exists(), reason="the shared data folder is not beside the repository")
def test_published_summaries_of_another_round():
    summaries = {p.as_posix(): SummaryLog.read(p) for p in REAL.rglob("mlperf_log_summary.txt")}
    assert len(summaries) == 12
    server = next(s for p, s in summaries.items() if "gpt-oss-120b/Server/performance" in p)
    assert server.headline == ("Completed tokens per second", 956522.81)
    assert server.percentiles()["time to output token (ns)"][99.0] == 61644329
