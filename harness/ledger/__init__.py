"""What is remembered of every run: ``run.json`` and ``samples.arrow``."""

from harness.ledger.record import Fingerprint, RunId, RunRecord, State
from harness.ledger.store import ResultsStore, StoredRun, read_record, write_record

__all__ = ["Fingerprint", "ResultsStore", "RunId", "RunRecord", "State", "StoredRun", "read_record", "write_record"]
