"""TensorRT-LLM in process through ``run_harness`` on a machine without it: told, exit code 3, no run begun."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.engines.trtllm_double import make_checkpoint
from tests.harness_process import ScriptedProject

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.harmony,
    pytest.mark.skipif(find_spec("tensorrt_llm") is not None, reason="TensorRT-LLM is installed here"),
]


def test_a_machine_without_it(scripted_project: ScriptedProject, standin_data: Path, tmp_path: Path) -> None:
    checkpoint = make_checkpoint(tmp_path / "gpt-oss-20b", vocab_size=201_088)
    engine = {
        "kind": "trtllm",
        "version": "1.2",
        "checkpoint": {"name": "openai/gpt-oss-20b", "path": str(checkpoint), "weight_data_type": "bf16"},
        "replicas": 2,
        "options": {"max_seq_len": 4096, "max_batch_size": 64, "kv_cache_config": {"enable_block_reuse": False}},
    }
    scripted_project.write_benchmark({"engine": engine})
    ended = scripted_project.run("run_harness", "--test_run", "--scenarios=Offline", data=standin_data)
    assert ended.code == 3, ended.err
    assert "tensorrt_llm cannot be imported" in ended.err
    assert "kind http" in ended.err
    assert "Traceback" not in ended.err
    assert not list(scripted_project.results.glob("**/run.json"))
