"""How each accelerator is set and what it does just now, as NVIDIA's management library tells it."""

from __future__ import annotations

import ctypes
import importlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from harness.machine.accelerators import Accelerators, driver, read_accelerators, told_by
from harness.machine.facts import Unreadable

T = TypeVar("T")
UNTOLD = "the driver does not tell it of any accelerator"

_FAILS = ("HwSlowdown", "HwThermalSlowdown", "HwPowerBrakeSlowdown", "SwThermalSlowdown")
_ODD = ("ApplicationsClocksSetting", "SwPowerCap", "SyncBoost", "DisplayClockSetting")


@dataclass(frozen=True, slots=True)
class Board:
    """One accelerator as it is set now; None for what its driver would not tell. Clocks in MHz, power in milliwatts.

    ``slowed`` are reasons why its clocks are held down that no healthy machine has, ``capped`` those that somebody may
    have wanted. ``used_bytes`` are without what the driver keeps for itself. ``processes`` are the ids of those that
    compute on it and the bytes that each holds. ``fabric`` is whether it has been taken into the NVLink fabric.
    """

    index: int
    model: str
    pci: str | None
    memory_bytes: int | None = None
    used_bytes: int | None = None
    ecc_pending: bool | None = None
    uncorrected: int | None = None
    remap_failed: bool | None = None
    remap_pending: bool | None = None
    sm_mhz: int | None = None
    sm_max_mhz: int | None = None
    sm_set_mhz: int | None = None
    slowed: tuple[str, ...] | None = None
    capped: tuple[str, ...] = ()
    power_mw: int | None = None
    power_default_mw: int | None = None
    persistent: bool | None = None
    mig: bool | None = None
    pcie_width: int | None = None
    pcie_width_max: int | None = None
    nvlinks: int | None = None
    fabric: bool | None = None
    processes: tuple[tuple[int, int | None], ...] | None = None
    numa_node: int | None = None


def read_boards(root: Path, library: str) -> tuple[Accelerators, list[Board], str | None]:
    """What accelerators there are, the state of each, and why there is none to be told where there are some.

    One session of the driver's library: without persistence mode each takes a second a board. Never raises.
    """
    try:
        nvml = importlib.import_module(library)
        with driver(nvml):
            devices = read_accelerators(root / "dev", library)
            return devices, [_board(nvml, root, i) for i in range(devices.count)], None
    except (ImportError, Unreadable):
        devices = read_accelerators(root / "dev", library)
    source = devices.facts["accelerator_model_name"].source
    nothing = devices.count == 0 and devices.facts["accelerators_per_node"].value is not None
    return devices, [], None if nothing else source


def told_of(boards: Iterable[Board], value: Callable[[Board], T | None]) -> list[T]:
    """What is known of those boards that tell it."""
    return [found for board in boards if (found := value(board)) is not None]


def _board(nvml: Any, root: Path, index: int) -> Board:  # noqa: ANN401 - an untyped module
    handle = nvml.nvmlDeviceGetHandleByIndex(index)

    def told(name: str, *arguments: Any) -> Any:  # noqa: ANN401 - an untyped module
        return told_by(nvml, getattr(nvml, name), handle, *arguments)

    memory, taken = told("nvmlDeviceGetMemoryInfo"), told("nvmlDeviceGetMemoryInfo", nvml.nvmlMemory_v2)
    ecc, rows, mig = told("nvmlDeviceGetEccMode"), _remapped(told), told("nvmlDeviceGetMigMode")
    slowed, capped = _reasons(nvml, handle)
    pci = _pci(told("nvmlDeviceGetPciInfo"))
    return Board(
        index=index,
        model=str(told("nvmlDeviceGetName")),
        pci=pci,
        memory_bytes=None if memory is None else int(memory.total),
        used_bytes=None if taken is None else int(taken.used),
        ecc_pending=None if ecc is None else bool(ecc[1]),
        uncorrected=told(
            "nvmlDeviceGetTotalEccErrors", nvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, nvml.NVML_VOLATILE_ECC
        ),
        remap_pending=rows[0],
        remap_failed=rows[1],
        sm_mhz=told("nvmlDeviceGetClockInfo", nvml.NVML_CLOCK_SM),
        sm_max_mhz=told("nvmlDeviceGetMaxClockInfo", nvml.NVML_CLOCK_SM),
        sm_set_mhz=told("nvmlDeviceGetApplicationsClock", nvml.NVML_CLOCK_SM),
        slowed=slowed,
        capped=capped,
        power_mw=told("nvmlDeviceGetPowerManagementLimit"),
        power_default_mw=told("nvmlDeviceGetPowerManagementDefaultLimit"),
        persistent=_flag(told("nvmlDeviceGetPersistenceMode")),
        mig=None if mig is None else bool(mig[0]),
        pcie_width=told("nvmlDeviceGetCurrPcieLinkWidth"),
        pcie_width_max=told("nvmlDeviceGetMaxPcieLinkWidth"),
        fabric=_fabric(nvml, handle),
        nvlinks=sum(bool(told("nvmlDeviceGetNvLinkState", i)) for i in range(nvml.NVML_NVLINK_MAX_LINKS)),
        processes=_processes(told("nvmlDeviceGetComputeRunningProcesses")),
        numa_node=_numa_node(root, pci),
    )


def _remapped(told: Callable[..., Any]) -> tuple[bool | None, bool | None]:
    """Whether a row of memory waits for a reset to be replaced, and whether one could not be."""
    rows = told("nvmlDeviceGetRemappedRows")
    return (None, None) if rows is None else (bool(rows[2]), bool(rows[3]))


def _reasons(nvml: Any, handle: Any) -> tuple[tuple[str, ...] | None, tuple[str, ...]]:  # noqa: ANN401 - an untyped module
    """Why clocks are held down: what no healthy machine has, and what somebody may have set."""
    bits = told_by(nvml, nvml.nvmlDeviceGetCurrentClocksThrottleReasons, handle)
    if bits is None:
        return None, ()

    def named(names: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(name for name in names if bits & getattr(nvml, f"nvmlClocksThrottleReason{name}"))

    return named(_FAILS), named(_ODD)


def _fabric(nvml: Any, handle: Any) -> bool | None:  # noqa: ANN401 - an untyped module
    """Whether a board has been taken into the NVLink fabric; None where it has none, or does not tell."""
    info = nvml.c_nvmlGpuFabricInfo_t()
    if told_by(nvml, nvml.nvmlDeviceGetGpuFabricInfo, handle, ctypes.byref(info)) is None:
        return None
    states = {nvml.NVML_GPU_FABRIC_STATE_NOT_SUPPORTED: None, nvml.NVML_GPU_FABRIC_STATE_COMPLETED: True}
    return states.get(info.state, False)


def _pci(info: Any) -> str | None:  # noqa: ANN401 - an untyped module
    """The address as sysfs writes it: 0000:1b:00.0 for NVML's 00000000:1B:00.0."""
    if info is None:
        return None
    bus = info.busId.decode("ascii", "replace") if isinstance(info.busId, bytes) else str(info.busId)
    domain, _, rest = bus.lower().partition(":")
    return f"{domain[-4:]}:{rest}"


def _numa_node(root: Path, pci: str | None) -> int | None:
    """The node of the host's memory that a board is next to; None where the kernel does not say."""
    try:
        node = int((root / "sys/bus/pci/devices" / str(pci) / "numa_node").read_text())
    except (OSError, ValueError):
        return None
    return node if node >= 0 else None


def _processes(found: Any) -> tuple[tuple[int, int | None], ...] | None:  # noqa: ANN401 - an untyped module
    return None if found is None else tuple((int(one.pid), one.usedGpuMemory) for one in found)


def _flag(value: Any) -> bool | None:  # noqa: ANN401 - an untyped module
    return None if value is None else bool(value)
