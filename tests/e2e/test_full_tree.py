"""The proof of the full size, made small: all legs of Qwen3-VL through LoadGen, their tree, what speaks against it."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.harness_process import ROOT

PROGRAM = ROOT / "benchmarks" / "full_tree.py"
BENCHMARK = "qwen3-vl-235b-a22b"
SCENARIOS = ("Offline", "Server", "Interactive")
TOO_SHORT = {
    "ACC-METRIC",
    "LG-COVERAGE",
    "LG-DURATION",
    "LG-DURATION-SETTING",
    "LG-LIBRARY",
    "LG-MIN-QUERIES",
    "LG-SAMPLE-COUNT",
}
"""What the gate must reject of legs of seconds over 48 rows, and no more."""


@pytest.fixture(scope="module")
def program() -> ModuleType:
    spec = importlib.util.spec_from_file_location("full_tree", PROGRAM)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


@pytest.mark.e2e
@pytest.mark.slow
@pytest.mark.qwen3vl
def test_short_legs_over_few_rows_make_a_tree(tmp_path: Path) -> None:
    command = [sys.executable, str(PROGRAM), f"--out={tmp_path}", "--rows=48", "--test_run"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=280, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert ended.stdout.count(": VALID") == 2 * len(SCENARIOS)
    held = re.search(r"memory of all processes: anonymous (\d+) MB, PSS (\d+) MB", ended.stdout)
    assert held is not None
    assert 10 < int(held[1]) <= int(held[2]) < 1000
    found = json.loads((tmp_path / "findings.json").read_text())
    rejected = {each["rule"] for each in found["findings"] if each["severity"] == "reject"}
    assert rejected == TOO_SHORT
    for scenario in SCENARIOS:
        row = tmp_path / "submission" / "closed" / "Demonstration" / "results" / "Scripted" / BENCHMARK / scenario
        texts = [
            json.loads((row / "measurements.json").read_text())["weight_data_types"],
            (row / "README.md").read_text(),
        ]
        assert texts[0] == "none"
        assert "DEMONSTRATION, not a submission" in texts[1]
        assert "stand-in data set of 48 rows" in texts[1]
        log = (row / "performance" / "run_1" / "mlperf_log_detail.txt").read_text()
        assert '"key": "effective_target_latency_ns", "value": ' in log or scenario == "Offline"


def accepted(**changes: Any) -> dict[str, Any]:
    rows = [{"folder": f"closed/A/results/B/{BENCHMARK}/{scenario}", "official": "accepts"} for scenario in SCENARIOS]
    mark = {"rule": "MARK-STAND-IN", "severity": "reject"}
    return {"official": {"verdict": "ok"}, "rows": rows, "findings": [mark], **changes}


def test_a_tree_that_both_take_but_for_its_mark_passes(program: ModuleType) -> None:
    review = {"rule": "RULING-VLM-CLIENT", "severity": "review"}
    assert program.objections(accepted()) == []
    assert program.objections(accepted(findings=[review])) == []


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"official": None}, "the official checker: not run: MLPERF_INFERENCE_DIR names no clone"),
        ({"official": {"verdict": "errors"}}, "the official checker: errors"),
        ({"rows": [{"folder": "closed/x", "official": "ignores"}]}, "closed/x: the official checker ignores"),
        ({"findings": [{"rule": "LG-DURATION", "severity": "reject"}] * 2}, "the gate rejects: LG-DURATION, 2 times"),
    ],
)
def test_what_speaks_against_a_tree_is_told(program: ModuleType, changes: dict[str, Any], said: str) -> None:
    assert program.objections(accepted(**changes)) == [said]
