"""A report of the endpoints client on the data centre's trajectories that has nothing against it but its age."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import yaml

from tests.gate import made_endpoints as made
from tests.gate.made_tree import write

NAME = "agentic-datacenter-kimi-k2.6"
PROFILE = made.ROUND.profiles[NAME]
TRAJECTORIES = PROFILE.trajectories.value
MEASURED_SHARE = 600
"""Of so many trajectories each second turn was issued while the client measured; the others' came after."""
TURNS, MEASURED = 2 * TRAJECTORIES, TRAJECTORIES + MEASURED_SHARE
MEAN = 450.0


def make_report(folder: Path) -> Path:
    """Writes the report directory."""
    write(folder / "config.yaml", yaml.safe_dump(config(), sort_keys=False))
    write(folder / "performance" / "result_summary.json", json.dumps(summary()))
    write(folder / "accuracy" / "accuracy_results.json", json.dumps(accuracy()))
    write(folder / "scores.json", json.dumps({"score": 0.64, "turns": {"issued": TURNS, "missing": 0}, "per_turn": []}))
    write(folder / "events.jsonl", "".join(f"{json.dumps(event)}\n" for event in events()))
    return folder


def config() -> dict[str, Any]:
    settings = made.config(made.AGENT, "SingleStream")["settings"]
    return {
        "name": "kimi",
        "type": "online",
        "model_params": {
            "name": "moonshotai/Kimi-K2.6",
            **PROFILE.model_params.value.required,
            "min_new_tokens": 1,
            "skip_special_tokens": True,
            "streaming": "on",
            "top_k": None,
        },
        "datasets": [
            {
                "name": "agentic_combined",
                "type": "performance",
                "path": "agentic_combined.jsonl",
                "accuracy_config": {"eval_method": "agentic_inference_inline"},
                "agentic_inference": {
                    "enable_salt": True,
                    "inject_tool_delay": True,
                    "num_trajectories_to_issue": TRAJECTORIES,
                    "stop_issuing_on_first_user_complete": False,
                },
            },
            {
                "name": "swe_bench",
                "type": "accuracy",
                "accuracy_config": {
                    "eval_method": "swe_bench_scorer",
                    "num_repeats": 1,
                    "extras": {"num_instances": 200},
                },
            },
        ],
        "settings": {**settings, "load_pattern": {"type": "agentic_inference", "target_concurrency": 8}},
        "endpoint_config": {"endpoints": ["http://localhost:8000"], "api_type": "openai"},
    }


def summary() -> dict[str, Any]:
    own = made.summary(made.AGENT, "SingleStream")
    counts = {"n_samples_issued": MEASURED, "n_samples_completed": MEASURED, "n_samples_failed": 0}
    return {**own, **counts, "output_sequence_lengths": {"avg": MEAN, "total": int(MEAN * MEASURED)}}


def accuracy(percent: float = 80.0) -> dict[str, Any]:
    inline = made.entry("performance", 0.64, TURNS, dataset_type="performance")
    swe = made.entry("swe_bench", percent / 100, 200)
    return {"average_accuracy": percent / 100, "accuracy_scores": [inline, swe]}


def events() -> list[dict[str, Any]]:
    """Each trajectory's first turn, then as many second turns as are measured, the end of measuring, and the rest."""
    first = [turn(name, 1) for name in range(TRAJECTORIES)]
    second = [turn(name, 2) for name in range(TRAJECTORIES)]
    stop = {"event_type": "session.stop_performance_tracking", "timestamp_ns": 9, "sample_uuid": ""}
    own = {"event_type": "session.started", "timestamp_ns": 0, "sample_uuid": ""}
    single = {"event_type": "sample.issued", "timestamp_ns": 1, "sample_uuid": "q", "conversation_id": "", "data": None}
    within, after = second[:MEASURED_SHARE], second[MEASURED_SHARE:]
    turns = itertools.chain.from_iterable
    return [own, single, *turns(first), *turns(within), stop, *turns(after)]


def turn(conversation: int, number: int) -> list[dict[str, Any]]:
    """A turn's two events: one word in the first turn's answer, two in the second's and a call."""
    name = {"conversation_id": f"c{conversation}", "turn": 2 * number - 1, "sample_uuid": f"{conversation}-{number}"}
    call = {"id": "x", "type": "function", "function": {"name": "bash", "arguments": '{"command": "ls"}'}}
    data: list[Any] = ["TextModelOutput", "yes"] if number == 1 else ["TextModelOutput", ["no", " no"], None, [call]]
    return [
        {**name, "event_type": "sample.issued", "timestamp_ns": 1, "data": ["PromptData", "hi"]},
        {**name, "event_type": "sample.complete", "timestamp_ns": 2, "data": data, "finish_reason": "stop"},
    ]
