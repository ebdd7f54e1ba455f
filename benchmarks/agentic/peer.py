"""mlcommons/endpoints' client on the same work, by the configuration of its edge agentic example.

``ENDPOINTS_BIN`` names its program. It says itself how many turns it asked and how fast; what it used of the CPU is of
all of its processes from start to end, for it does not say since when it measures. It is given no tokenizer.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import yaml

from benchmarks.agentic.work import MODEL, SAMPLING, Took, Work
from harness.benchmarks.qwen3_6_27b.dataset import read_file

PROGRAM: Final = "ENDPOINTS_BIN"


def main(work: Work) -> None:
    """Runs its program and reads its report."""
    folder = Path(work.folder)
    config = folder / "endpoints.yaml"
    config.write_text(yaml.safe_dump(configuration(work, folder / "report")))
    command = [os.environ[PROGRAM], "benchmark", "from-config", "-c", str(config)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{PROGRAM} ended with {done.returncode}:\n{done.stdout[-4000:]}{done.stderr[-4000:]}")
    found: dict[str, Any] = json.loads((folder / "report" / "performance" / "result_summary.json").read_bytes())
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    turns, failed = found["n_samples_completed"], found["n_samples_failed"]
    first, whole = (found[name]["avg"] / 1e6 for name in ("ttft", "latency"))
    took = Took(turns - failed, failed, found["duration_ns"] / 1e9, used.ru_utime + used.ru_stime, first, whole, None)
    print(took.to_json())


def configuration(work: Work, report: Path) -> dict[str, object]:
    """As its example has it, without accuracy."""
    trajectories = len(read_file(Path(work.data)).trajectories)
    return {
        "name": "agentic",
        "version": "1.0",
        "type": "online",
        "model_params": {
            "name": MODEL,
            "temperature": SAMPLING.temperature,
            "seed": SAMPLING.seed,
            "max_new_tokens": SAMPLING.max_new_tokens,
        },
        "datasets": [
            {
                "name": "agentic_coding",
                "type": "performance",
                "path": work.data,
                "agentic_inference": {
                    "turn_timeout_s": 600.0,
                    "num_trajectories_to_issue": trajectories * work.passes,
                },
            }
        ],
        "settings": {
            "runtime": {"min_duration_ms": 0, "max_duration_ms": 14_400_000},
            "load_pattern": {"type": "agentic_inference", "target_concurrency": work.concurrency},
            "client": {"num_workers": 1, "max_connections": work.concurrency, "warmup_connections": 0},
        },
        "endpoint_config": {
            "endpoints": [f"http://127.0.0.1:{work.port}"],
            "api_type": "openai",
            "api_key": None,
        },
        "report_dir": str(report),
    }


if __name__ == "__main__":
    main(Work.parse(sys.argv[1]))
