"""A scenario's folder as the endpoints client files it: all of the keys that it writes, with made-up figures."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import yaml

PERCENTILES = ("99.9", "99.0", "95.0", "90.0", "50.0")


def series(scale: float) -> dict[str, Any]:
    return {
        "total": scale * 6396, "min": scale / 10, "max": scale * 10, "median": scale, "avg": scale,
        "percentiles": dict.fromkeys(PERCENTILES, scale * 2),
        "early_stopping_percentiles": {p: scale * 3 + float(p) for p in PERCENTILES},
        "histogram": {"buckets": [0, 1], "counts": [1]},
    }  # fmt: skip


CONFIG: dict[str, Any] = {
    "name": "gpt-oss-120b-server",
    "version": "1.0",
    "type": "online",
    "submission_ref": {"model": "gpt-oss-120b", "ruleset": "mlperf-inference-v6.1"},
    "model_params": {"name": "openai/gpt-oss-120b", "temperature": 1.0, "max_new_tokens": 10240, "streaming": "on"},
    "datasets": [{"name": "perf", "type": "performance"}, {"name": "aime25", "type": "accuracy"}],
    "settings": {
        "runtime": {
            "min_duration_ms": 600000, "max_duration_ms": 0, "n_samples_to_issue": None,
            "dataloader_random_seed": 11, "scheduler_random_seed": (1 << 64) - 1,
        },
        "load_pattern": {"type": "poisson", "target_qps": 10.5},
    },
}  # fmt: skip

SUMMARY: dict[str, Any] = {
    "version": "0.3.0", "git_sha": None, "test_started_at": 0,
    "n_samples_issued": 6396, "n_samples_completed": 6396, "n_samples_failed": 0,
    "duration_ns": 639_600_000_000, "state": "complete", "complete": True,
    "ttft": series(1e8), "tpot": series(1e7), "latency": series(1e9),
    "output_sequence_lengths": {"min": 1, "max": 10240, "avg": 1270.5},
    "qps": 9.9, "tps": 12578.0, "finish_reason_counts": {"stop": 6390, "length": 6},
    "run_config": {
        "load_pattern": {"type": "poisson", "target_qps": 10.5},
        "scheduler_random_seed": (1 << 64) - 1, "dataloader_random_seed": 11,
    },
}  # fmt: skip


def scored(name: str, score: object, unit: int, repeats: int, **changes: object) -> dict[str, Any]:
    total = unit * repeats
    return {
        "dataset_name": name, "extractor": "AnExtractor", "ground_truth_column": "answer", "score": score,
        "unit_samples": unit, "num_repeats": repeats, "total_samples": total, "duration_s": 12.5, "complete": True,
        "dataset_type": "accuracy", "response_counts": {"issued": total, "scored": total, "empty": 0, "missing": 0},
    } | changes  # fmt: skip


ACCURACY: dict[str, Any] = {
    "average_accuracy": 0.8,
    "accuracy_scores": [
        scored("performance", None, 6396, 1, dataset_type="performance"),
        scored("aime25", 0.9, 30, 8),
        scored("gpqa", 0.8, 198, 5, breakdown={"overall_accuracy": 80.0}),
        scored("livecodebench", 0.85, 1055, 3),
    ],
}
AUDIT = {"test": "output_caching_test", "passed": True, "threshold": 0.1}


class ScenarioFolder:
    """Its parts can be changed before it is written: ``config``, ``summary``, ``accuracy``, ``audit``."""

    def __init__(self) -> None:
        self.config = copy.deepcopy(CONFIG)
        self.summary = copy.deepcopy(SUMMARY)
        self.accuracy = copy.deepcopy(ACCURACY)
        self.audit = dict(AUDIT)

    def write(self, folder: Path) -> Path:
        for name, text in self.texts().items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return folder

    def texts(self) -> dict[str, str]:
        return {
            "config.yaml": yaml.safe_dump(self.config),
            "performance/result_summary.json": json.dumps(self.summary, indent=2),
            "accuracy/accuracy_results.json": json.dumps(self.accuracy, indent=2),
            "audit/audit_output_caching_test.json": json.dumps(self.audit),
        }
