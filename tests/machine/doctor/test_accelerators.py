from __future__ import annotations

import re
import types
from pathlib import Path

import psutil
import pynvml
import pytest

from harness.machine import accelerators as readings
from harness.machine.doctor import accelerators, boards
from harness.machine.doctor import board_state as state_of
from harness.machine.doctor.boards import read_boards
from tests.machine.doctor.made_host import FAIL, NO_LIBRARY, NOTHING, OK, UNKNOWN, WARN, asked, made, needing, states
from tests.machine.recorded_driver import H200, Board


def in_the_fabric(info, state):
    """Fills NVML's structure, which is handed over by reference."""
    info._obj.state = state
    return 0


WELL = {
    **H200,
    "nvmlDeviceGetMemoryInfo": types.SimpleNamespace(total=150_754_820_096, used=500 << 20),
    "nvmlDeviceGetEccMode": [1, 1],
    "nvmlDeviceGetTotalEccErrors": 0,
    "nvmlDeviceGetRemappedRows": (0, 0, 0, 0),
    "nvmlDeviceGetClockInfo": 345,
    "nvmlDeviceGetApplicationsClock": 1980,
    "nvmlDeviceGetCurrentClocksThrottleReasons": pynvml.nvmlClocksThrottleReasonGpuIdle,
    "nvmlDeviceGetPowerManagementLimit": 700_000,
    "nvmlDeviceGetPowerManagementDefaultLimit": 700_000,
    "nvmlDeviceGetPersistenceMode": 1,
    "nvmlDeviceGetCurrPcieLinkWidth": 16,
    "nvmlDeviceGetComputeRunningProcesses": [],
    "nvmlDeviceGetGpuFabricInfo": lambda info: in_the_fabric(info, pynvml.NVML_GPU_FABRIC_STATE_COMPLETED),
    "nvmlDeviceGetPciInfo": types.SimpleNamespace(busId="00000000:1B:00.0"),
    "links": 18,
    "version": pynvml.NVML_NVLINK_VERSION_4_0,
}
ALL = (*accelerators.CHECKS, *state_of.CHECKS)
NODE = "sys/devices/system/node/node{}/cpulist"
PCI_NODE = "sys/bus/pci/devices/0000:1b:00.0/numa_node"


@pytest.fixture
def host(driver, tmp_path):
    """Two boards, the second with these answers changed; None takes one away."""

    def make(files=None, **changed):
        answers = {key: value for key, value in {**WELL, **changed}.items() if value is not None}
        boards = [Board("GPU-0", **WELL), Board("GPU-1", **answers)]
        return made(tmp_path, files, library=driver(boards))

    return make


def test_a_machine_that_is_well(host):
    needs = needing(gpus=2, gpus_each=2, gpu_bytes=141 * 10**9)
    found = {one.name: one for ask in ALL if (one := ask(host({NODE.format(0): "0-1"}), needs)) is not None}
    assert {name for name, one in found.items() if one.state.value != OK} == set()
    assert len(found) == len(ALL)
    assert found["gpu-count"].read == "2"
    assert found["gpu-memory"].read == "140.4 GiB on the smallest"
    assert found["gpu-driver"].read == "NVIDIA driver 580.67, CUDA driver API 13.1"
    assert found["gpu-clocks"].read == "2x 345 MHz now, set to 1980 MHz of 1980 MHz"
    assert found["gpu-power"].read == "2x 700 W of 700 W"
    assert found["gpu-links"].read == "2x PCIe x16, 18 NVLinks"


@pytest.mark.parametrize(
    ("ask", "changed", "state", "said"),
    [
        (accelerators.gpu_alike, {"nvmlDeviceGetName": "NVIDIA H100"}, WARN, "1x NVIDIA H200"),
        (
            accelerators.gpu_memory,
            {"nvmlDeviceGetMemoryInfo": types.SimpleNamespace(total=80 << 30, used=0)},
            FAIL,
            "80 GiB",
        ),
        (
            state_of.gpu_processes,
            {"nvmlDeviceGetComputeRunningProcesses": [types.SimpleNamespace(pid=2**30, usedGpuMemory=None)]},
            FAIL,
            f"1: process {2**30}",
        ),
        (
            state_of.gpu_processes,
            {"nvmlDeviceGetMemoryInfo": types.SimpleNamespace(total=100 << 30, used=20 << 30)},
            FAIL,
            "1: 20 GiB",
        ),
        (
            state_of.gpu_clocks,
            {"nvmlDeviceGetCurrentClocksThrottleReasons": pynvml.nvmlClocksThrottleReasonHwThermalSlowdown},
            FAIL,
            "held down: 1: HwThermalSlowdown",
        ),
        (
            state_of.gpu_clocks,
            {"nvmlDeviceGetCurrentClocksThrottleReasons": pynvml.nvmlClocksThrottleReasonSwPowerCap},
            WARN,
            "1: SwPowerCap",
        ),
        (state_of.gpu_clocks, {"nvmlDeviceGetApplicationsClock": 1200}, WARN, "set below the maximum on 1"),
        (state_of.gpu_power, {"nvmlDeviceGetPowerManagementLimit": 500_000}, WARN, "500 W of 700 W; lower on 1"),
        (state_of.gpu_persistence, {"nvmlDeviceGetPersistenceMode": 0}, WARN, "off on 1"),
        (state_of.gpu_mig, {"nvmlDeviceGetMigMode": [1, 1]}, FAIL, "MIG mode on 1"),
        (state_of.gpu_links, {"nvmlDeviceGetCurrPcieLinkWidth": 8}, WARN, "1: PCIe x8 of x16"),
        (state_of.gpu_links, {"links": 17}, FAIL, "1: 17 NVLinks of 18"),
        (
            state_of.gpu_fabric,
            {"nvmlDeviceGetGpuFabricInfo": lambda info: in_the_fabric(info, pynvml.NVML_GPU_FABRIC_STATE_NOT_STARTED)},
            FAIL,
            "not in it: 1",
        ),
        (state_of.gpu_errors, {"nvmlDeviceGetTotalEccErrors": 2}, FAIL, "1: 2 uncorrected errors"),
        (state_of.gpu_errors, {"nvmlDeviceGetRemappedRows": (0, 1, 1, 0)}, FAIL, "1: a row waits"),
        (state_of.gpu_errors, {"nvmlDeviceGetRemappedRows": (0, 1, 0, 1)}, FAIL, "1: a row could not be replaced"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_one_board_that_is_not_well(host, ask, changed, state, said):
    found = asked(ask, host(**changed), needing(gpus=2, gpus_each=2, gpu_bytes=141 * 10**9))
    assert states(found) == (state, False)
    assert said in found.read
    assert found.mend


@pytest.mark.parametrize(
    ("count", "needed", "state", "missing"),
    [(2, 2, OK, False), (2, 8, FAIL, True), (2, 1, WARN, False), (2, 0, OK, False)],
)
def test_their_number_against_what_is_needed(host, count, needed, state, missing):
    found = asked(accelerators.gpu_count, host(), needing(gpus=needed))
    assert (*states(found), found.read) == (state, missing, str(count))
    assert ("for BOX (gpt-oss-120b)" in found.expected) is bool(needed)


@pytest.mark.parametrize(("named", "state", "missing"), [("0,1", OK, False), ("1", FAIL, True), ("", FAIL, True)])
def test_those_that_the_environment_lets_be_seen(driver, tmp_path, named, state, missing):
    boards = [Board("GPU-0", **WELL), Board("GPU-1", **WELL)]
    host = made(tmp_path, library=driver(boards), environ={"CUDA_VISIBLE_DEVICES": named})
    found = asked(accelerators.gpu_count, host, needing(gpus=2))
    assert states(found) == (state, missing)
    assert states(asked(accelerators.gpu_count, host)) == (OK, False)  # nothing is named that needs them


def test_no_accelerators_at_all(tmp_path):
    host = made(tmp_path)
    assert {ask(host, NOTHING) for ask in ALL} - {asked(accelerators.gpu_count, host)} == {None}
    assert states(asked(accelerators.gpu_count, host)) == (OK, False)
    assert states(asked(accelerators.gpu_count, host, needing(gpus=8))) == (FAIL, True)


@pytest.mark.parametrize("error", [NO_LIBRARY, pynvml.NVML_ERROR_UNKNOWN, pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH])
def test_a_driver_that_does_not_answer_is_unknown_everywhere(driver, tmp_path, error):
    host = made(tmp_path, {"dev/nvidia0": "", "dev/nvidiactl": ""}, library=driver([], error))
    found = [asked(ask, host, needing(gpus=1)) for ask in ALL if ask is not accelerators.gpu_count]
    assert {states(one) for one in found} == {(UNKNOWN, False)}
    assert all("NVML" in one.source for one in found)


def test_without_the_module_nobody_knows(tmp_path):
    host = made(tmp_path, library="no_such_module_of_nvml")
    assert {states(asked(ask, host)) for ask in ALL} == {(UNKNOWN, False)}


def test_a_driver_that_tells_little_is_unknown_and_never_ok(driver, tmp_path):
    host = made(tmp_path, library=driver([Board("GPU-0", nvmlDeviceGetName="NVIDIA X")]))
    silent = [state_of.gpu_processes, state_of.gpu_clocks, state_of.gpu_power, state_of.gpu_persistence,
              state_of.gpu_errors, state_of.gpu_links, accelerators.gpu_memory]  # fmt: skip
    assert {states(asked(ask, host, needing(gpus=1))) for ask in silent} == {(UNKNOWN, False)}


@pytest.mark.parametrize("state", [None, pynvml.NVML_GPU_FABRIC_STATE_NOT_SUPPORTED])
def test_boards_without_a_fabric_are_not_asked_about_it(driver, tmp_path, state):
    answer = {} if state is None else {"nvmlDeviceGetGpuFabricInfo": lambda info: in_the_fabric(info, state)}
    host = made(tmp_path, library=driver([Board("GPU-0", **H200, **answer)]))
    assert state_of.gpu_fabric(host, NOTHING) is None


def test_memory_that_the_driver_keeps_is_used_by_nobody(driver, tmp_path):
    """Of the first version of the call it is a part of what is used."""

    def told(version=None):
        if version is None:
            return types.SimpleNamespace(total=100 << 30, used=2 << 30)
        raise pynvml.NVMLError(pynvml.NVML_ERROR_FUNCTION_NOT_FOUND)

    answers = {**WELL, "nvmlDeviceGetMemoryInfo": told}
    host = made(tmp_path, library=driver([Board("GPU-0", **answers)]))
    assert host.boards[0].used_bytes is None
    assert states(asked(state_of.gpu_processes, host)) == (OK, False)


def test_a_module_of_another_version_than_the_library(host):
    loaded = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.1  Release Build\nGCC version: 12\n"
    found = asked(accelerators.gpu_driver, host({"proc/driver/nvidia/version": loaded}))
    assert states(found) == (FAIL, False)
    assert "570.1" in found.read and "GCC" not in found.read
    same = host({"proc/driver/nvidia/version": loaded.replace("570.1", "580.67")})
    assert states(asked(accelerators.gpu_driver, same)) == (OK, False)


@pytest.mark.parametrize(
    ("node", "mine", "state", "said"),
    [("1", {0, 1}, WARN, "out of reach: 0, 1"), ("0", {0, 1}, OK, "0 on node 0"), ("-1", {0}, UNKNOWN, "unknown")],
)
def test_boards_beside_processors_that_may_not_be_used(monkeypatch, host, node, mine, state, said):
    monkeypatch.setattr(psutil.Process, "cpu_affinity", lambda self: sorted(mine))
    files = {NODE.format(0): "0-1\n", NODE.format(1): "2-3\n", PCI_NODE: f"{node}\n"}
    found = asked(accelerators.gpu_placement, host(files))
    assert states(found) == (state, False)
    assert said in (found.read if state != UNKNOWN else found.source)


def test_a_kernel_that_tells_no_nodes(host):
    assert states(asked(accelerators.gpu_placement, host())) == (UNKNOWN, False)


def test_a_node_of_memory_alone_has_no_processors_to_be_next_to(monkeypatch, host):
    monkeypatch.setattr(psutil.Process, "cpu_affinity", lambda self: [0, 1])
    files = {NODE.format(0): "0-1\n", NODE.format(1): "\n", PCI_NODE: "1\n"}
    assert states(asked(accelerators.gpu_placement, host(files))) == (OK, False)


@pytest.mark.parametrize("module", [boards, readings], ids=lambda module: module.__name__)
def test_every_name_of_the_library_is_one(module):
    """The double answers to any name."""
    text = Path(module.__file__).read_text()
    names = set(re.findall(r"\b(?:nvml|c_nvml|NVML_?)[A-Z]\w+", text)) - {"nvmlClocksThrottleReason"}
    names |= {f"nvmlClocksThrottleReason{name}" for name in (*boards._FAILS, *boards._ODD)}
    assert len(names) > 12
    assert {name for name in names if not hasattr(pynvml, name)} <= {"NVML_NVLINK_VERSION_"}


def test_one_session_of_the_driver_for_all(driver, tmp_path, monkeypatch):
    import sys

    name = driver([Board("GPU-0", **WELL)])
    opened = []
    real = sys.modules[name].nvmlInit
    monkeypatch.setattr(sys.modules[name], "nvmlInit", lambda: (opened.append(1), real())[1])
    devices, boards, why = read_boards(tmp_path, name)
    assert (devices.count, len(boards), why) == (1, 1, None)
    assert boards[0].pci == "0000:1b:00.0"
    assert len(opened) == 2  # the one that is kept, and the counted one within
