"""What tests of agentic legs share."""

from __future__ import annotations

from harness.ledger import RunRecord

NAME = "qwen3.6-27b"


def rejects(record: RunRecord) -> set[str]:
    assert record.verdict is not None
    return {finding.rule for finding in record.verdict.findings if finding.severity == "reject"}
