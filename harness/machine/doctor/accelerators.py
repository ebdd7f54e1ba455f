"""The accelerators: are they those that are needed, and where do they sit."""

from __future__ import annotations

import psutil

from harness.machine.doctor.boards import UNTOLD, told_of
from harness.machine.doctor.check import Check, Question, check
from harness.machine.doctor.host import Host, listed
from harness.machine.doctor.needs import Needs
from harness.machine.facts import counted, sized

_NVML = "NVML"
_VISIBLE = "CUDA_VISIBLE_DEVICES"
_SMALLER = 0.9
"""A driver keeps some of a board's memory for itself, and makers write powers of ten."""


@check(
    "accelerators",
    "gpu-count",
    expected="as many accelerators as the configuration takes on a node",
    why="the engines would not start, or the system's description would say another number than there are",
    authority="systems/<system>: replicas x parallel sizes / number_of_nodes",
    mend="look what the driver sees: nvidia-smi -L; in a container: docker run --gpus all; or name the right system",
)
def gpu_count(ask: Question, host: Host, needs: Needs) -> Check:
    """How many there are, against how many are needed."""
    count, source = host.devices.count, host.devices.facts["accelerators_per_node"].source
    if host.devices.facts["accelerators_per_node"].value is None:
        return ask.unknown(source)
    expected = f"{needs.gpus} (for {needs.named})"
    if not needs.gpus:
        return ask.ok(f"{count}", source, expected=f"any number: {needs.named} needs none")
    if count < needs.gpus:
        return ask.missing(f"{count}", source, expected=expected)
    named = host.environ.get(_VISIBLE)
    if named is not None and len([name for name in named.split(",") if name.strip()]) < needs.gpus:
        return ask.missing(f"{count}, {_VISIBLE}={named}", source, expected=expected, mend=f"unset {_VISIBLE}")
    return ask.ok(f"{count}", source, expected=expected) if count == needs.gpus else ask.warn(
        f"{count}", source, expected=expected, mend="say in the system's description how many the runs use"
    )  # fmt: skip


@check(
    "accelerators",
    "gpu-driver",
    expected="a driver that answers, the kernel's part and the library of one version",
    why="a library of another version than the kernel's module refuses every program that is started",
    authority="NVML: NVML_ERROR_LIB_RM_VERSION_MISMATCH",
    mend="reboot, or load the library's own module: sudo modprobe -r nvidia_uvm nvidia_drm && sudo modprobe nvidia",
)
def gpu_driver(ask: Question, host: Host, needs: Needs) -> Check | None:
    """Driver and CUDA, and whether the loaded module is of the same version."""
    boards = host.boards
    software = dict(host.devices.software)
    if not boards:
        return None
    read = ", ".join(f"{name} {version}" for name, version in software.items())
    loaded = host.told("proc/driver/nvidia/version") or ""
    version = software.get("NVIDIA driver", "")
    if loaded and version not in loaded:
        return ask.fail(f"{read}; the module: {loaded.splitlines()[0]}", "NVML and /proc/driver/nvidia/version")
    return ask.ok(read, _NVML)


@check(
    "accelerators",
    "gpu-alike",
    expected="accelerators of one model and size",
    why="a system is described with one model; the slowest of them holds up all that work together",
    authority="checker: accelerator_model_name is one field",
    mend="give the engines those that are alike: export CUDA_VISIBLE_DEVICES=…",
)
def gpu_alike(ask: Question, host: Host, needs: Needs) -> Check | None:
    """Whether all are the same."""
    if not host.boards:
        return None
    kinds = [f"{b.model} {sized(b.memory_bytes) if b.memory_bytes else 'of unknown memory'}" for b in host.boards]
    return ask.ok(counted(kinds), _NVML) if len(set(kinds)) == 1 else ask.warn(counted(kinds), _NVML)


@check(
    "accelerators",
    "gpu-memory",
    expected="as much memory as the system says",
    why="weights and KV cache were reckoned with that much before the engine was configured",
    authority="systems/<system>/system.yaml: accelerator_memory_capacity",
    mend="correct accelerator_memory_capacity, or name the system that this machine is",
)
def gpu_memory(ask: Question, host: Host, needs: Needs) -> Check | None:
    """Memory of the smallest against what the configuration was made for."""
    sizes = told_of(host.boards, lambda board: board.memory_bytes)
    if not host.boards:
        return None
    if not sizes:
        return ask.unknown(UNTOLD)
    smallest = min(sizes)
    if needs.gpu_bytes is None:
        return ask.ok(f"{sized(smallest)} each", _NVML, expected=f"any: {needs.named} does not say")
    expected = f"at least {_SMALLER:.0%} of {sized(needs.gpu_bytes)}"
    told = f"{sized(smallest)} on the smallest", _NVML
    return (ask.fail if smallest < _SMALLER * needs.gpu_bytes else ask.ok)(*told, expected=expected)


@check(
    "accelerators",
    "gpu-placement",
    expected="this process may run on the processors next to every accelerator",
    why="what goes to a board from the other socket crosses between them: slower, and slower at times only",
    authority="harness: servers inherit the processors that the harness may use",
    mend="start the harness without taskset or numactl, or bind each server to its board's node in launch.prefix: "
    "numactl --cpunodebind=<node> --membind=<node>",
)
def gpu_placement(ask: Question, host: Host, needs: Needs) -> Check | None:
    """The NUMA node of each board against the processors that this process may use."""
    boards = host.boards
    if not boards:
        return None
    nodes = {board.index: board.numa_node for board in boards}
    read = ", ".join(f"{index} on node {'unknown' if node is None else node}" for index, node in nodes.items())
    source = "/sys/bus/pci/devices/*/numa_node, psutil: cpu_affinity"
    there = _nodes(host)
    if not there:
        return ask.unknown("the kernel tells no nodes below /sys/devices/system/node")
    if len(there) == 1:
        return ask.ok("one node of memory", "/sys/devices/system/node")
    if None in nodes.values():
        return ask.unknown(f"the kernel does not tell the node of every board: {read}")
    mine = set(psutil.Process().cpu_affinity() or ())
    # A node may be of memory alone, such as an accelerator's own.
    far = [str(index) for index, node in nodes.items() if (near := there.get(node or 0)) and not near & mine]
    return ask.warn(f"{read}; out of reach: {', '.join(far)}", source) if far else ask.ok(read, source)


def _nodes(host: Host) -> dict[int, set[int]]:
    """The processors of each node of memory."""
    folders = sorted((host.root / "sys/devices/system/node").glob("node[0-9]*"))
    return {int(folder.name[4:]): listed((folder / "cpulist").read_text()) for folder in folders}


CHECKS = (gpu_count, gpu_driver, gpu_alike, gpu_memory, gpu_placement)
