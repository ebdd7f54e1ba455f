from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.gate.made_tree import SUBMITTER, make_tree
from tests.logs.loadgen_runs import broken_run, loadgen_runs

__all__ = ["broken_run", "loadgen_runs"]


@pytest.fixture(scope="session")
def whole_trees(loadgen_runs, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """division -> the root of a tree with nothing against it. Read-only by agreement."""
    base = tmp_path_factory.mktemp("trees")
    roots = {division: base / division for division in ("open", "closed")}
    for division, root in roots.items():
        make_tree(root, loadgen_runs, division)
    return roots


@pytest.fixture
def tree(whole_trees, tmp_path: Path) -> Callable[[str], Path]:
    """Makes a copy of a division's tree to break; returns the submitter's folder."""

    def make(division: str) -> Path:
        shutil.copytree(whole_trees[division], tmp_path / "tree", dirs_exist_ok=True)
        return tmp_path / "tree" / division / SUBMITTER

    return make
