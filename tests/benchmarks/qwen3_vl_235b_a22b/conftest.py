from __future__ import annotations

from pathlib import Path

import pytest

from harness.benchmarks.qwen3_vl_235b_a22b.files import STAND_IN_KEY
from tests.benchmarks.qwen3_vl_235b_a22b.made import Catalogue


@pytest.fixture
def catalogue(tmp_path: Path) -> Catalogue:
    """A data set's folder with nothing in it yet."""
    return Catalogue(tmp_path / "data" / "qwen3-vl-235b-a22b")


@pytest.fixture
def stand_in(tmp_path: Path) -> Catalogue:
    """The same, for tables that say that they are stand-ins."""
    return Catalogue(tmp_path / "data" / "qwen3-vl-235b-a22b", {STAND_IN_KEY: b"{}"})
