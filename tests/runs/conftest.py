from __future__ import annotations

from tests.logs.loadgen_runs import broken_run, loadgen_runs

__all__ = ["broken_run", "loadgen_runs"]
