"""Short legs of each system's own configuration, over HTTP, with the torch engine where its accelerators would be."""

from __future__ import annotations

import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from harness.config import BenchmarkFile, Project
from harness.config.stand_in import stand_in
from harness.ledger import ResultsStore, RunRecord, State
from harness.ledger.samples import read_samples
from harness.ledger.store import SAMPLES, StoredRun
from tests.engines.launch.made import free_ports
from tests.harness_process import ROOT, ScriptedProject

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.torch, pytest.mark.harmony]

BENCHMARK = "gpt-oss-120b"
SHORT = {"performance_samples": 16, "accuracy_samples": 8, "min_duration_ms": 200, "server_queries": 24}
RATES = {"Offline": {"target_qps": 200}, "Server": {"target_qps": 24}}
FEW = {"output_caps": {"performance": 8, "accuracy": 8}, "warmup": {"requests": 16}, "test_run": SHORT}
ACCELERATED = {"GB300-NVL4_GB300-288GB_aarch64x4_TRT": 4, "B200-SXM-180GBx8_TRT": 8, "H200-SXM-141GBx8_TRT": 8}


@pytest.fixture
def project(tmp_path: Path) -> ScriptedProject:
    """The repository's own systems in a folder of their own."""
    shutil.copytree(ROOT / "systems", tmp_path / "systems")
    shutil.copy(ROOT / "submission.yaml", tmp_path)
    return ScriptedProject(tmp_path)


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    """One server on all addresses of this machine: as many endpoints as anybody wants, for one import of torch."""
    command = [sys.executable, "-m", "harness", "serve", "--tiny_gpt_oss", "--slots=8", "--host=0.0.0.0", "--port=0"]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, start_new_session=True)
    try:
        assert process.stdout is not None
        listening = re.search(r"at http://\S+:(\d+)", process.stdout.readline())
        assert listening is not None
        yield int(listening[1])
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)


def rewrite(project: ScriptedProject, system: str, content: dict[str, Any]) -> None:
    """Puts a benchmark's file in the place of a system's own."""
    path = project.folder / "systems" / system / f"{BENCHMARK}.yaml"
    path.write_text(yaml.safe_dump(content))


def short_legs(project: ScriptedProject, system: str, data: Path) -> dict[str, StoredRun]:
    """Runs both performance legs and returns them by scenario, all of their samples answered."""
    argv = [f"--systems={system}", f"--benchmarks={BENCHMARK}", "--test_run", "--test_mode=PerformanceOnly"]
    ended = project.run("run_harness", *argv, data=data, timeout_s=280)
    assert ended.code in (0, 1), ended.err  # 1: so few queries tell nothing of a 99th percentile
    runs = {run.record.id.scenario: run for run in ResultsStore(project.results).runs()}
    assert set(runs) == {"Offline", "Server"}
    for run in runs.values():
        assert run.record.state is State.FINISHED
        assert run.record.counts.failed == run.record.counts.outstanding == 0
        assert run.record.counts.answered == run.record.counts.issued > 0
        assert run.record.counts.output_tokens == 8 * run.record.counts.answered
    return runs


def asked(run: StoredRun) -> list[int]:
    """How many samples each replica was given."""
    counts: list[int] = np.bincount(read_samples(run.folder / SAMPLES)["replica"]).tolist()
    return counts


def replicas(record: RunRecord) -> list[str]:
    assert record.engine is not None
    return record.engine.replicas


@pytest.mark.parametrize("system", ACCELERATED)
def test_a_configuration_of_accelerators(system: str, project: ScriptedProject, port: int, standin_data: Path) -> None:
    """All replicas that are configured, the client processes that are configured, both scenarios."""
    configured = Project(ROOT).benchmark(system, BENCHMARK)
    content = stand_in(configured).model_dump(mode="json") | FEW
    content["engine"]["endpoints"] = [f"http://127.0.0.{n + 1}:{port}" for n in range(ACCELERATED[system])]
    content["scenarios"] = RATES
    BenchmarkFile.model_validate(content, strict=False)
    rewrite(project, system, content)
    for run in short_legs(project, system, standin_data).values():
        assert len(replicas(run.record)) == ACCELERATED[system]
        assert run.record.engine.settings["server"] == "torch"
        assert len(asked(run)) == ACCELERATED[system]
        assert min(asked(run)) > 0
        assert "stand-in checkpoint" in run.record.not_submittable


def test_the_cpus_own_servers(project: ScriptedProject, standin_data: Path) -> None:
    """Started, asked, and gone when the legs are done."""
    first = free_ports(2)
    rewrite(
        project,
        "CPU-http",
        {"extends": "../_bases/gpt-oss-120b.cpu.yaml", "scenarios": RATES, **FEW}
        | {"engine": {"kind": "http", "server": "torch", "replicas": 2, "launch": {"port": first}}},
    )
    for run in short_legs(project, "CPU-http", standin_data).values():
        assert replicas(run.record) == ["0", "1"]
        assert min(asked(run)) > 0
    for taken in (first, first + 1):
        with socket.socket() as probe:
            assert probe.connect_ex(("127.0.0.1", taken)) != 0, "a server outlived the legs"
