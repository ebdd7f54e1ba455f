from __future__ import annotations

import sys

import pytest

from tests.machine.recorded_driver import Driver


@pytest.fixture
def driver(monkeypatch):
    """Puts a driver of these boards where a module is looked for, and gives its name."""

    def install(boards, init_error=None):
        monkeypatch.setitem(sys.modules, "recorded_nvml", Driver(boards, init_error))
        return "recorded_nvml"

    return install
