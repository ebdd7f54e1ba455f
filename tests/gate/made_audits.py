"""The folders of a row's audits as the verification leaves them, of real logs."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

from harness.logs import DetailLog
from harness.rules import load
from tests.logs.loadgen_runs import edit

AUDITS = load("v6.1").benchmark("gpt-oss-120b").audit_rules
LOGS = ("mlperf_log_detail.txt", "mlperf_log_summary.txt")
MEAN = 1300
"""Tokens an answer has in the mean, of those that the performance data set asks for."""
RULE = "=" * 80

TEST07_TEXT = f"""\
2026-08-20 10:20:00,000 - INFO - Loaded 990 log entries

Printing for submission_checker:

'exact_match': 61.616

{RULE}
TEST07 Verification Summary
{RULE}
Accuracy score: 61.616
Accuracy threshold: 60.698
Accuracy check pass: True
TEST PASS
"""
TEST09_TEXT = f"""\
{RULE}
TEST09: Verify Output Token Length in Performance Mode
{RULE}

Total samples: 6396
Mean output tokens: {MEAN:.2f}

{RULE}
Verification Results
{RULE}
Mean output tokens: {MEAN:.2f}
Min threshold: 1150.38
Max threshold: 1406.02
Min check pass: True
Max check pass: True

TEST PASS
"""
TEXTS = {"TEST07": TEST07_TEXT, "TEST09": TEST09_TEXT}


def make_audit(folder: Path, run: Path, scenario: str) -> None:
    """Lays out ``folder``, which is named after the audit, with the logs of ``run``."""
    name, performance, accuracy = folder.name, folder / "performance" / "run_1", folder / "accuracy"
    performance.mkdir(parents=True)
    accuracy.mkdir()
    for log in LOGS:
        shutil.copy(run / log, performance / log)
    lengthen(performance / LOGS[0], scenario)
    whole = (run / "mlperf_log_accuracy.json").read_bytes()
    (accuracy / "mlperf_log_accuracy.json").write_bytes(shortened(whole))
    (accuracy / "accuracy.txt").write_text(f"hash={hashlib.sha256(whole).hexdigest()}\n")
    (folder / AUDITS[name].verdict_file.value).write_text(TEXTS[name])


def lengthen(detail: Path, scenario: str) -> None:
    """Makes the tokens a second those of answers of :data:`MEAN` tokens."""
    samples, tokens = {
        "Offline": ("result_samples_per_second", "result_tokens_per_second"),
        "Server": ("result_completed_samples_per_sec", "result_completed_tokens_per_second"),
    }[scenario]
    edit(detail, **{tokens: MEAN * DetailLog.read(detail).value(samples)})


def shortened(whole: bytes) -> bytes:
    pack = load("v6.1")
    kept = pack.accuracy_log_kept_bytes.value
    return whole[:kept] + pack.accuracy_log_separator.value.encode() + whole[-kept:]
