"""Whether memory corrects its errors: the host's by the kernel or the firmware, accelerators' by their driver."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from harness.ledger.record import Ecc
from harness.machine import memory
from harness.machine.accelerators import Accelerators
from harness.machine.facts import Unreadable

ROOT = Path("/")
HOST, ACCELERATORS = "host", "accelerators"

_EDAC = "sys/devices/system/edac/mc"
_MODES = ("mc*/dimm*/dimm_edac_mode", "mc*/rank*/dimm_edac_mode", "mc*/csrow*/edac_mode")
_CORRECTS = {"EC", "SECDED", "S2ECD2ED", "S4ECD4ED", "S8ECD8ED", "S16ECD16ED"}
"""Words of the kernel's edac_mc_sysfs.c; of the others PARITY tells of an error and corrects none."""
_OFF = {"None", "PARITY"}
_FIRMWARE_ON = {"Single-bit ECC", "Multi-bit ECC"}
_FIRMWARE_OFF = {"None", "Parity"}
_GUEST_VENDORS = ("QEMU", "KVM", "VMware", "Xen", "innotek", "Parallels")


def read_ecc(devices: Accelerators, root: Path = ROOT) -> Ecc:
    """Error correction of both kinds of memory, now. What could not be read is None, and ``sources`` say why."""
    host, host_source = of_host(root)
    boards, board_source = of_accelerators(devices)
    return Ecc(host=host, accelerators=boards, sources={HOST: host_source, ACCELERATORS: board_source})


def of_host(root: Path = ROOT, firmware: Callable[[], str] = memory.dmidecode) -> tuple[bool | None, str]:
    """Whether the host's memory has it on, and the source: the kernel's memory controllers, else the firmware.

    A hypervisor's firmware tells its guests of memory that there is none of; it is not believed.
    """
    modes = _edac_modes(root)
    told = _judged(modes, on=_CORRECTS, off=_OFF)
    if told is not None:
        return told, f"/{_EDAC}: {', '.join(sorted(modes))}"
    unread = _why_no_edac(root, modes)
    if is_guest(root):
        return None, f"{unread}; a virtual machine's firmware does not tell of the memory below it"
    try:
        kinds = set(memory.corrections(firmware()))
    except Unreadable as error:
        return None, f"{unread}; {error}"
    said = ", ".join(sorted(kinds)) or "no array of memory"
    return _judged(kinds, on=_FIRMWARE_ON, off=_FIRMWARE_OFF), f"dmidecode -t memory, Error Correction Type: {said}"


def of_accelerators(devices: Accelerators) -> tuple[bool | None, str]:
    """Whether all accelerators have it on, and the source; None too where there is none."""
    if devices.ecc:
        off = [str(i) for i, on in enumerate(devices.ecc) if on is False]
        silent = [str(i) for i, on in enumerate(devices.ecc) if on is None]
        source = "NVML: nvmlDeviceGetEccMode"
        if off:
            return False, f"{source}: off on {', '.join(off)}"
        return (None, f"{source}: not told of {', '.join(silent)}") if silent else (True, source)
    return None, devices.facts["accelerator_model_name"].source


def is_guest(root: Path) -> bool:
    """Whether this is a virtual machine, by the processor's flag or the maker that the firmware names."""
    flags = _text(root / "proc/cpuinfo")
    if any(line.startswith("flags") and " hypervisor" in line for line in flags.splitlines()):
        return True
    vendor = _text(root / "sys/class/dmi/id/sys_vendor").strip()
    return vendor.startswith(_GUEST_VENDORS)


def _edac_modes(root: Path) -> set[str]:
    return {mode for pattern in _MODES for path in (root / _EDAC).glob(pattern) if (mode := _text(path).strip())}


def _judged(words: set[str], *, on: set[str], off: set[str]) -> bool | None:
    """Off where anything is off; on where all of it is; else nobody knows."""
    if words & off:
        return False
    return True if words and words <= on else None


def _why_no_edac(root: Path, modes: set[str]) -> str:
    if modes:
        return f"/{_EDAC} tells {', '.join(sorted(modes))}"
    if any((root / _EDAC).glob("mc*")):
        return f"/{_EDAC} tells no mode"
    return f"no memory controller below /{_EDAC} (no EDAC driver is loaded, or it found ECC off)"


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
