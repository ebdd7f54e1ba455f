from __future__ import annotations

import hashlib
import subprocess
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.logs import AccuracyLog, FilePass, LogError, is_shortened
from harness.logs.files import MAX_LINE_BYTES
from tests.logs.hostile import ODD_VALUES

REAL = Path(__file__).parents[3] / "shared" / "data" / "real_v6.0" / "closed"
SEPARATOR, KEPT_BYTES = b"\n\n...\n\n", 4096
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
    assert not is_shortened(path, SEPARATOR, KEPT_BYTES)


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
        ("", "cut", None),
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
        (f"[\n{ENTRY.replace(': 7', ': NaN')}\n]\n", "qsl_idx is NaN", 2),
        (f"[\n{ENTRY.replace(': 7', f': {1 << 63}')}\n]\n", "qsl_idx", 2),
        (f"[\n{ENTRY.replace(': 7', f': {10**400}')}\n]\n", "qsl_idx", 2),
        (f"[\n{ENTRY.replace(': 7', ': ' + '[' * 200_000)}\n]\n", "not JSON", 2),
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
    whole = ("[\n" + ",\n".join([ENTRY] * 200) + "\n]\n").encode()
    path = tmp_path / "mlperf_log_accuracy.json"
    path.write_bytes(whole)
    assert not is_shortened(path, SEPARATOR, KEPT_BYTES)
    path.write_bytes(whole[:KEPT_BYTES] + SEPARATOR + whole[-KEPT_BYTES:])
    assert is_shortened(path, SEPARATOR, KEPT_BYTES)
    path.write_bytes(b"[\n")
    assert not is_shortened(path, SEPARATOR, KEPT_BYTES)
    with pytest.raises(LogError, match="no such file"):
        is_shortened(tmp_path / "absent", SEPARATOR, KEPT_BYTES)


def test_one_pass_reads_and_hashes(loadgen_runs, tmp_path):
    path = loadgen_runs["Offline", "accuracy"] / "mlperf_log_accuracy.json"
    with FilePass(path) as file:
        assert not is_shortened(file, SEPARATOR, KEPT_BYTES)
        assert len(list(AccuracyLog.through(file))) == 4395
        assert file.sha256() == hashlib.sha256(path.read_bytes()).hexdigest()
    bad = written(tmp_path, f"[\n{ENTRY},\n{{\n" + f"{ENTRY}\n" * 50_000)
    with FilePass(bad) as file:
        with pytest.raises(LogError, match="cut in the middle"):
            list(AccuracyLog.through(file))
        assert file.sha256() == hashlib.sha256(bad.read_bytes()).hexdigest()


def write_log(path: Path, entries: int, answer_tokens: int, line_end: str = "\n") -> int:
    """A log in LoadGen's layout, or all on one line; its size."""
    template = '{{ "seq_id" : {0}, "qsl_idx" : {0}, "data" : "{1}", "token_count" : {2} }}'
    data = "01000000" * answer_tokens
    with path.open("w") as handle:
        handle.write("[" + line_end)
        for number in range(entries):
            handle.write(
                template.format(number, data, answer_tokens) + ("," if number < entries - 1 else "") + line_end
            )
        handle.write("]" + line_end)
    return path.stat().st_size


def test_a_large_log_is_read_and_hashed_in_constant_memory(tmp_path):
    path = tmp_path / "mlperf_log_accuracy.json"
    assert write_log(path, 2000, 2500) > 40e6
    tracemalloc.start()
    try:
        with FilePass(path) as file:
            assert sum(len(e.tokens) for e in AccuracyLog.through(file)) == 2000 * 2500
            assert len(file.sha256()) == 64
        assert tracemalloc.get_traced_memory()[1] < 2e6
    finally:
        tracemalloc.stop()


def test_an_array_on_one_line_is_refused_in_bounded_memory(tmp_path):
    path = tmp_path / "mlperf_log_accuracy.json"
    assert write_log(path, 2000, 2500, line_end="") > 40e6
    tracemalloc.start()
    try:
        with FilePass(path) as file:
            with pytest.raises(LogError, match="a line of more than") as caught:
                list(AccuracyLog.through(file))
            file.sha256()
        assert tracemalloc.get_traced_memory()[1] < 3 * MAX_LINE_BYTES
    finally:
        tracemalloc.stop()
    assert caught.value.line == 1


_MEASURE = """
import resource, sys
from pathlib import Path
from harness.logs import AccuracyLog, FilePass
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
with FilePass(Path(sys.argv[1])) as file:
    count = sum(1 for _ in AccuracyLog.through(file))
    file.sha256()
print(count, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.slow
def test_a_log_of_350_megabytes_takes_no_more_than_a_few(tmp_path):
    path = tmp_path / "mlperf_log_accuracy.json"
    assert write_log(path, 4395, 10_000) > 350e6
    done = subprocess.run([sys.executable, "-c", _MEASURE, str(path)], capture_output=True, text=True, check=True)
    count, grown_kib = map(int, done.stdout.split())
    path.unlink()
    assert count == 4395
    assert grown_kib < 16 << 10


@settings(max_examples=60, deadline=None)
@given(cut=st.integers(0, 600), byte=st.integers(0, 255), at=st.integers(0, 599))
def test_mutations_give_entries_or_a_log_error(loadgen_runs, tmp_path_factory, cut, byte, at):
    mutated = bytearray((loadgen_runs["Server", "accuracy"] / "mlperf_log_accuracy.json").read_bytes()[:cut])
    mutated[at : at + 1] = bytes([byte])
    path = tmp_path_factory.mktemp("mutated") / "mlperf_log_accuracy.json"
    path.write_bytes(bytes(mutated))
    assert_read(path, 4)


@settings(max_examples=100, deadline=None)
@given(key=st.sampled_from(["0", "7", "2", '"01000000FEFFFFFF"']), odd=ODD_VALUES)
def test_odd_values_give_entries_or_a_log_error(tmp_path_factory, key, odd):
    text = ENTRY.replace(f": {key}", f": {odd}", 1)
    assert text != ENTRY or odd == key
    assert_read(written(tmp_path_factory.mktemp("odd"), f"[\n{text}\n]\n"), 1)


def assert_read(path: Path, most: int) -> None:
    try:
        entries = [(e.tokens, e.token_count) for e in AccuracyLog(path)]
    except LogError as error:
        assert str(path) in error.where
    else:
        assert len(entries) <= most


@pytest.mark.shared
@pytest.mark.skipif(not REAL.exists(), reason="the shared data folder is not beside the repository")
def test_published_accuracy_logs_are_shortened():
    paths = [p for p in REAL.rglob("mlperf_log_accuracy.json") if "performance" not in p.parts]
    assert len(paths) == 8
    assert all(is_shortened(p, SEPARATOR, KEPT_BYTES) for p in paths)
    for path in paths:
        with pytest.raises(LogError, match=r"shortened|cut in the middle"):
            list(AccuracyLog(path))
