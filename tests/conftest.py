"""What tests of several rooms share: a project folder with a scripted system, and the stand-in data set."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.harness_process import ScriptedProject


@pytest.fixture(scope="session")
def standin_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The whole stand-in data set of gpt-oss-120b, made once; needs openai-harmony."""
    from harness import rules
    from harness.benchmarks.gpt_oss_120b.standin import Counts, make_dataset

    folder = tmp_path_factory.mktemp("data")
    counts = Counts.by(rules.load("v6.1").benchmark("gpt-oss-120b"))
    make_dataset(folder / "gpt-oss-120b", seed=0, counts=counts)
    return folder


@pytest.fixture
def scripted_project(tmp_path: Path) -> ScriptedProject:
    """A project folder with one system, SCRIPTED, whose engine answers by script."""
    return ScriptedProject.made(tmp_path / "project")
