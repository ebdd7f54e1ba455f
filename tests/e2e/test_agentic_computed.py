"""Real LoadGen over trajectories, on engines that compute: a small model of Kimi's architecture on a CPU."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import yaml

from harness.env import BFCL_PYTHON
from harness.ledger import ResultsStore, State
from harness.ledger.turns import read_turns
from tests.e2e.made_agentic import NAME, rejects
from tests.engines.launch.made import free_ports
from tests.harness_process import ROOT, ScriptedProject

pytestmark = pytest.mark.e2e


@pytest.fixture
def cpu_project(tmp_path: Path, bfcl: Path, monkeypatch: pytest.MonkeyPatch) -> ScriptedProject:
    """The repository's own CPU systems in a folder of their own."""
    monkeypatch.setenv(BFCL_PYTHON.name, str(bfcl))
    shutil.copytree(ROOT / "systems", tmp_path / "systems")
    shutil.copy(ROOT / "submission.yaml", tmp_path / "submission.yaml")
    return ScriptedProject(tmp_path)


@pytest.mark.slow
@pytest.mark.torch
@pytest.mark.qwen3vl
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("system", "scenarios"), [("CPU-torch", ("SingleStream", "Offline")), ("CPU-http", ("SingleStream",))]
)
def test_three_trajectories_of_a_model_that_computes(
    cpu_project: ScriptedProject, data: Path, system: str, scenarios: tuple[str, ...]
) -> None:
    base = cpu_project.folder / "systems" / "_bases" / f"{NAME}.cpu.yaml"
    content = yaml.safe_load(base.read_text())
    # Too few for early stopping to tell a percentile, which is not asked for here.
    short = {"performance_samples": 3, "accuracy_samples": 8, "min_duration_ms": 500}
    short |= {"stream_queries": 3, "server_queries": 4}
    assert content["test_run"].keys() == short.keys()
    content |= {"test_run": short, "warmup": {"requests": 4}}
    base.write_text(yaml.safe_dump(content))
    own = cpu_project.folder / "systems" / system / f"{NAME}.yaml"
    engine = yaml.safe_load(own.read_text())
    if engine["engine"]["kind"] == "http":
        engine["engine"]["launch"] = {"port": free_ports(2)}
        own.write_text(yaml.safe_dump(engine))
    chosen = (f"--systems={system}", f"--benchmarks={NAME}", f"--scenarios={','.join(scenarios)}", "--test_run")
    ended = cpu_project.run("run_harness", *chosen, data=data, timeout_s=800)
    assert ended.code == 1, ended.err
    runs = {(run.record.id.scenario, run.record.id.leg): run for run in ResultsStore(cpu_project.results).runs()}
    assert len(runs) == 2 * len(scenarios)
    for (scenario, leg), run in runs.items():
        record = run.record
        assert record.state is State.FINISHED
        assert record.counts is not None
        assert record.counts.failed == record.counts.outstanding == 0, (scenario, leg)
        assert {"stand-in checkpoint", "stand-in data set"} <= {
            reason.split(" of ")[0] for reason in record.not_submittable
        }
        if leg == "accuracy":
            assert rejects(record) == set()
        else:
            assert rejects(record) <= {"LG-DURATION", "LG-EARLY-STOPPING", "LG-METRIC", "LG-VALID"}
            assert record.turns is not None
            assert record.turns.failed == record.turns.skipped == 0
            turns = read_turns(run.folder / "turns.arrow")
            assert (turns["answer_tokens"] <= 32).all()
            later = turns["turn"] > 0
            assert (turns["cached_tokens"][later] > 0).all()  # a turn computes no more than what is new
            assert (turns["cached_tokens"] < turns["prompt_tokens"]).all()
