from __future__ import annotations

from pathlib import Path

import pytest

from harness.gate.clone import Clone
from harness.gate.clone_check import reference_clone
from harness.gate.official import CHECKER
from harness.machine.doctor.check import State
from harness.rules import load

PACK = load("v6.1")
WANTED = PACK.sources["inference"].commit


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that has the checker and is named."""
    (tmp_path / CHECKER).parent.mkdir(parents=True)
    (tmp_path / CHECKER).write_text("")
    monkeypatch.setenv("MLPERF_INFERENCE_DIR", str(tmp_path))
    return tmp_path


def test_none_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MLPERF_INFERENCE_DIR", raising=False)
    found = reference_clone(PACK)
    assert (found.state, found.read) == (State.WARN, "none is named")


def test_what_is_named_is_no_clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLPERF_INFERENCE_DIR", str(tmp_path / "nothing"))
    found = reference_clone(PACK)
    assert found.state is State.FAIL
    assert str(CHECKER) in found.read


@pytest.mark.parametrize(
    ("commit", "state"), [(WANTED, State.OK), ("0" * 40, State.WARN), (f"{WANTED}-dirty", State.WARN)]
)
def test_its_commit(clone: Path, monkeypatch: pytest.MonkeyPatch, commit: str, state: State) -> None:
    monkeypatch.setattr(Clone, "revision", lambda self, programs: commit)
    found = reference_clone(PACK)
    assert (found.state, found.read) == (state, f"{clone} at {commit}")
    assert state is State.OK or found.mend == f"git -C {clone} checkout {WANTED}"


def test_a_folder_that_no_git_knows(clone: Path) -> None:
    found = reference_clone(PACK)
    assert (found.state, found.read) == (State.WARN, f"{clone} at an unknown commit")
