"""Readers of what LoadGen and the endpoints client write: text in, typed values out.

They know nothing of rounds, benchmarks or trees.
"""

from __future__ import annotations

from harness.logs.accuracy import AccuracyEntry, AccuracyLog, is_shortened
from harness.logs.detail import DetailLog, Record
from harness.logs.documents import Document
from harness.logs.endpoints import EndpointsAudit, EndpointsLog, audit_files, read_config
from harness.logs.endpoints_accuracy import AccuracyResults, ScoredDataset
from harness.logs.errors import LogError
from harness.logs.files import FilePass
from harness.logs.summary import SummaryLog

__all__ = [
    "AccuracyEntry",
    "AccuracyLog",
    "AccuracyResults",
    "DetailLog",
    "Document",
    "EndpointsAudit",
    "EndpointsLog",
    "FilePass",
    "LogError",
    "Record",
    "ScoredDataset",
    "SummaryLog",
    "audit_files",
    "is_shortened",
    "read_config",
]
