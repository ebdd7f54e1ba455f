"""TensorRT-LLM in process through ``run_harness``: on a machine without it, and with its double in two processes."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from harness.engines.checkpoint import STAND_IN
from harness.ledger import ResultsStore
from tests.engines.trtllm_double import DOUBLES, make_checkpoint
from tests.harness_process import ROOT, TIMEOUT_S, ScriptedProject

VOCABULARY = 201_088
pytestmark = [
    pytest.mark.e2e,
    pytest.mark.harmony,
    pytest.mark.skipif(find_spec("tensorrt_llm") is not None, reason="TensorRT-LLM is installed here"),
]


def engine_at(checkpoint: Path) -> dict[str, Any]:
    """The configuration of two replicas."""
    return {
        "kind": "trtllm",
        "version": "1.2",
        "checkpoint": {"name": "openai/gpt-oss-20b", "path": str(checkpoint), "weight_data_type": "bf16"},
        "replicas": 2,
        "options": {
            "max_seq_len": 4096,
            "max_batch_size": 64,
            "stream_interval": 20,
            "kv_cache_config": {"enable_block_reuse": False},
        },
    }


def test_a_machine_without_it(scripted_project: ScriptedProject, standin_data: Path, tmp_path: Path) -> None:
    checkpoint = make_checkpoint(tmp_path / "gpt-oss-20b", vocab_size=VOCABULARY)
    scripted_project.write_benchmark({"engine": engine_at(checkpoint)})
    ended = scripted_project.run("run_harness", "--test_run", "--scenarios=Offline", data=standin_data)
    assert ended.code == 3, ended.err
    assert "tensorrt_llm cannot be imported" in ended.err
    assert "kind http" in ended.err
    assert "Traceback" not in ended.err
    assert not list(scripted_project.results.glob("**/run.json"))


def test_both_scenarios_over_two_processes_of_the_double(
    scripted_project: ScriptedProject, standin_data: Path, tmp_path: Path
) -> None:
    checkpoint = make_checkpoint(tmp_path / "gpt-oss-20b", vocab_size=VOCABULARY)
    (checkpoint / STAND_IN).write_text('{"name": "a double"}')
    scripted_project.write_benchmark(
        {
            "engine": engine_at(checkpoint),
            "output_caps": {"performance": 8, "accuracy": 8},
            "scenarios": {"Offline": {"target_qps": 100}, "Server": {"target_qps": 40}},
            "test_run": {"performance_samples": 32, "min_duration_ms": 200, "server_queries": 32},
        }
    )
    ended = subprocess.run(
        [sys.executable, "-m", "harness", "run_harness", "--test_run", "--test_mode=PerformanceOnly"],
        cwd=scripted_project.folder,
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(map(str, (ROOT, DOUBLES, DOUBLES / "one_gpu"))),
            "HARNESS_CACHE_DIR": str(tmp_path / "cache"),
            "HARNESS_DATA_DIR": str(standin_data),
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=TIMEOUT_S,
    )
    assert ended.returncode in {0, 1}, ended.stderr  # on a busy machine the Server leg may be INVALID
    runs = {run.record.id.scenario: run for run in ResultsStore(scripted_project.results).runs()}
    assert set(runs) == {"Offline", "Server"}
    for run in runs.values():
        record = run.record
        assert (record.engine.kind, record.engine.replicas) == ("trtllm", ["0", "1"])
        assert record.engine.versions["tensorrt_llm"] == "0.0.0+double"
        assert record.engine.settings["read_back"]["kv_cache_config.enable_block_reuse"] is False
        assert record.counts is not None
        assert (record.counts.failed, record.counts.outstanding) == (0, 0)
        assert record.counts.issued == record.counts.answered > 0
        assert record.client_counters is not None
        assert record.client_counters["failures"] == 0
