"""What closed forbids of an engine, found in the configuration that a run kept."""

from __future__ import annotations

from typing import Any

import pytest

from harness import rules
from harness.config import BenchmarkFile
from harness.config.merge import merged
from harness.gate.engine_config import check_engine_config
from harness.gate.findings import Finding, Severity
from tests.config.test_engine_checks import BUDGET, DRAFTS, ENGINE, SEES, seeing

PACK = rules.load("v6.1")
BREAKS = ["ENG-IMAGES", "ENG-PREFIX-REUSE", "ENG-SPECULATION", "ENG-UNREAD"]
REUSE = {"kv_cache_config": {"enable_block_reuse": True}}


def kept(options: dict[str, Any] | None = None, **own: Any) -> dict[str, Any]:
    """A configuration as run.json has it; ``own`` are keys of the scenarios."""
    scenarios = {name: {"target_qps": 5, **own} for name in ("Offline", "Interactive")}
    engine = merged(ENGINE, {"options": options or {}})
    return BenchmarkFile.model_validate({"engine": engine, "scenarios": scenarios}).model_dump(mode="json")


def found(config: dict[str, Any], scenario: str = "Offline", division: str = "closed") -> list[Finding]:
    return list(check_engine_config(config, scenario, PACK.benchmark("gpt-oss-120b"), division, "BOX/run#1"))


def test_an_engine_as_the_rules_want_it() -> None:
    assert found(kept()) == []
    assert found(kept(engine_options={"speculative_config": DRAFTS}), "Interactive") == []


@pytest.mark.parametrize("engine", [{"kind": "torch", "checkpoint": "/models/m"}, {"kind": "scripted"}])
def test_an_embedded_engine_has_neither(engine: dict[str, Any]) -> None:
    assert found({"engine": engine, "scenarios": {"Offline": {}}}) == []


@pytest.mark.parametrize(
    ("config", "scenario", "rule"),
    [
        (kept(REUSE), "Offline", "ENG-PREFIX-REUSE"),
        (kept(engine_options=REUSE), "Offline", "ENG-PREFIX-REUSE"),
        (kept({"kv_cache_config": {"enable_block_reuse": None}}), "Offline", "ENG-PREFIX-REUSE"),
        (kept({"speculative_config": DRAFTS}), "Offline", "ENG-SPECULATION"),
        (kept({"speculative_config": DRAFTS | {"max_draft_len": 4}}), "Interactive", "ENG-SPECULATION"),
        (kept(engine=merged(ENGINE, {"options": REUSE})), "Interactive", "ENG-PREFIX-REUSE"),
        (kept() | {"engine": {"kind": "steam"}}, "Offline", "ENG-UNREAD"),
        (kept() | {"engine": ENGINE | {"version": "9.9"}}, "Offline", "ENG-UNREAD"),
        (kept() | {"engine": None}, "Offline", "ENG-UNREAD"),
        (kept(), "Server", "ENG-UNREAD"),
        ({}, "Offline", "ENG-UNREAD"),
    ],
)
@pytest.mark.parametrize("division", ["closed", "network"])
def test_what_closed_forbids(config: dict[str, Any], scenario: str, rule: str, division: str) -> None:
    (finding,) = found(config, scenario, division)
    assert finding.rule == rule
    assert finding.severity is Severity.REJECT
    assert finding.path == "BOX/run#1"


def test_both_are_told() -> None:
    assert [finding.rule for finding in found(kept(REUSE | {"speculative_config": DRAFTS}))] == [
        "ENG-PREFIX-REUSE",
        "ENG-SPECULATION",
    ]


def test_open_forbids_neither() -> None:
    assert found(kept(REUSE | {"speculative_config": DRAFTS}), division="open") == []


def of_pictures(engine: dict[str, Any]) -> list[str]:
    """The rules that a run with pictures breaks in closed."""
    config = {"engine": engine, "scenarios": {"Offline": {"target_qps": 5}}}
    rules_of_images = PACK.benchmark("qwen3-vl-235b-a22b")
    return [finding.rule for finding in check_engine_config(config, "Offline", rules_of_images, "closed", "BOX/run#1")]


def test_a_run_whose_server_changed_pictures_is_no_closed_result() -> None:
    assert of_pictures(SEES) == []
    assert of_pictures(seeing(**BUDGET)) == ["ENG-IMAGES"]
    assert of_pictures(seeing(mm_processor_cache_gb=4)) == ["ENG-IMAGES"]


def test_the_replicas_of_a_scenario_are_read() -> None:
    assert found(kept(replicas=2)) == []
