from __future__ import annotations

import hashlib
import json
import re
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.logs import DetailLog, FilePass, LogError
from harness.logs.detail import KEPT
from harness.logs.files import MAX_LINE_BYTES
from harness.logs.loaded_rows import MAX_ROWS
from tests.logs.hostile import ODD_VALUES, ask_everything
from tests.logs.loadgen_runs import edit

REAL = Path(__file__).parents[3] / "shared" / "data" / "real_v6.0" / "closed"


def record(key: str, value: object, **metadata: bool) -> str:
    said = {"is_error": False, "is_warning": False} | metadata
    return ":::MLLOG " + json.dumps({"key": key, "value": value, "time_ms": 0.1, "metadata": said}) + "\n"


def nested(levels: int) -> list[object]:
    """Lists in lists, so many levels that a record (two levels more) has."""
    value: list[object] = []
    for _ in range(levels - 2):
        value = [value]
    return value


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


def test_the_first_of_a_repeated_key_counts_and_loaded_sets_add_up(tmp_path):
    text = record("a", 1) + record("loaded_qsl_set", [1, 2]) + record("a", 2) + record("loaded_qsl_set", [2, 3])
    log = DetailLog.read(written(tmp_path, text))
    assert log.value("a") == 1
    assert log.lines["a"] == 1
    assert (log.loaded_samples, log.loaded_distinct) == (4, 3)
    assert log.value("loaded_qsl_set") is None


@pytest.mark.parametrize("first", [{}, {"is_warning": True}, {"is_error": True}])
@pytest.mark.parametrize("second", [{}, {"is_warning": True}, {"is_error": True}])
def test_a_key_with_two_values_is_told_whatever_its_flags(tmp_path, first, second):
    key = "effective_min_duration_ms"
    log = DetailLog.read(written(tmp_path, record(key, 1, **first) + record(key, 600000, **second)))
    assert log.value(key) == 1
    assert [(r.key, r.value, r.line) for r in log.contradictions] == [(key, 600000, 2)]


@pytest.mark.parametrize(("first", "second"), [(1, True), (1, 1.0), ([1], [True]), (1, "1"), (1, None)])
def test_values_that_python_takes_for_equal_are_told_apart(tmp_path, first, second):
    assert len(DetailLog.read(written(tmp_path, record("a", first) + record("a", second))).contradictions) == 1


def test_messages_may_differ_and_equal_values_are_no_contradiction(tmp_path):
    keys = ("generic_message", "error_runtime", "error_invalid_config", "warning_generic_message")
    texts = [record(key, text) for key in keys for text in "xy"] + [record("a", 1), record("a", 1)]
    assert DetailLog.read(written(tmp_path, "".join(texts))).contradictions == ()


def test_of_many_contradictions_the_first_are_kept(tmp_path):
    log = DetailLog.read(written(tmp_path, "".join(record("a", i) for i in range(KEPT + 50))))
    assert [r.value for r in log.contradictions] == list(range(1, KEPT + 1))


def test_all_reasons_of_an_invalid_run_are_told(tmp_path):
    texts = [record("result_invalid_reason", text) for text in ("too short", "", "too slow")]
    log = DetailLog.read(written(tmp_path, "".join(texts)))
    assert log.invalid_reasons == ("too short", "too slow")
    assert log.contradictions == ()


def test_blank_lines_are_not_strays(tmp_path):
    assert DetailLog.read(written(tmp_path, record("a", 1) + " \n" * 100_000)).stray_lines == 0


def test_crlf_and_stray_lines_are_borne(tmp_path):
    log = DetailLog.read(written(tmp_path, (record("a", 1) + "hello\n\n" + record("b", 2)).replace("\n", "\r\n")))
    assert log.lines["b"] == 4
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
        (record("a", 1) + ":::MLLOG " + "[" * 100_000 + "\n", "not JSON: nested without end", 2),
        (record("a", 1) + record("b", nested(65)), "nested deeper than 64", 2),
        (record("a", 1) + record("b", "\ud800"), "half of a character", 2),
        (record("a", 1) + record("result_invalid_reason", 3), "no text", 2),
        (record("loaded_qsl_set", [1, True]), "not a list of row numbers", 1),
        (record("a", 1).encode() + b":::MLLOG {\r\r\n", "carriage return", 2),
        (record("a", 1) + "\n" * 100_001, "more than 100000 lines", 100_002),
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
        (float("nan"), lambda log: log.number("k")),
        (float("inf"), lambda log: log.number("k")),
        (float("-inf"), lambda log: log.integer("k")),
        (1 << 63, lambda log: log.number("k")),
        (-(1 << 63), lambda log: log.number("k")),
        (10**400, lambda log: log.number("k")),
        (1 << 64, lambda log: log.integer("k")),
        (-(1 << 63), lambda log: log.integer("k")),
    ],
)
def test_a_value_of_the_wrong_type_is_told_with_its_line(tmp_path, value, ask):
    log = DetailLog.read(written(tmp_path, record("a", 1) + record("k", value)))
    with pytest.raises(LogError) as caught:
        ask(log)
    assert caught.value.line == 2


@pytest.mark.parametrize("value", [(1 << 63) - 1, -(1 << 63) + 1, 0, 1.5e300])
def test_numbers_within_bounds(tmp_path, value):
    assert DetailLog.read(written(tmp_path, record("k", value))).number("k") == value


def test_a_seed_may_have_all_of_64_bits(tmp_path):
    assert DetailLog.read(written(tmp_path, record("k", (1 << 64) - 1))).integer("k") == (1 << 64) - 1


def test_the_last_issue_of_a_single_stream(tmp_path):
    """LoadGen's rate is that of all queries but the first, up to the last issue."""
    log = DetailLog.read(
        written(tmp_path, record("result_query_count", 5) + record("result_qps_with_loadgen_overhead", 0.1))
    )
    assert log.issued_span_ns == 40_000_000_000
    assert log.scheduled_span_ns is None


def test_a_rate_that_no_run_has(tmp_path):
    text = record("result_query_count", 1000) + record("result_scheduled_samples_per_sec", 5e-324)
    with pytest.raises(LogError, match="result_scheduled_samples_per_sec"):
        _ = DetailLog.read(written(tmp_path, text)).scheduled_span_ns


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


def test_a_line_without_end(tmp_path):
    with pytest.raises(LogError, match="a line of more than") as caught:
        DetailLog.read(written(tmp_path, record("a", 1) + record("a", "x" * MAX_LINE_BYTES)))
    assert caught.value.line == 2


def test_records_without_end(tmp_path):
    one = record("a", "x" * 1_000_000)
    with pytest.raises(LogError, match="characters") as caught:
        DetailLog.read(written(tmp_path, "".join(one.replace('"a"', f'"a{i}"') for i in range(12))))
    assert caught.value.line == 9


@pytest.mark.parametrize("row", [-1, MAX_ROWS, 10**30])
def test_rows_that_no_library_has(tmp_path, row):
    with pytest.raises(LogError, match="rows outside"):
        DetailLog.read(written(tmp_path, record("loaded_qsl_set", [0, row])))
    log = DetailLog.read(written(tmp_path, record("loaded_qsl_set", [0, MAX_ROWS - 1, 0])))
    assert (log.loaded_samples, log.loaded_distinct) == (3, 2)
    assert DetailLog.read(written(tmp_path, record("loaded_qsl_set", []))).loaded_samples == 0


@pytest.mark.parametrize(
    ("body", "counts"),
    [
        ("", (0, 0)),
        ("0", (1, 1)),
        ("3,1,2,3", (4, 3)),
        ("3, 1,2,3", (4, 3)),  # not as LoadGen writes it
        (f"0,{MAX_ROWS - 1}", (2, 2)),
        *(
            (body, None)
            for body in (",", "1,", ",1", "1,,2", "01", "1,02", "00", "-1", "1.0", "true", "1 2", "1e3", "[1]")
        ),
        *((f"1,{row}", None) for row in (MAX_ROWS, 10**18, 10**30)),
    ],
)
def test_loaded_rows_as_loadgen_writes_them_and_as_it_does_not(tmp_path, body, counts):
    path = written(tmp_path, record("a", 1) + record("loaded_qsl_set", []).replace("[]", f"[{body}]"))
    if counts is None:
        with pytest.raises(LogError) as caught:
            DetailLog.read(path)
        assert caught.value.line == 2
    else:
        log = DetailLog.read(path)
        assert (log.loaded_samples, log.loaded_distinct) == counts


def test_what_follows_the_loaded_rows_is_read_too(tmp_path):
    path = written(tmp_path, record("loaded_qsl_set", [1]).replace("[1]", "[1]x"))
    with pytest.raises(LogError, match="not JSON"):
        DetailLog.read(path)
    log = DetailLog.read(
        written(tmp_path, record("loaded_qsl_set", []).replace("[]", "[1,2]").replace("false", "true"))
    )
    assert (log.error_count, log.warning_count, log.loaded_samples) == (1, 1, 2)


def test_the_loaded_rows_are_not_kept(tmp_path):
    path = written(tmp_path, record("a", 1) + record("loaded_qsl_set", list(range(48289))))
    tracemalloc.start()
    try:
        log = DetailLog.read(path)
        held, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (log.loaded_samples, log.loaded_distinct) == (48289, 48289)
    assert held < 50_000
    assert most < 10_000_000


def test_one_pass_reads_and_hashes(tmp_path, loadgen_runs):
    path = loadgen_runs["Server", "performance"] / "mlperf_log_detail.txt"
    expected = hashlib.sha256(path.read_bytes()).hexdigest()
    with FilePass(path) as file:
        assert DetailLog.read(file) == DetailLog.read(path)
        assert file.sha256() == expected
    bad = written(tmp_path, b"no log\n" + b"x" * 3_000_000)
    with FilePass(bad) as file:
        with pytest.raises(LogError, match="not a detail log"):
            DetailLog.read(file)
        assert file.sha256() == hashlib.sha256(bad.read_bytes()).hexdigest()


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_mutations_give_a_log_or_a_log_error(loadgen_runs, tmp_path_factory, data):
    original = (loadgen_runs["Offline", "accuracy"] / "mlperf_log_detail.txt").read_bytes()
    mutated = bytearray(original[: data.draw(st.integers(0, len(original)))])
    for _ in range(data.draw(st.integers(0, 3))):
        if mutated:
            mutated[data.draw(st.integers(0, len(mutated) - 1))] = data.draw(st.integers(0, 255))
    assert_read(written(tmp_path_factory.mktemp("mutated"), bytes(mutated)))


@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_odd_values_give_a_log_or_a_log_error(loadgen_runs, tmp_path_factory, data):
    lines = (loadgen_runs["Server", "performance"] / "mlperf_log_detail.txt").read_text().splitlines(keepends=True)
    at = data.draw(st.integers(0, len(lines) - 1))
    field = data.draw(st.sampled_from(["key", "value", "time_ms", "metadata"]))
    odd = data.draw(ODD_VALUES)
    parts = re.fullmatch(r'(.*"key": )(.*)(, "value": )(.*)(, "time_ms": )(.*)(, .*"metadata": )(.*)(}\n)', lines[at])
    assert parts, lines[at]
    pieces = list(parts.groups())
    pieces[1 + 2 * ["key", "value", "time_ms", "metadata"].index(field)] = odd
    lines[at] = "".join(pieces)
    assert_read(written(tmp_path_factory.mktemp("odd"), "".join(lines)))


def assert_read(path: Path) -> None:
    try:
        log = DetailLog.read(path)
    except LogError as error:
        assert str(path) in error.where
        return
    assert log.values or log.loaded_samples
    ask_everything(log, [*log.values, "absent"])


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
