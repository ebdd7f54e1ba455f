from __future__ import annotations

from pathlib import Path

import pytest

from harness.benchmarks.standins import STAND_IN_FILE, refuse_stand_in
from harness.errors import ConfigError


def test_a_stand_in_is_left_alone(tmp_path: Path) -> None:
    refuse_stand_in(tmp_path)
    (tmp_path / STAND_IN_FILE).write_text("{}")
    with pytest.raises(ConfigError, match="holds a stand-in data set"):
        refuse_stand_in(tmp_path)
