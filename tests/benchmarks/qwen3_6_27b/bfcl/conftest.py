from __future__ import annotations

from dataclasses import replace

import pytest

from harness.benchmarks.qwen3_6_27b.bfcl import table
from harness.benchmarks.qwen3_6_27b.bfcl.environment import Environment
from tests.benchmarks.qwen3_6_27b.bfcl.made import RULES, made_environment


@pytest.fixture(scope="session")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """An environment with the double of bfcl-eval; whoever changes one makes one of their own."""
    return made_environment(tmp_path_factory.mktemp("bfcl") / "venv")


@pytest.fixture(scope="session")
def asked(environment: Environment, tmp_path_factory: pytest.TempPathFactory) -> table.Table:
    """The rows that are asked of the double's, which are all that there are of it."""
    return replace(table.write(tmp_path_factory.mktemp("data"), environment, RULES), whole=True)
