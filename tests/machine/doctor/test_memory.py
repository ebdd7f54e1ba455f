from __future__ import annotations

import types
from pathlib import Path

import psutil
import pytest

from harness.machine.doctor import memory
from tests.machine.doctor.made_host import FAIL, OK, UNKNOWN, WARN, asked, made, needing, states
from tests.machine.recorded_driver import H200, Board

DIMM = "sys/devices/system/edac/mc/mc0/dimm0/dimm_edac_mode"
COUNT = "sys/devices/system/edac/mc/mc0/{}_count"
GUEST = {"proc/cpuinfo": "flags : fpu hypervisor\n"}


@pytest.mark.parametrize(
    ("mode", "corrected", "state"),
    [("SECDED", True, OK), ("None", True, FAIL), ("None", False, WARN), ("Unknown", True, UNKNOWN)],
)
def test_ecc_of_the_host(tmp_path: Path, mode: str, corrected: bool, state: str) -> None:
    found = asked(memory.ecc_host, made(tmp_path, {DIMM: mode, **GUEST}), needing(corrected=corrected))
    assert states(found) == (state, False)
    assert "sys/devices/system/edac/mc" in found.source


def test_a_guest_is_told_whom_to_ask(tmp_path: Path) -> None:
    found = asked(memory.ecc_host, made(tmp_path, GUEST))
    assert states(found) == (UNKNOWN, False)
    assert found.mend is not None and "hw_notes" in found.mend
    errors = asked(memory.memory_errors, made(tmp_path, GUEST))
    assert errors.mend == found.mend


@pytest.mark.parametrize(
    ("modes", "corrected", "state", "read"),
    [
        ([1, 1], True, OK, "on"),
        ([0, 0], True, FAIL, "off"),
        ([0, 1], False, WARN, "off"),
        ([1, 0], True, WARN, "on, and off after the next reset of 0"),
        (None, True, UNKNOWN, "unknown"),
    ],
)
def test_ecc_of_accelerators(driver, tmp_path, modes, corrected, state, read):
    answers = {} if modes is None else {"nvmlDeviceGetEccMode": modes}
    host = made(tmp_path, library=driver([Board("GPU-0", **H200, **answers)]))
    found = asked(memory.ecc_accelerators, host, needing(corrected=corrected))
    assert (*states(found), found.read) == (state, False, read)


def test_without_accelerators_their_memory_is_not_asked_about(tmp_path: Path) -> None:
    assert memory.ecc_accelerators(made(tmp_path), needing(corrected=True)) is None


@pytest.mark.parametrize(("lost", "mended", "state"), [("0", "0", OK), ("0", "7", WARN), ("1", "0", FAIL)])
def test_errors_that_were_counted(tmp_path: Path, lost: str, mended: str, state: str) -> None:
    files = {COUNT.format("ue"): lost, COUNT.format("ce"): mended}
    found = asked(memory.memory_errors, made(tmp_path, files))
    assert states(found) == (state, False)
    assert found.read == f"{lost} uncorrected, {mended} corrected"


@pytest.mark.parametrize(("available", "state"), [(50, OK), (15, WARN), (3, FAIL)])
def test_memory_that_can_be_had(monkeypatch, tmp_path, available, state):
    told = types.SimpleNamespace(total=100 << 30, available=available << 30)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: told)
    found = asked(memory.memory_free, made(tmp_path))
    assert states(found) == (state, False)
    assert found.read == f"{available} GiB of 100 GiB available ({available}%)"


@pytest.mark.parametrize(
    ("total", "used", "state", "read"),
    [
        (0, 0, OK, "no swap"),
        (8 << 30, 1 << 20, OK, "1 MiB of 8 GiB used"),
        (8 << 30, 2 << 30, WARN, "2 GiB of 8 GiB used"),
    ],
)
def test_what_is_swapped_out(monkeypatch, tmp_path, total, used, state, read):
    monkeypatch.setattr(psutil, "swap_memory", lambda: types.SimpleNamespace(total=total, used=used))
    found = asked(memory.swap, made(tmp_path))
    assert (*states(found), found.read) == (state, False, read)
