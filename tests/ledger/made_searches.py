"""Searches that never were."""

from __future__ import annotations

from typing import Any

from harness.ledger.search import LimitEcho, SearchEcho, SearchRun


def search_run(**changes: Any) -> SearchRun:
    """A probe of BOX that passed."""
    fields: dict[str, Any] = {
        "run": "BOX/gpt-oss-120b/Server/probe#1",
        "kind": "probe",
        "purpose": "first guess",
        "rate": 71.3,
        "came": 70.9,
        "sustained": 70.8,
        "queries": 8556,
        "seconds": 121.4,
        "limits": [
            LimitEcho(name="TTFT", limit_ms=3000, p50_ms=310.2, p99_ms=1987.0, queries=5704, over=3),
            LimitEcho(name="TPOT", limit_ms=80, p50_ms=12.34, p99_ms=14.0, queries=5704, over=0),
        ],
        "outcome": "pass",
        "reason": "TTFT p99 at 66% of its limit",
        **changes,
    }
    return SearchRun(**fields)


def search(*runs: SearchRun, **changes: Any) -> SearchEcho:
    """A search of BOX that found a rate."""
    fields: dict[str, Any] = {
        "search": "01",
        "system": "BOX",
        "benchmark": "gpt-oss-120b",
        "scenario": "Server",
        "test_run": False,
        "started_at": "2026-01-01T00:00:00+00:00",
        "ended_at": "2026-01-01T00:40:00+00:00",
        "guess": 71.3,
        "guess_from": "configured",
        "rules": {"tolerance": 0.01},
        "runs": list(runs or (search_run(),)),
        "found": 70.9,
        **changes,
    }
    return SearchEcho(**fields)
