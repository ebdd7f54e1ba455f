"""What tests of several rooms share: a project folder with a scripted system, and the stand-in data set."""

from __future__ import annotations

import fcntl
import hashlib
import signal
from pathlib import Path

import pytest

from tests.harness_process import ROOT, ScriptedProject


def pytest_configure() -> None:
    """What the starter of the tests ignores (nohup, a shell's ``&``) they ignore on; what they start does not."""
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, lambda number, frame: None)  # a handler is none in a process that is started


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files that run legs come first: they are long and mostly wait, and small ones fill what is left at the end."""
    long = {item.path for item in items if item.get_closest_marker("e2e")}
    items.sort(key=lambda item: item.path not in long)


@pytest.fixture(scope="session")
def standin_data() -> Path:
    """The whole stand-in data set of gpt-oss-120b, made once for all processes that test; needs openai-harmony.

    It is another one whenever what makes it changes. Whoever wants to change it works on a copy.
    """
    from harness import rules
    from harness.benchmarks.gpt_oss_120b.standin import Counts, make_dataset

    made_by = hashlib.sha256()
    for source in sorted((ROOT / "harness" / "benchmarks").rglob("*.py")):
        made_by.update(source.read_bytes())
    folder = ROOT / "build" / "test-data" / made_by.hexdigest()[:16]
    folder.mkdir(parents=True, exist_ok=True)
    counts = Counts.by(rules.load("v6.1").benchmark("gpt-oss-120b"))
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        make_dataset(folder / "gpt-oss-120b", seed=0, counts=counts)
    return folder


@pytest.fixture
def scripted_project(tmp_path: Path) -> ScriptedProject:
    """A project folder with one system, SCRIPTED, whose engine answers by script."""
    return ScriptedProject.made(tmp_path / "project")
