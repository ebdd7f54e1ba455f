"""Planned legs and engines that never start, for tests of what is decided before and after a leg."""

from __future__ import annotations

from typing import Any

from harness.clients.loadgen import audit_conf
from harness.config import BenchmarkFile
from harness.engines.base import Checkpoint, EngineInfo
from harness.rules import load
from harness.runs.plan import PlannedLeg
from tests.harness_process import ROOT

PACK = load("v6.1")
AGENTIC = "qwen3.6-27b"


def leg(scenario: str = "Offline", name: str = "performance", *, short: bool = False, **config: Any) -> PlannedLeg:
    """A leg of BOX, ``short`` for one of a test run; ``config`` replaces keys of its benchmark file."""
    content: dict[str, Any] = {
        "engine": {"kind": "scripted"},
        "scenarios": {"Offline": {"target_qps": 10}, "Server": {"target_qps": 4}, "Interactive": {"target_qps": 2}},
        **config,
    }
    file = BenchmarkFile.model_validate(content)
    audits = PACK.benchmark("gpt-oss-120b").audit_rules
    audit = audit_conf.read(ROOT, name, "gpt-oss-120b", audits[name].config) if name in audits else None
    return PlannedLeg("BOX", "gpt-oss-120b", scenario, name, file, PACK, short, audit)


def agentic(
    scenario: str = "SingleStream", name: str = "performance", *, short: bool = False, **config: Any
) -> PlannedLeg:
    """A leg of trajectories on BOX; ``config`` replaces keys of its benchmark file."""
    content: dict[str, Any] = {
        "engine": {"kind": "scripted"},
        "scenarios": {
            "SingleStream": {"target_qps": 1},
            "Offline": {"target_qps": 10},
            "Server": {"target_qps": 4, "target_latency_ms": 90_000},
        },
        **config,
    }
    return PlannedLeg("BOX", AGENTIC, scenario, name, BenchmarkFile.model_validate(content), PACK, short)


def engine_info(**changes: Any) -> EngineInfo:
    """What an engine with a stand-in checkpoint says of itself."""
    fields: dict[str, Any] = {
        "kind": "torch",
        "vocab_size": 201088,
        "max_total_tokens": 512,
        "slots": 32,
        "checkpoint": Checkpoint("tiny", "ab" * 32, stand_in=True, weight_data_type="bf16"),
        "versions": {"torch": "2.13.0"},
        "settings": {"threads": 1},
        "not_submittable": ("stand-in checkpoint",),
        **changes,
    }
    return EngineInfo(**fields)
