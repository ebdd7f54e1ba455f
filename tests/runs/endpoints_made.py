"""A few rows of Qwen3-VL's stand-in, a planned leg over them, and reports of the endpoints client that answer them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from harness import benchmarks
from harness.benchmarks.base import Benchmark, Dataset
from harness.config import BenchmarkFile
from harness.rules import load
from harness.runs.plan import PlannedLeg
from tests.clients.endpoints.reports import DATASET, Report
from tests.gate import made_endpoints as made

PACK = load("v6.1")
NAME = made.QWEN
ROWS = 8
BENCHMARK: Benchmark = benchmarks.get(NAME, PACK)


def make_data(folder: Path) -> Path:
    """The stand-in's first rows in a data folder, which is returned."""
    BENCHMARK.make_dataset(folder, seed=0, rows=ROWS)
    return folder


def dataset(data_dir: Path) -> Dataset:
    return BENCHMARK.dataset(data_dir, "catalogue")


def leg(scenario: str = "Server", *, short: bool = True, **config: Any) -> PlannedLeg:
    """A leg of servers that answer somewhere; short ones last half a second."""
    content: dict[str, Any] = {
        "engine": {
            "kind": "http",
            "server": "vllm",
            "version": "0.11",
            "checkpoint": {
                "name": "Qwen/Qwen3-VL-235B-A22B-Instruct",
                "path": "/nowhere/qwen3-vl",
                "weight_data_type": "nvfp4",
            },
            "endpoints": ["http://127.0.0.1:9"],
        },
        "scenarios": {
            "Offline": {"target_qps": 100},
            "Server": {"target_qps": 100},
            "Interactive": {"target_qps": {"offline_share": 0.5}},
        },
        "test_run": {"min_duration_ms": 500, "performance_samples": 16, "server_queries": 16},
        **config,
    }
    return PlannedLeg("BOX", NAME, scenario, "performance", BenchmarkFile.model_validate(content), PACK, short)


def answers(data_dir: Path, wrong: Sequence[int] = ()) -> list[str]:
    """Answers in the form that is scored, right but for some rows."""
    truths = dataset(data_dir).ground_truth
    return [
        json.dumps({"category": "Nothing" if row in wrong else truth, "brand": "", "is_secondhand": False}, indent=2)
        for row, truth in enumerate(truths)
    ]


def report(texts: Sequence[str | None], score: float, scenario: str = "Server") -> Report:
    """A report of as many samples as a short run issues, with the client's score."""
    made_up = Report(scenario=scenario, performance=80, texts=texts)
    (entry,) = made_up.accuracy["accuracy_scores"]
    assert entry["dataset_name"] == DATASET
    entry["score"] = score
    return made_up
