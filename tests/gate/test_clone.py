from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from harness.gate.clone import Clone
from tests.gate.made_tree import write

PROGRAM = Path("tools/checker/main.py")


def git(folder, *arguments):
    who = ["-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
    done = subprocess.run(["git", "-C", folder, *who, *arguments], check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture
def clone(tmp_path):
    folder = tmp_path / "a clone"
    write(folder / PROGRAM, "print()\n")
    write(folder / "README.md", "read me\n")
    git(folder, "init", "-q")
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "first")
    return Clone(folder)


def test_the_variable_names_it(monkeypatch, tmp_path):
    monkeypatch.delenv("MLPERF_INFERENCE_DIR", raising=False)
    assert Clone.named_root() is None
    monkeypatch.setenv("MLPERF_INFERENCE_DIR", str(tmp_path / "anything"))
    assert Clone.named_root() == tmp_path / "anything"


def test_its_commit(clone):
    assert clone.revision([PROGRAM.parent]) == git(clone.root, "rev-parse", "HEAD")


def test_a_change_of_its_programs_makes_it_dirty_and_of_others_not(clone):
    write(clone.root / "README.md", "changed\n")
    assert "-dirty" not in clone.revision([PROGRAM.parent])
    write(clone.root / PROGRAM, "print(1)\n")
    assert clone.revision([PROGRAM.parent]) == git(clone.root, "rev-parse", "HEAD") + "-dirty"


def test_a_new_file_beside_its_programs_makes_it_dirty(clone):
    write(clone.root / PROGRAM.with_name("new.py"), "x\n")
    assert clone.revision([PROGRAM.parent]).endswith("-dirty")


def test_asking_changes_nothing(clone):
    index = (clone.root / ".git" / "index").stat().st_mtime_ns
    (clone.root / "README.md").touch()
    clone.revision([PROGRAM])
    assert (clone.root / ".git" / "index").stat().st_mtime_ns == index


def test_no_repository_has_no_commit(tmp_path):
    assert Clone(tmp_path).revision([PROGRAM]) is None
    assert Clone(tmp_path / "absent").revision([PROGRAM]) is None


def test_a_folder_of_another_repository_has_not_that_one_s_commit(clone):
    assert Clone(clone.root / "tools").revision([PROGRAM]) is None


def test_without_git_there_is_no_commit(clone, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert clone.revision([PROGRAM]) is None


def test_what_it_has(clone):
    assert clone.has(PROGRAM)
    assert not clone.has(PROGRAM.parent)
    assert not clone.has(Path("x" * 300))
