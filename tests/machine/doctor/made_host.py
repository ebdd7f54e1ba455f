"""Machines that never were: files below a root, limits, and a clock, for the doctor to look at."""

from __future__ import annotations

import resource
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pynvml

from harness.machine.doctor.check import Asked, Check, State
from harness.machine.doctor.host import INFINITE, Host
from harness.machine.doctor.needs import Need, Needs
from harness.machine.doctor.timex import Timex

SYNCHRONISED = Timex(synchronised=True, error_us=1500, offset_ns=0, leap=False)
NOTHING = Needs()


def put(root: Path, files: dict[str, str]) -> Path:
    """Writes files below a root."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def limited(**limits: int) -> Callable[[int], tuple[int, int]]:
    """Resource limits by name, soft and hard alike; those that are not named are none."""
    numbers = {getattr(resource, name): value for name, value in limits.items()}
    return lambda which: (numbers.get(which, INFINITE), numbers.get(which, INFINITE))


def made(tmp_path: Path, files: dict[str, str] | None = None, **changes: Any) -> Host:
    """A host with these files; without accelerators unless ``library`` has some."""
    fields: dict[str, Any] = {
        "results": tmp_path / "results",
        "data": tmp_path / "data",
        "root": put(tmp_path / "root", files or {}),
        "library": "no_driver",
        "environ": {"PATH": str(tmp_path / "bin")},
        "timex": lambda: SYNCHRONISED,
        **changes,
    }
    return Host(**fields)


def needing(**asked: Any) -> Needs:
    """What one scenario asks."""
    return Needs((Need("BOX/gpt-oss-120b/Offline", **asked),))


def asked(ask: Asked, host: Host, needs: Needs = NOTHING) -> Check:
    """A check that is there."""
    found = ask(host, needs)
    assert found is not None
    return found


def states(check: Check) -> tuple[str, bool]:
    return check.state.value, check.missing


NO_LIBRARY = pynvml.NVML_ERROR_LIBRARY_NOT_FOUND
OK, WARN, FAIL, UNKNOWN = (state.value for state in (State.OK, State.WARN, State.FAIL, State.UNKNOWN))
