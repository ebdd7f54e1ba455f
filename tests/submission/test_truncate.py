from __future__ import annotations

import hashlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.errors import Refused
from harness.rules import load
from harness.submission.truncate import file_accuracy, is_truncated

PACK = load("v6.1")
KEPT = PACK.accuracy_log_kept_bytes.value
SEPARATOR = PACK.accuracy_log_separator.value.encode()


def log_of(folder, size):
    log = folder / "mlperf_log_accuracy.json"
    log.write_bytes((b"0123456789abcdef" * (size // 16 + 1))[:size])
    return log


@pytest.mark.parametrize("size", [0, 4, KEPT - 1])
def test_small_logs_stay_whole(tmp_path, size):
    log = log_of(tmp_path, size)
    filed = file_accuracy(log, b"score\n", PACK)
    assert filed.log == log.read_bytes()
    assert filed.text == b"score\n\nhash=" + hashlib.sha256(filed.log).hexdigest().encode() + b"\n"


@pytest.mark.parametrize("size", [KEPT, KEPT + 1, 2 * KEPT, 100_000])
def test_others_keep_both_ends(tmp_path, size):
    log = log_of(tmp_path, size)
    whole = log.read_bytes()
    filed = file_accuracy(log, b"score\n", PACK)
    assert filed.log == whole[:KEPT] + SEPARATOR + whole[-KEPT:]
    assert len(filed.log) <= PACK.accuracy_log_max_bytes.value
    assert (filed.sha256_full, filed.bytes_full) == (hashlib.sha256(whole).hexdigest(), size)
    assert log.read_bytes() == whole


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("log")


@settings(max_examples=30, deadline=None)
@given(size=st.integers(0, 40_000), text=st.binary(max_size=200).filter(lambda t: b"hash=" not in t))
def test_filing_what_was_filed_changes_nothing(folder, size, text):
    filed = file_accuracy(log_of(folder, size), text, PACK)
    log = folder / "again.json"
    log.write_bytes(filed.log)
    again = file_accuracy(log, filed.text, PACK)
    assert (again.log, again.text, again.sha256_full) == (filed.log, filed.text, filed.sha256_full)


def test_the_hash_of_another_log_is_refused(tmp_path):
    with pytest.raises(Refused, match="another accuracy log"):
        file_accuracy(log_of(tmp_path, 50_000), b"score\n\nhash=" + b"0" * 64 + b"\n", PACK)


def test_a_whole_log_is_not_truncated(tmp_path):
    assert not is_truncated(log_of(tmp_path, 50_000), PACK)
