from __future__ import annotations

import pytest

from tests.engines.launch.made import free_ports


@pytest.fixture
def port() -> int:
    """A port that nobody listens on."""
    return free_ports()
