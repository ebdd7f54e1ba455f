"""What the legs of trajectories ask and are scored by, made once for each module that runs some."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.benchmarks.qwen3_6_27b.bfcl.made import made_environment
from tests.e2e.made_agentic import NAME


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three made-up trajectories and as many questions as the round has."""
    from harness import benchmarks, rules

    folder = tmp_path_factory.mktemp("data")
    benchmarks.get(NAME, rules.load("v6.1")).make_dataset(folder, seed=0)
    return folder


@pytest.fixture(scope="module")
def bfcl(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment with a double of bfcl-eval."""
    return made_environment(tmp_path_factory.mktemp("bfcl") / "venv").python
