"""What the accelerators do just now, and how they are set: clocks, power, errors, and who else computes there."""

from __future__ import annotations

from collections.abc import Iterable

import psutil

from harness.machine.doctor.boards import UNTOLD, Board, told_of
from harness.machine.doctor.check import Check, Question, check
from harness.machine.doctor.host import Host
from harness.machine.doctor.needs import Needs
from harness.machine.facts import counted, sized

_NVML = "NVML"
_USED = 1 << 30


@check(
    "accelerators",
    "gpu-processes",
    expected="nobody else on the accelerators, and their memory free",
    why="whoever else computes there takes memory from the KV cache and time from every token",
    authority="harness: a result is measured on a machine that does nothing else",
    mend="end them: nvidia-smi --query-compute-apps=pid,name,used_memory --format=csv; then kill <pid>",
)
def gpu_processes(ask: Question, host: Host, needs: Needs) -> Check | None:
    """Who computes there, and what is used by whom nobody tells (another container's)."""
    boards = host.boards
    if not boards:
        return None
    found = [f"{board.index}: {_named(pid)}" for board in boards for pid, _ in board.processes or ()]
    if found:
        return ask.fail("; ".join(found[:8]), "NVML: nvmlDeviceGetComputeRunningProcesses")
    used = [f"{b.index}: {sized(b.used_bytes)}" for b in boards if b.used_bytes is not None and b.used_bytes > _USED]
    if used:
        return ask.fail(f"memory is used: {', '.join(used)}", "NVML: nvmlDeviceGetMemoryInfo")
    if all(board.processes is None for board in boards):
        return ask.unknown(UNTOLD)
    return ask.ok("nobody", "NVML: nvmlDeviceGetComputeRunningProcesses")


@check(
    "accelerators",
    "gpu-clocks",
    expected="clocks that nothing holds down, free to reach their maximum",
    why="a board that is too hot, or whose power is braked, is slower in one run than in the next",
    authority="NVML: nvmlClocksThrottleReasons (nvidia-smi -q -d PERFORMANCE)",
    mend="cooling and power first; locked clocks: sudo nvidia-smi -rgc && sudo nvidia-smi -rac",
)
def gpu_clocks(ask: Question, host: Host, needs: Needs) -> Check | None:
    """Clocks now, as set and at most, and why they are held down."""
    boards = host.boards
    if not boards:
        return None
    read, source = _clocks(boards), "NVML: clock info, applications clock, throttle reasons"
    slowed = [f"{board.index}: {', '.join(board.slowed)}" for board in boards if board.slowed]
    if slowed:
        return ask.fail(f"{read}; held down: {'; '.join(slowed)}", source)
    if all(board.slowed is None for board in boards):
        return ask.unknown(UNTOLD)
    below = [b.index for b in boards if b.sm_set_mhz and b.sm_max_mhz and b.sm_set_mhz < b.sm_max_mhz]
    odd = [f"{board.index}: {', '.join(board.capped)}" for board in boards if board.capped]
    if below or odd:
        told = [*([f"set below the maximum on {', '.join(map(str, below))}"] if below else []), *odd]
        return ask.warn(f"{read}; {'; '.join(told)}", source)
    return ask.ok(read, source)


@check(
    "accelerators",
    "gpu-power",
    expected="the power limit that the board has by default",
    why="a lower limit lowers clocks under load; one that somebody left behind costs the result silently",
    authority="NVML: nvmlDeviceGetPowerManagementDefaultLimit",
    mend="sudo nvidia-smi -pl <default in watts>; or say the limit in hw_notes",
)
def gpu_power(ask: Question, host: Host, needs: Needs) -> Check | None:
    """The power cap against the default."""
    caps = told_of(host.boards, lambda b: None if b.power_mw is None else (b.index, b.power_mw, b.power_default_mw))
    if not host.boards:
        return None
    known = [(index, cap, default) for index, cap, default in caps if default is not None]
    if not known:
        return ask.unknown(UNTOLD)
    read = counted(f"{cap / 1000:g} W of {default / 1000:g} W" for _, cap, default in known)
    lower = [str(index) for index, cap, default in known if cap < default]
    source = "NVML: power management limit"
    return ask.warn(f"{read}; lower on {', '.join(lower)}", source) if lower else ask.ok(read, source)


@check(
    "accelerators",
    "gpu-persistence",
    expected="persistence mode on",
    why="without it the driver leaves a board that nobody uses: settings are lost and the next start takes seconds",
    authority="NVIDIA, Driver Persistence",
    mend="sudo nvidia-smi -pm 1, or run nvidia-persistenced",
)
def gpu_persistence(ask: Question, host: Host, needs: Needs) -> Check | None:
    """Whether the driver stays on every board."""
    told = told_of(host.boards, lambda b: None if b.persistent is None else (b.index, b.persistent))
    return _all_set(ask, host, told, "on", "off")


@check(
    "accelerators",
    "gpu-mig",
    expected="whole accelerators, not split into instances",
    why="an engine that is given a GPU would get a part of it, and the description would count whole ones",
    authority="NVML: nvmlDeviceGetMigMode",
    mend="sudo nvidia-smi -mig 0 && sudo nvidia-smi --gpu-reset",
)
def gpu_mig(ask: Question, host: Host, needs: Needs) -> Check | None:
    """Whether any is in MIG mode."""
    boards = host.boards
    if not boards:
        return None
    split = [str(board.index) for board in boards if board.mig]
    if split:
        return (ask.fail if needs.gpus else ask.warn)(f"MIG mode on {', '.join(split)}", _NVML)
    return ask.ok("no MIG mode", _NVML)  # a board that does not tell has none


@check(
    "accelerators",
    "gpu-links",
    expected="PCIe links of full width, and NVLinks on all boards alike",
    why="a lost lane halves what reaches a board; a link that is down slows tensor parallel replicas",
    authority="NVML: link widths, nvmlDeviceGetNvLinkState",
    mend="nvidia-smi -q -d PCIE and nvidia-smi nvlink -s show which; seat the board again, or see dmesg for XID errors",
)
def gpu_links(ask: Question, host: Host, needs: Needs) -> Check | None:
    """Widths now against the widest, and whether some board has fewer NVLinks up than another."""
    boards = host.boards
    if not boards:
        return None
    narrow = [
        f"{b.index}: PCIe x{b.pcie_width} of x{b.pcie_width_max}"
        for b in boards
        if b.pcie_width and b.pcie_width_max and b.pcie_width < b.pcie_width_max
    ]
    links = [board.nvlinks or 0 for board in boards]
    fewer = [f"{b.index}: {n} NVLinks of {max(links)}" for b, n in zip(boards, links, strict=True) if n < max(links)]
    source = "NVML: link widths, NVLink states"
    if narrow or fewer:
        return (ask.fail if fewer and needs.gpus_each > 1 else ask.warn)("; ".join([*narrow, *fewer]), source)
    widths = counted(f"PCIe x{b.pcie_width}, {b.nvlinks} NVLinks" for b in boards)
    return ask.ok(widths, source) if any(b.pcie_width for b in boards) else ask.unknown(UNTOLD)


@check(
    "accelerators",
    "gpu-fabric",
    expected="every board taken into the NVLink fabric, where there is one",
    why="until then no program can use any of them: CUDA says that the system is not yet initialised",
    authority="NVIDIA Fabric Manager user guide; NVML: nvmlDeviceGetGpuFabricInfo",
    mend="sudo systemctl enable --now nvidia-fabricmanager (of the driver's version); nvidia-smi -q | grep -A3 Fabric",
)
def gpu_fabric(ask: Question, host: Host, needs: Needs) -> Check | None:
    """Whether the fabric manager has done its work; boards without a fabric are not asked about."""
    boards = [board for board in host.boards if board.fabric is not None]
    if not boards:
        return None
    waiting = [str(board.index) for board in boards if not board.fabric]
    source = "NVML: nvmlDeviceGetGpuFabricInfo"
    return ask.fail(f"not in it: {', '.join(waiting)}", source) if waiting else ask.ok("all in it", source)


@check(
    "accelerators",
    "gpu-errors",
    expected="no memory error that could not be corrected, no row that waits to be replaced",
    why="such an error ends the engine in the middle of a leg",
    authority="NVIDIA GPU Memory Error Management (row remapping)",
    mend="sudo nvidia-smi --gpu-reset replaces rows; a board whose rows cannot be replaced is to be replaced itself",
)
def gpu_errors(ask: Question, host: Host, needs: Needs) -> Check | None:
    """Errors since the driver was loaded, and rows of memory that are to be, or could not be, remapped."""
    boards = host.boards
    if not boards:
        return None
    bad = [f"{b.index}: {text}" for b in boards for text in _errors(b)]
    source = "NVML: nvmlDeviceGetTotalEccErrors, nvmlDeviceGetRemappedRows"
    if bad:
        return ask.fail("; ".join(bad), source)
    told = [b for b in boards if b.uncorrected is not None or b.remap_failed is not None]
    return ask.ok("none", source) if len(told) == len(boards) else ask.unknown(UNTOLD)


def _errors(board: Board) -> Iterable[str]:
    if board.uncorrected:
        yield f"{board.uncorrected} uncorrected errors"
    if board.remap_failed:
        yield "a row could not be replaced"
    if board.remap_pending:
        yield "a row waits for a reset to be replaced"


def _all_set(ask: Question, host: Host, told: list[tuple[int, bool]], on: str, off: str) -> Check | None:
    if not host.boards:
        return None
    if not told:
        return ask.unknown(UNTOLD)
    not_so = [str(index) for index, is_set in told if not is_set]
    return ask.warn(f"{off} on {', '.join(not_so)}", _NVML) if not_so else ask.ok(on, _NVML)


def _clocks(boards: Iterable[Board]) -> str:
    def told(mhz: int | None) -> str:
        return "unknown" if mhz is None else f"{mhz} MHz"

    return counted(f"{told(b.sm_mhz)} now, set to {told(b.sm_set_mhz)} of {told(b.sm_max_mhz)}" for b in boards)


def _named(pid: int) -> str:
    try:
        return f"{psutil.Process(pid).name()} ({pid})"
    except psutil.Error:
        return f"process {pid}"


CHECKS = (gpu_processes, gpu_clocks, gpu_power, gpu_persistence, gpu_mig, gpu_links, gpu_fabric, gpu_errors)
