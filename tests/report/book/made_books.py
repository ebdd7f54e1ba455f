"""Small books for tests: a row, its run, and what a test changes of them."""

from __future__ import annotations

import dataclasses
from typing import Any

from harness.report.book.content import Book, Distribution, Margin, RowView, RunView, Subset, Unit

BOUNDARY = (
    ("benchmark", "gpt-oss-120b"),
    ("scenario", "Server"),
    ("division", "closed"),
    ("accelerator", "NVIDIA H200"),
    ("nodes", "1"),
)


def figure(key: str = "ttft", *, scale: float = 1.0, unit: Unit = "ms") -> Distribution:
    """A distribution of which the percentiles are 100, 200 and 300, times ``scale``."""
    p50, p90, p99 = (scale * value for value in (100, 200, 300))
    return Distribution(
        key=key,
        title=key.upper(),
        unit=unit,
        count=10,
        mean=p50,
        p50=p50,
        p90=p90,
        p99=p99,
        max=p99,
        quantiles=((0.5, p50), (0.9, p90), (0.99, p99)),
        edges=(),
        counts=(),
    )


def margin(measured: float | None = 2000.0, *, name: str = "p99 TTFT") -> Margin:
    return Margin(name, "ms", measured, 3000.0, "below", measured is not None and measured < 3000, "the rules")


def run(key: str = "run-1", **changed: Any) -> RunView:
    fields: dict[str, Any] = {
        "key": key,
        "title": "box/gpt-oss-120b/Server/performance#1",
        "leg": "performance",
        "word": "VALID",
        "headline": "1,000.00 Tokens/s",
        "place": "results/box",
        "figures": (figure(),),
        "facts": (("versions", (("harness", "0.1.0"),)), ("fingerprint", (("engine.max_batch", "64"),))),
    }
    return RunView(**fields | changed)


def accuracy_run(key: str = "run-2", *, correct: int = 80, score: float = 83.0, **changed: Any) -> RunView:
    subset = Subset("aime25", 100, correct, 100 - correct, 0, 0, None)
    target = Margin("exact_match", "", score, 82.3, "at least", score >= 82.3, "the rules")
    fields: dict[str, Any] = {"leg": "accuracy", "figures": (), "facts": (), "subsets": (subset,), "margins": (target,)}
    return run(key, **fields | {"scores": (("exact_match", score),)} | changed)


def row(**changed: Any) -> RowView:
    fields: dict[str, Any] = {
        "key": "row-1",
        "system": "box",
        "benchmark": "gpt-oss-120b",
        "scenario": "Server",
        "division": "closed",
        "category": "datacenter",
        "submitter": "Acme",
        "word": "VALID",
        "metric": "result_completed_tokens_per_second",
        "value": 1000.0,
        "unit": "Tokens/s",
        "higher_is_better": True,
        "accuracy": "exact_match 83",
        "audits": (),
        "margins": (margin(),),
        "reasons": (),
        "boundary": BOUNDARY,
        "runs": ("run-1", "run-2"),
    }
    return RowView(**fields | changed)


def book(*rows: RowView, runs: tuple[RunView, ...] | None = None, **changed: Any) -> Book:
    fields: dict[str, Any] = {
        "title": "results",
        "source": "results",
        "place": "results",
        "round": "v6.1",
        "made_at": "2026-01-01T00:00:00Z",
        "made_by": "0.1.0",
        "rows": rows or (row(),),
        "runs": (run(), accuracy_run()) if runs is None else runs,
    }
    return Book(**fields | changed)


def bounded(row_: RowView, **names: str) -> RowView:
    """The row with other values in its boundary."""
    return dataclasses.replace(row_, boundary=tuple((name, names.get(name, text)) for name, text in row_.boundary))
