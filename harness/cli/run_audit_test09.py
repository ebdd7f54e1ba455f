"""``run_audit_test09``: the audit TEST09 of each scenario."""

from __future__ import annotations

from harness.cli import run_harness


def run(argv: list[str]) -> int:
    """Runs the audit. 0: it passes and its run is VALID; 1: it ended, and the verdict is no."""
    return run_harness.run_audit("run_audit_test09", "TEST09", argv)
