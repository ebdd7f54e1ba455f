from __future__ import annotations

import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.logs import AccuracyLog, LogError, is_truncated

REAL = Path(__file__).parents[3] / "shared" / "data" / "real_v6.0" / "closed"
ENTRY = '{ "seq_id" : 0, "qsl_idx" : 7, "data" : "01000000FEFFFFFF", "token_count" : 2 }'


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "mlperf_log_accuracy.json"
    path.write_text(text)
    return path


@pytest.mark.parametrize("scenario", ["Offline", "Server"])
def test_real_logs(loadgen_runs, scenario):
    path = loadgen_runs[scenario, "accuracy"] / "mlperf_log_accuracy.json"
    entries = list(AccuracyLog(path))
    assert sorted(e.sample for e in entries) == list(range(4395))
    assert sorted(e.sequence for e in entries) == list(range(4395))
    assert all(e.tokens.tolist() == [1, 2, 3, 4] and e.token_count == 4 for e in entries)
    assert entries[0].tokens.dtype == np.int32
    assert not is_truncated(path)


def test_a_performance_log_is_an_empty_array(loadgen_runs):
    assert list(AccuracyLog(loadgen_runs["Server", "performance"] / "mlperf_log_accuracy.json")) == []


def test_signs_and_lines(tmp_path):
    entry = next(iter(AccuracyLog(written(tmp_path, f"[\n{ENTRY}\n]\n"))))
    assert (entry.sample, entry.line, entry.tokens.tolist(), entry.token_count) == (7, 2, [1, -2], 2)
    assert entry.data == b"\x01\0\0\0\xfe\xff\xff\xff"


def test_crlf_and_the_absence_of_token_counts(tmp_path):
    text = f"[\r\n{ENTRY.replace(', ' + chr(34) + 'token_count' + chr(34) + ' : 2', '')},\r\n{ENTRY}\r\n]\r\n"
    assert [e.token_count for e in AccuracyLog(written(tmp_path, text))] == [None, 2]


@pytest.mark.parametrize(
    ("text", "what", "line"),
    [
        ("", "cut", 0),
        ("[\n", "cut", 1),
        (f"[\n{ENTRY},\n", "cut", 2),
        (f"[\n{ENTRY},\n]\n", "not JSON|not an accuracy log|cut in the middle", 3),
        (f"[\n{ENTRY}\n{ENTRY}\n]\n", "not an accuracy log", 3),
        (f"[\n{ENTRY}\n]\n{ENTRY}\n", "not an accuracy log", 4),
        (f"[\n{ENTRY[:40]}", "cut in the middle", 2),
        ('[\n{"seq_id": 1}}\n]\n', "not JSON", 2),
        ("{}\n", "not an accuracy log", 1),
        ("[\n7\n]\n", "not an object", 2),
        (f"[\n{ENTRY.replace('FFFF', 'FFF')}\n]\n", "hexadecimal digits", 2),
        (f"[\n{ENTRY.replace('FFFF', 'GGGG')}\n]\n", "not hexadecimal", 2),
        (f"[\n{ENTRY.replace('FFFF', 'é' * 4)}\n]\n", "not hexadecimal", 2),
        (f"[\n{ENTRY.replace('FFFF', 'FF')}\n]\n", "data of 7 bytes", 2),
        (f"[\n{ENTRY.replace(': 7', ': -7')}\n]\n", "qsl_idx", 2),
        (f"[\n{ENTRY.replace(': 7', ': true')}\n]\n", "qsl_idx", 2),
        (f"[\n{ENTRY.replace(': 2 }', ': 2.5 }')}\n]\n", "token_count", 2),
        ('[\n{"seq_id": 1, "qsl_idx": 2}\n]\n', "without data", 2),
        (f"[\n{ENTRY},\n\n...\n\n{ENTRY}\n]\n", "shortened for submission", 4),
    ],
)
def test_bad_logs_are_told_with_their_line(tmp_path, text, what, line):
    path = written(tmp_path, text)
    with pytest.raises(LogError, match=what) as caught:
        [e.tokens for e in AccuracyLog(path)]
    assert caught.value.line == line
    assert str(path) in caught.value.where


def test_a_shortened_log_is_told_apart(tmp_path):
    assert is_truncated(written(tmp_path, f"[\n{ENTRY},\n{{ cut\n\n...\n\ncut }}\n]\n"))


def test_a_large_log_is_read_in_constant_memory(tmp_path):
    path = tmp_path / "mlperf_log_accuracy.json"
    entry = ENTRY.replace("01000000", "01000000" * 2500) + ",\n"
    with path.open("w") as handle:
        handle.write("[\n" + entry * 2000 + ENTRY + "\n]\n")
    assert path.stat().st_size > 40e6
    tracemalloc.start()
    try:
        assert sum(len(e.tokens) for e in AccuracyLog(path)) == 2000 * 2501 + 2
        assert tracemalloc.get_traced_memory()[1] < 2e6
    finally:
        tracemalloc.stop()


@settings(max_examples=60, deadline=None)
@given(cut=st.integers(0, 600), byte=st.integers(0, 255), at=st.integers(0, 599))
def test_mutations_give_entries_or_a_log_error(loadgen_runs, tmp_path_factory, cut, byte, at):
    mutated = bytearray((loadgen_runs["Server", "accuracy"] / "mlperf_log_accuracy.json").read_bytes()[:cut])
    mutated[at : at + 1] = bytes([byte])
    path = tmp_path_factory.mktemp("mutated") / "mlperf_log_accuracy.json"
    path.write_bytes(bytes(mutated))
    try:
        entries = [e.tokens for e in AccuracyLog(path)]
    except LogError as error:
        assert str(path) in error.where
    else:
        assert len(entries) <= 4


@pytest.mark.shared
@pytest.mark.skipif(not REAL.exists(), reason="the shared data folder is not beside the repository")
def test_published_accuracy_logs_are_shortened():
    paths = [p for p in REAL.rglob("mlperf_log_accuracy.json") if "performance" not in p.parts]
    assert len(paths) == 8
    assert all(is_truncated(p) for p in paths)
    for path in paths:
        with pytest.raises(LogError, match=r"shortened|cut in the middle"):
            list(AccuracyLog(path))
