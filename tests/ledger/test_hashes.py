from __future__ import annotations

import hashlib
from pathlib import Path

from harness.ledger.hashes import hash_files, sha256


def test_the_hash_of_a_file_longer_than_a_piece(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(bytes(range(256)) * 8192)
    assert sha256(path) == hashlib.sha256(path.read_bytes()).hexdigest()


def test_the_files_that_a_record_vouches_for(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    for name in ("logs/mlperf_log_detail.txt", "samples.arrow", "user.conf", "run.json", "worker.log"):
        (tmp_path / name).write_text(name)
    hashes = hash_files(tmp_path)
    assert list(hashes) == ["logs/mlperf_log_detail.txt", "samples.arrow", "user.conf"]
    assert hashes["user.conf"] == hashlib.sha256(b"user.conf").hexdigest()


def test_a_run_that_left_nothing(tmp_path: Path) -> None:
    assert hash_files(tmp_path) == {}
