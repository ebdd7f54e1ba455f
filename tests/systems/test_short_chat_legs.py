"""Short legs of Qwen3-VL as each system has it configured, with the small torch engine where accelerators would be."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from harness import benchmarks, rules
from harness.config import BenchmarkFile, Project
from harness.config.stand_in import stand_in
from harness.ledger import ResultsStore, State
from harness.ledger.samples import read_samples
from harness.ledger.store import SAMPLES, StoredRun
from tests.harness_process import ROOT, ScriptedProject

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.torch, pytest.mark.qwen3vl]

BENCHMARK = "qwen3-vl-235b-a22b"
TOKENS = 2
SHORT = {"performance_samples": 8, "accuracy_samples": 8, "min_duration_ms": 200, "server_queries": 12}
FEW = {"output_caps": {"performance": TOKENS, "accuracy": TOKENS}, "warmup": {"requests": 2}, "test_run": SHORT}
RATES = {"Offline": {"target_qps": 20}, "Server": {"target_qps": 6}}
ENGINES = [("GB300-NVL4_GB300-288GB_aarch64x4_TRT", "trtllm", 4), ("B200-SXM-180GBx8_TRT", None, 8)]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A stand-in catalogue of a few rows."""
    folder = tmp_path_factory.mktemp("data")
    benchmarks.get(BENCHMARK, rules.load("v6.1")).make_dataset(folder, seed=0, rows=SHORT["performance_samples"])
    return folder


@pytest.fixture
def project(tmp_path: Path) -> ScriptedProject:
    """The repository's own systems in a folder of their own."""
    shutil.copytree(ROOT / "systems", tmp_path / "systems")
    return ScriptedProject(tmp_path)


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    """One server on all addresses of this machine: as many endpoints as anybody wants, for one import of torch."""
    sizes = ["--slots=8", "--max_total_tokens=1024", "--host=0.0.0.0", "--port=0"]
    command = [sys.executable, "-m", "harness", "serve", "--tiny_qwen3_vl", *sizes]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, start_new_session=True)
    try:
        assert process.stdout is not None
        listening = re.search(r"at http://\S+:(\d+)", process.stdout.readline())
        assert listening is not None
        yield int(listening[1])
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)


def short_legs(project: ScriptedProject, system: str, data: Path, *more: str) -> dict[str, StoredRun]:
    """Runs both performance legs and returns them by scenario, all of their samples answered with as many tokens."""
    argv = [f"--systems={system}", f"--benchmarks={BENCHMARK}", "--test_run", "--test_mode=PerformanceOnly", *more]
    ended = project.run("run_harness", *argv, data=data, timeout_s=280)
    assert ended.code in (0, 1), ended.err  # 1: so few queries tell nothing of a 99th percentile
    runs = {run.record.id.scenario: run for run in ResultsStore(project.results).runs()}
    for run in runs.values():
        assert run.record.state is State.FINISHED
        assert run.record.counts.failed == run.record.counts.outstanding == 0
        assert run.record.counts.answered == run.record.counts.issued > 0
        assert run.record.counts.output_tokens == TOKENS * run.record.counts.answered
        assert "stand-in checkpoint" in run.record.not_submittable
    return runs


@pytest.mark.parametrize(("system", "variant", "replicas"), ENGINES, ids=[system[:5] for system, _, _ in ENGINES])
def test_a_configuration_of_accelerators(
    system: str, variant: str | None, replicas: int, project: ScriptedProject, port: int, data: Path
) -> None:
    """All replicas and client processes that are configured, chats with pictures, both scenarios, either engine."""
    short: dict[str, Any] = stand_in(Project(ROOT).benchmark(system, BENCHMARK, variant)).model_dump(mode="json") | FEW
    assert short["engine"]["checkpoint"]["make"] == "tiny-qwen3-vl"
    assert short["engine"]["replicas"] == replicas
    short["engine"]["endpoints"] = [f"http://127.0.0.{n + 1}:{port}" for n in range(replicas)]
    short["scenarios"] = RATES
    BenchmarkFile.model_validate(short, strict=False)
    ending = f"{BENCHMARK}.yaml" if variant is None else f"{BENCHMARK}.{variant}.yaml"
    (project.folder / "systems" / system / ending).write_text(yaml.safe_dump(short))
    runs = short_legs(project, system, data, *([] if variant is None else [f"--variant={variant}"]))
    assert set(runs) == {"Offline", "Server"}
    for run in runs.values():
        assert run.record.engine.settings["server"] == "torch"
        assert len(run.record.engine.replicas) == replicas
        assert len(set(read_samples(run.folder / SAMPLES)["replica"].tolist())) == replicas


def test_the_embedded_engine_of_a_cpu(project: ScriptedProject, data: Path) -> None:
    own = project.folder / "systems" / "CPU-torch" / f"{BENCHMARK}.yaml"
    offline = {"scenarios": {"Offline": RATES["Offline"]}}
    own.write_text(yaml.safe_dump(yaml.safe_load(own.read_text()) | FEW | offline))
    runs = short_legs(project, "CPU-torch", data, "--scenarios=Offline")
    assert list(runs) == ["Offline"]
    assert runs["Offline"].record.engine.kind == "torch"
