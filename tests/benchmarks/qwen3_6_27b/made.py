"""Made-up conversations for tests of the trajectories."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from harness.benchmarks.qwen3_6_27b.rows import parse_row
from harness.benchmarks.qwen3_6_27b.sampling import rules_of, sampling
from harness.benchmarks.qwen3_6_27b.trajectories import Trajectories, Trajectory, assemble
from harness.rules import load

REAL = Path(__file__).parents[4] / "shared" / "data" / "agentic_coding_2.5h.jsonl"
needs_real = pytest.mark.skipif(not REAL.exists(), reason="the shared data folder is not beside the repository")

PACK = load("v6.1")
RULES = rules_of(PACK)
TOOLS = [{"type": "function", "function": {"name": "bash", "parameters": {"type": "object"}}}]


def call(command: str, id_: str = "c0", **more: Any) -> dict[str, Any]:
    return {
        "id": id_,
        "type": "function",
        "function": {"name": "bash", "arguments": json.dumps({"command": command}), **more},
    }


def user(turn: int = 1, name: str = "demo-1", **more: Any) -> dict[str, Any]:
    return {"conversation_id": name, "turn": turn, "role": "user", "content": f"Question {turn}", **more}


def assistant(turn: int = 2, name: str = "demo-1", **more: Any) -> dict[str, Any]:
    said = more or {"content": f"Answer {turn}"}
    return {"conversation_id": name, "turn": turn, "role": "assistant", **said}


def tool(turn: int = 3, name: str = "demo-1", **more: Any) -> dict[str, Any]:
    results = [{"tool_call_id": "c0", "content": f"Result {turn}"}]
    return {"conversation_id": name, "turn": turn, "role": "tool", "tool_results": results, **more}


def demo(name: str = "demo-1", **first: Any) -> list[dict[str, Any]]:
    """Two client turns, the second after a call of bash."""
    return [
        user(1, name, **{"system": "You drive a shell.", "tools": TOOLS, **first}),
        assistant(2, name, reasoning_content="Look first.", tool_calls=[call("ls tests | wc -l")]),
        tool(3, name, delay_seconds=0.25),
        assistant(4, name, content="There is one test."),
    ]


def lines(rows: Iterable[Mapping[str, Any]]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def write(path: Path, rows: Iterable[Mapping[str, Any]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(lines(rows), encoding="utf-8")
    return path


def assembled(rows: Iterable[Mapping[str, Any]]) -> Trajectories:
    return assemble((parse_row(json.dumps(row).encode(), f"line {i}") for i, row in enumerate(rows, 1)), "made")


def one(rows: Iterable[Mapping[str, Any]]) -> Trajectory:
    (found,) = assembled(rows).all
    return found


def asked_by_run(model: str) -> dict[str, Any]:
    """What the mlcommons client asks of every request that says nothing else, under the round's settings."""
    found = sampling(RULES)
    return {
        "model": model,
        "temperature": found.temperature,
        "max_completion_tokens": found.max_new_tokens,
        "stream": True,
        "seed": found.seed,
    }
