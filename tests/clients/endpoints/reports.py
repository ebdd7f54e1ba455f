"""Reports of the endpoints client, made up: whole ones, for tests to break in one place."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tests.gate import made_endpoints as made

DATASET = "shopify_product_catalogue::q3vl"
MS = 1_000_000


@dataclass
class Report:
    """A report of a few samples whose events, counts and scores agree. Change a part, then :meth:`write`."""

    scenario: str = "Server"
    performance: int = 80
    texts: Sequence[str | None] = ("a", "b", "c", "d")
    config: dict[str, Any] = field(default_factory=dict)
    summary: dict[str, Any] = field(default_factory=dict)
    accuracy: dict[str, Any] = field(default_factory=dict)
    events: list[dict[str, Any]] = field(default_factory=list)
    index: dict[str, dict[str, int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.config = made.config(made.QWEN, self.scenario)
        rows = len(self.texts)
        phases = {"performance": [i % rows for i in range(self.performance)], DATASET: list(range(rows))}
        for name, asked in phases.items():
            self._phase(name, asked)
        self.summary = self._summary()
        self.accuracy = self._accuracy()

    def _phase(self, name: str, asked: list[int]) -> None:
        ids = [uuid.UUID(int=len(self.events) + i).hex for i in range(len(asked))]
        self.index[name] = dict(zip(ids, asked, strict=True))
        for at, (sample, row) in enumerate(self.index[name].items()):
            text = self.texts[row]
            start = 10**12 + at * 10 * MS
            self._event("sample.issued", start, sample, ["PromptData", None])
            if text is None:
                self._event("error.generic", start + 4 * MS, sample, ["ErrorData", "error", "HTTP 500"])
                self._event("sample.complete", start + 5 * MS, sample, None)
                continue
            self._event("sample.recv_first", start + 2 * MS, sample, None)
            chunks = ["TextModelOutput", [text[:1], text[1:]], None, None]
            self._event("sample.complete", start + 5 * MS, sample, chunks, finish_reason="stop")

    def _event(self, kind: str, at_ns: int, sample: str, data: object, **more: object) -> None:
        self.events.append({"event_type": kind, "timestamp_ns": at_ns, "sample_uuid": sample, "data": data, **more})

    def _summary(self) -> dict[str, Any]:
        count, failed = self.performance, sum(event["event_type"] == "error.generic" for event in self.events)
        duration_ns = (count - 1) * 10 * MS + 5 * MS
        made_up = made.summary(made.QWEN, self.scenario)
        return made_up | {
            "n_samples_issued": count,
            "n_samples_completed": count,
            "n_samples_failed": min(failed, count),
            "duration_ns": duration_ns,
            "latency": made.series(count, 5 * MS),
            "ttft": made.series(count, 2 * MS),
            "legacy_loadgen_window_duration_ns": None,
            "qps": count / (duration_ns / 1e9),
            "finish_reason_counts": {"stop": count},
        }

    def _accuracy(self) -> dict[str, Any]:
        rows = len(self.texts)
        counts = {"issued": rows, "scored": sum(map(bool, self.texts)), "missing": 0}
        counts["empty"] = rows - counts["scored"]
        return {"average_accuracy": 0.8, "accuracy_scores": [made.entry(DATASET, 0.8, rows, response_counts=counts)]}

    def write(self, folder: Path) -> Path:
        for name, text in self._files().items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return folder

    def _files(self) -> Mapping[str, str]:
        return {
            "config.yaml": yaml.safe_dump(self.config, sort_keys=False),
            "performance/result_summary.json": json.dumps(self.summary, indent=2),
            "accuracy/accuracy_results.json": json.dumps(self.accuracy, indent=2),
            "report.txt": "Summary\n",
            "events.jsonl": "".join(json.dumps(event) + "\n" for event in self.events),
            "sample_idx_map.json": json.dumps(self.index),
        }


def old_report(folder: Path, **changes: object) -> Path:
    """The form before July 2026: one file."""
    content: dict[str, Any] = {
        "config": {"endpoint": ["http://localhost:8000"], "mode": "both", "target_qps": 70.0},
        "results": {"total": 48289, "successful": 48289, "failed": 0, "elapsed_time": 695.7, "qps": 69.41},
        "accuracy_scores": {
            DATASET: {"dataset_name": DATASET, "num_samples": 48289, "score": 0.7879, "n_repeats": 1},
        },
        "responses": {"0" * 32: "{}"},
    }
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "results.json").write_text(json.dumps(content | changes), encoding="utf-8")
    return folder
