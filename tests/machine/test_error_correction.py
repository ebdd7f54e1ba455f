from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.machine import capture, memory
from harness.machine.accelerators import Accelerators
from harness.machine.capture import captured
from harness.machine.error_correction import is_guest, of_accelerators, of_host, read_ecc
from harness.machine.facts import Fact, Unreadable
from tests.machine import recorded

MC = "sys/devices/system/edac/mc"
SILENT = Accelerators({"accelerator_model_name": Fact(None, "NVML: driver not loaded")}, 2)


def put(root: Path, **files: str) -> Path:
    """Files of a made machine; ``/`` is ``__`` in their names."""
    for name, text in files.items():
        path = root / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def modes(root: Path, *words: str) -> Path:
    for i, word in enumerate(words):
        path = root / MC / f"mc{i // 2}" / f"dimm{i % 2}" / "dimm_edac_mode"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{word}\n")
    return root


def firmware(kind: str) -> str:
    return recorded.DMIDECODE.replace("Multi-bit ECC", kind)


def absent() -> str:
    raise Unreadable("dmidecode needs root")


@pytest.mark.parametrize(
    ("words", "on"),
    [
        (["SECDED", "SECDED"], True),
        (["S4ECD4ED", "SECDED", "SECDED"], True),
        (["SECDED", "None"], False),
        (["PARITY"], False),
    ],
)
def test_memory_controllers_tell_it(tmp_path: Path, words: list[str], on: bool) -> None:
    told, source = of_host(modes(tmp_path, *words), absent)
    assert told is on
    assert source.startswith("/sys/devices/system/edac/mc: ")
    assert all(word in source for word in words)


def test_old_kernels_tell_it_by_row(tmp_path: Path) -> None:
    path = tmp_path / MC / "mc0" / "csrow0" / "edac_mode"
    path.parent.mkdir(parents=True)
    path.write_text("SECDED\n")
    assert of_host(tmp_path, absent)[0] is True


@pytest.mark.parametrize(
    ("kind", "on"), [("Multi-bit ECC", True), ("Single-bit ECC", True), ("None", False), ("Unknown", None)]
)
def test_without_a_driver_the_firmware_tells_it(tmp_path: Path, kind: str, on: bool | None) -> None:
    told, source = of_host(tmp_path, lambda: firmware(kind))
    assert told is on
    assert source == f"dmidecode -t memory, Error Correction Type: {kind}"


def test_unknown_modes_are_not_on(tmp_path: Path) -> None:
    told, source = of_host(modes(tmp_path, "SECDED", "Unknown"), absent)
    assert told is None
    assert source == "/sys/devices/system/edac/mc tells SECDED, Unknown; dmidecode needs root"


def test_controllers_without_a_mode_are_not_on(tmp_path: Path) -> None:
    (tmp_path / MC / "mc0").mkdir(parents=True)
    assert of_host(tmp_path, absent) == (None, "/sys/devices/system/edac/mc tells no mode; dmidecode needs root")


def test_a_cache_of_the_firmware_is_no_memory(tmp_path: Path) -> None:
    text = firmware("Multi-bit ECC").replace("Use: System Memory", "Use: Cache Memory")
    assert of_host(tmp_path, lambda: text)[0] is None


def test_a_virtual_machines_firmware_is_not_believed(tmp_path: Path) -> None:
    root = put(tmp_path, proc__cpuinfo="flags\t\t: fpu vme hypervisor lahf_lm\n")
    told, source = of_host(root, lambda: firmware("Multi-bit ECC"))
    assert told is None
    assert "virtual machine" in source
    assert of_host(modes(root, "SECDED"), absent)[0] is True


def test_guests_are_known_by_flag_or_maker(tmp_path: Path) -> None:
    assert not is_guest(tmp_path)
    assert not is_guest(put(tmp_path / "a", proc__cpuinfo="flags : fpu vme\nmodel name : hypervisor\n"))
    assert is_guest(put(tmp_path / "b", sys__class__dmi__id__sys_vendor="QEMU\n"))
    assert not is_guest(put(tmp_path / "c", sys__class__dmi__id__sys_vendor="Supermicro\n"))


@pytest.mark.parametrize(
    ("states", "on", "said"),
    [
        ((True, True), True, "NVML: nvmlDeviceGetEccMode"),
        ((True, False), False, "off on 1"),
        ((None, False), False, "off on 1"),
        ((True, None), None, "not told of 1"),
    ],
)
def test_all_accelerators_must_have_it_on(states: tuple[bool | None, ...], on: bool | None, said: str) -> None:
    told, source = of_accelerators(Accelerators({}, len(states), ecc=states))
    assert told is on
    assert said in source


def test_accelerators_that_nobody_could_ask_are_not_on() -> None:
    assert of_accelerators(SILENT) == (None, "NVML: driver not loaded")


def test_both_are_read_with_their_sources(tmp_path: Path) -> None:
    ecc = read_ecc(SILENT, modes(tmp_path, "SECDED"))
    assert (ecc.host, ecc.accelerators) == (True, None)
    assert set(ecc.sources) == {"host", "accelerators"}


def test_a_leg_keeps_it_beside_the_machine() -> None:
    found = captured({"torch": "2.13.0"})
    assert found.machine.facts == capture({"torch": "2.13.0"}).facts
    assert all(found.ecc.sources.values())


@given(st.text())
def test_no_text_of_the_firmware_breaks_it(text: str) -> None:
    assert isinstance(memory.corrections(text), list)
    assert of_host(Path("/nowhere"), lambda: text)[0] in (None, True, False)
