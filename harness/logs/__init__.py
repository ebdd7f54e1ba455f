"""Readers of what LoadGen writes. They know nothing of rounds, benchmarks or trees: text in, typed values out."""

from __future__ import annotations

from harness.logs.accuracy import AccuracyEntry, AccuracyLog, is_shortened
from harness.logs.detail import DetailLog, Record
from harness.logs.errors import LogError
from harness.logs.files import FilePass
from harness.logs.summary import SummaryLog

__all__ = [
    "AccuracyEntry",
    "AccuracyLog",
    "DetailLog",
    "FilePass",
    "LogError",
    "Record",
    "SummaryLog",
    "is_shortened",
]
