"""The main job with real inference: LoadGen over the torch engine, both scenarios and modes, packaged and checked."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import yaml

from harness.ledger import ResultsStore, State
from tests.harness_process import ROOT, ScriptedProject

pytestmark = [pytest.mark.e2e, pytest.mark.alone, pytest.mark.torch, pytest.mark.harmony, pytest.mark.slow]

BENCHMARKS = "--benchmarks=gpt-oss-120b"
# What is filed does not depend on how many samples there are, and 99th percentiles are not asked for here.
SHORTER = {"performance_samples": 32, "accuracy_samples": 16, "min_duration_ms": 1000, "server_queries": 64}


@pytest.fixture
def cpu_project(tmp_path: Path) -> ScriptedProject:
    """The repository's own CPU system, measurements and submission.yaml in a folder of their own."""
    project = ScriptedProject(tmp_path)
    for name in ("systems", "measurements"):
        shutil.copytree(ROOT / name, tmp_path / name)
    for name in ("submission.yaml", "setup.py", "Makefile", "README.md", "pyproject.toml", "LICENSE"):
        shutil.copy(ROOT / name, tmp_path / name)
    base = tmp_path / "systems" / "_bases" / "gpt-oss-120b.cpu.yaml"
    content = yaml.safe_load(base.read_text())
    assert content["test_run"].keys() == SHORTER.keys()
    base.write_text(yaml.safe_dump(content | {"test_run": SHORTER, "warmup": {"requests": 32}}))
    return project


@pytest.mark.timeout(900)
def test_from_configuration_to_a_checked_tree(cpu_project: ScriptedProject, standin_data: Path) -> None:
    legs = cpu_project.run(
        "run_harness", "--systems=CPU-torch", BENCHMARKS, "--test_run", data=standin_data, timeout_s=800
    )
    assert legs.code in (0, 1), (
        legs.err
    )  # 1: a busy machine may miss the latency limits, which is what a verdict is for
    runs = {str(run.record.id): run.record for run in ResultsStore(cpu_project.results).runs()}
    assert len(runs) == 4
    for name, record in runs.items():
        assert record.state is State.FINISHED, name
        assert record.counts.failed == record.counts.outstanding == 0, name
        assert record.counts.answered == record.counts.issued, name
        assert {"stand-in checkpoint", "stand-in data set"} <= set(record.not_submittable), name
    for scenario in ("Offline", "Server"):
        record = runs[f"CPU-torch/gpt-oss-120b/{scenario}/performance#1"]
        assert record.result.value > 0
        # A random model never samples its end token: every answer runs to the cap of 32.
        assert record.counts.output_tokens == 32 * record.counts.answered
        ratios = {pair.figure: pair.ratio for pair in record.comparisons}
        assert all(0.95 < ratio < 1.05 for figure, ratio in ratios.items() if "50.00" in figure), ratios
    offline = runs["CPU-torch/gpt-oss-120b/Offline/performance#1"]
    server = runs["CPU-torch/gpt-oss-120b/Server/performance#1"]
    assert server.rate.origin.startswith("CPU-torch/gpt-oss-120b/Offline/performance#1")
    samples_per_s = offline.result.value / 32
    assert server.rate.target_qps == pytest.approx(0.3 * samples_per_s, rel=0.01)

    refused = cpu_project.run("submission", BENCHMARKS, "--out", cpu_project.folder / "tree")
    assert refused.code == 1
    assert "--demonstration" in refused.err
    tree = cpu_project.folder / "demonstration"
    packed = cpu_project.run("submission", BENCHMARKS, "--demonstration", "--out", tree)
    assert packed.code == 0, packed.err
    home = tree / "open" / "Demonstration"
    assert (home / "DEMONSTRATION").is_file()
    manifest = json.loads((home / "MANIFEST.json").read_text())
    assert manifest["demonstration"] is True
    checked = cpu_project.run("check_submission", "--input", tree, "--json", cpu_project.folder / "findings.json")
    assert checked.code == 1, checked.err  # what is short is refused, and nothing else is
    found = json.loads((cpu_project.folder / "findings.json").read_text())
    rejects = {finding["rule"] for finding in found["findings"] if finding["severity"] == "reject"}
    short = {"LG-COVERAGE", "LG-DURATION", "LG-DURATION-SETTING", "LG-LIBRARY", "LG-SAMPLE-COUNT"}
    busy = {"LG-VALID", "LG-EARLY-STOPPING", "LG-TPOT", "LG-TTFT", "OFFICIAL-CHECKER"}
    assert short <= rejects <= short | busy
