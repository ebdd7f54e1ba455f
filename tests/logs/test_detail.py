from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.logs import DetailLog, LogError
from harness.logs.detail import KEPT
from tests.logs.loadgen_runs import edit

REAL = Path(__file__).parents[3] / "shared" / "data" / "real_v6.0" / "closed"


def record(key: str, value: object, **metadata: bool) -> str:
    said = {"is_error": False, "is_warning": False} | metadata
    return ":::MLLOG " + json.dumps({"key": key, "value": value, "time_ms": 0.1, "metadata": said}) + "\n"


def written(tmp_path: Path, text: str | bytes) -> Path:
    path = tmp_path / "mlperf_log_detail.txt"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def test_a_real_server_run(loadgen_runs):
    log = DetailLog.read(loadgen_runs["Server", "performance"] / "mlperf_log_detail.txt")
    assert (log.scenario, log.mode, log.validity) == ("Server", "PerformanceOnly", "VALID")
    assert log.loadgen_version.startswith("6.0.17")
    assert log.effective("min_duration_ms") == log.requested("min_duration_ms") == 1000
    assert log.effective("qsl_rng_seed") == 2085463073848966840
    assert log.reported_total_count == log.loaded_samples == log.loaded_distinct == log.issued_samples == 6396
    assert (log.error_count, log.stray_lines) == (0, 0)
    # Both spans are measured by different clocks; the last query ends after it was scheduled.
    assert 1_000_000_000 <= log.scheduled_span_ns <= log.wall_span_ns + 5_000_000
    assert log.number("result_completed_tokens_per_second") > 0
    assert log.flag("early_stopping_met") is True


def test_a_real_offline_run_says_why_it_is_invalid(loadgen_runs):
    log = DetailLog.read(loadgen_runs["Offline", "performance"] / "mlperf_log_detail.txt")
    assert log.validity == "INVALID"
    assert "Increase expected QPS" in log.invalid_reasons[0]
    assert log.scheduled_span_ns is None
    assert log.issued_samples == 2 * 6396
    assert abs(log.wall_span_ns - log.number("result_max_latency_ns")) < 50_000_000


def test_a_real_accuracy_run_has_no_verdict(loadgen_runs):
    log = DetailLog.read(loadgen_runs["Server", "accuracy"] / "mlperf_log_detail.txt")
    assert (log.mode, log.validity, log.invalid_reasons) == ("AccuracyOnly", None, ())
    assert log.loaded_distinct == 4395


def test_errors_are_counted_and_the_first_are_kept(broken_run):
    log = DetailLog.read(broken_run / "mlperf_log_detail.txt")
    assert log.validity == "INVALID"
    assert log.error_count == log.value("num_errors") > KEPT
    assert len(log.errors) == KEPT
    assert log.errors[0].key == "error_runtime"
    assert "tokens" in str(log.errors[0])


def test_the_last_of_a_repeated_key_wins_and_loaded_sets_add_up(tmp_path):
    text = record("a", 1) + record("loaded_qsl_set", [1, 2]) + record("a", 2) + record("loaded_qsl_set", [2, 3])
    log = DetailLog.read(written(tmp_path, text))
    assert log.value("a") == 2
    assert log.lines["a"] == 3
    assert (log.loaded_samples, log.loaded_distinct) == (4, 3)
    assert log.value("loaded_qsl_set") is None


def test_a_key_with_two_values_is_told(tmp_path):
    repeated = [record("generic_message", "x"), record("error_runtime", "x", is_error=True), record("a", 1)]
    again = [record("generic_message", "y"), record("error_runtime", "y", is_error=True), record("a", 1)]
    assert DetailLog.read(written(tmp_path, "".join(repeated + again))).contradictions == ()
    log = DetailLog.read(written(tmp_path, "".join([*repeated, *again, record("a", 2)])))
    assert [(r.key, r.value, r.line) for r in log.contradictions] == [("a", 2, 7)]


def test_crlf_and_stray_lines_are_borne(tmp_path):
    log = DetailLog.read(written(tmp_path, (record("a", 1) + "hello\n\n" + record("b", 2)).replace("\n", "\r\n")))
    assert (log.value("a"), log.value("b"), log.stray_lines) == (1, 2, 1)


@pytest.mark.parametrize(
    ("text", "what", "line"),
    [
        ("", "empty", None),
        ("hello\n", "not a detail log", 1),
        (record("a", 1) + ':::MLLOG {"key": "b", "val', "not JSON", 2),
        (record("a", 1) + ":::MLLOG [1]\n", "without key", 2),
        (record("a", 1) + ':::MLLOG {"key": "b"}\n', "without key", 2),
        (record("a", 1) + ':::MLLOG {"key": "b", "value": 1, "metadata": 3}\n', "metadata", 2),
        (record("loaded_qsl_set", [1, "x"]), "not a list of row numbers", 1),
        (record("loaded_qsl_set", 7), "not a list of row numbers", 1),
        (record("a", 1) + ':::MLLOG {"key": "b", "value": 1}\n', "metadata", 2),
        (record("a", 1) + ':::MLLOG {"key": "b", "value": 1, "metadata": {}}\n', "an error or a warning", 2),
        (record("a", 1) + record("b", 1, is_error=1), "an error or a warning", 2),
        (record("a", 1).encode() + b":::MLLOG \xff\xfe\n", "not UTF-8", 2),
        (record("a", 1).encode() + b"stray \xff\n", "not UTF-8", 2),
        (record("a", 1).encode() + b":::MLLOG {\r}\n", "carriage return", 2),
        (record("a", 1) + ':::MLLOG {"key": "b", "value": ' + "9" * 5000 + "}\n", "not JSON", 2),
        (record("a", 1) + ":::MLLOG " + "[" * 100_000 + "\n", "not JSON", 2),
    ],
)
def test_what_loadgen_never_writes_is_told_with_its_line(tmp_path, text, what, line):
    path = written(tmp_path, text)
    with pytest.raises(LogError, match=what) as caught:
        DetailLog.read(path)
    assert caught.value.line == line
    assert caught.value.where == (str(path) if line is None else f"{path}:{line}")
    assert caught.value.exit_code == 3


@pytest.mark.parametrize(
    ("value", "ask"),
    [
        ("x", lambda log: log.number("k")),
        (True, lambda log: log.number("k")),
        (1.5, lambda log: log.integer("k")),
        (1, lambda log: log.flag("k")),
        ([1], lambda log: log.text("k")),
    ],
)
def test_a_value_of_the_wrong_type_is_told_with_its_line(tmp_path, value, ask):
    log = DetailLog.read(written(tmp_path, record("a", 1) + record("k", value)))
    with pytest.raises(LogError) as caught:
        ask(log)
    assert caught.value.line == 2


def test_a_time_that_is_none(loadgen_runs, tmp_path):
    source = loadgen_runs["Server", "performance"] / "mlperf_log_detail.txt"
    log = DetailLog.read(edit(written(tmp_path, source.read_bytes()), power_end="yesterday"))
    with pytest.raises(LogError, match="power_end"):
        _ = log.wall_span_ns


def test_no_file_and_no_plain_file(tmp_path):
    with pytest.raises(LogError, match="no such file"):
        DetailLog.read(tmp_path / "absent.txt")
    with pytest.raises(LogError, match="not a plain file"):
        DetailLog.read(tmp_path)


def test_a_line_without_end(tmp_path, monkeypatch):
    monkeypatch.setattr("harness.logs.files.lines.__defaults__", (100,))
    with pytest.raises(LogError, match="more than 100 bytes"):
        DetailLog.read(written(tmp_path, record("a", "x" * 200)))


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_mutations_give_a_log_or_a_log_error(loadgen_runs, tmp_path_factory, data):
    original = (loadgen_runs["Offline", "accuracy"] / "mlperf_log_detail.txt").read_bytes()
    mutated = bytearray(original[: data.draw(st.integers(0, len(original)))])
    for _ in range(data.draw(st.integers(0, 3))):
        if mutated:
            mutated[data.draw(st.integers(0, len(mutated) - 1))] = data.draw(st.integers(0, 255))
    path = written(tmp_path_factory.mktemp("mutated"), bytes(mutated))
    try:
        log = DetailLog.read(path)
    except LogError as error:
        assert str(path) in error.where
    else:
        assert log.values or log.loaded_samples


@pytest.mark.shared
@pytest.mark.skipif(not REAL.exists(), reason="the shared data folder is not beside the repository")
def test_published_logs_of_another_round():
    logs = {p: DetailLog.read(p) for p in REAL.rglob("mlperf_log_detail.txt")}
    assert len(logs) == 12
    assert all(log.error_count == log.stray_lines == 0 for log in logs.values())
    server = next(log for p, log in logs.items() if "gpt-oss-120b/Server/performance" in p.as_posix())
    assert server.number("result_completed_tokens_per_second") == 956523
    assert server.loadgen_version == "6.0.8 @ NA"
    assert server.scheduled_span_ns == pytest.approx(server.value("generated_query_duration"), rel=1e-5)
    assert server.wall_span_ns == 1_245_503_000_000
