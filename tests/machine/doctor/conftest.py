from __future__ import annotations

import sys

import pytest

from tests.machine.doctor.made_host import NO_LIBRARY
from tests.machine.recorded_driver import Driver


@pytest.fixture(autouse=True)
def no_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    """The module of a machine without accelerators, by the name ``no_driver``."""
    monkeypatch.setitem(sys.modules, "no_driver", Driver([], NO_LIBRARY))
