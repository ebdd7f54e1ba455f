from __future__ import annotations

import getpass
import json
import socket
import time
import types
from pathlib import Path

import pynvml
import pytest

from harness.machine import accelerators, capture
from harness.machine.facts import Fact
from harness.machine.identity import identity
from harness.machine.software import read_operating_system, stack
from harness.rules import load
from tests.machine.recorded_driver import H200, Board

FROM_PEOPLE_OR_ENTRY = {
    "division", "submitter", "status", "system_name", "number_of_nodes", "system_type", "cooling",
    "host_networking_topology", "hw_notes", "sw_notes", "system_type_detail",
}  # fmt: skip


def test_capture_covers_every_key_that_a_machine_can_tell():
    machine = capture({"torch": "2.13.0"})
    assert set(machine.facts) == set(load("v6.1").system_fields.required.value) - FROM_PEOPLE_OR_ENTRY
    assert set(machine.sources) == set(machine.facts)
    assert all(machine.sources.values())
    assert machine.facts["framework"] == "torch 2.13.0"
    assert machine.facts["host_memory_capacity"]
    json.dumps(machine.model_dump(mode="json"))


def test_capture_is_quick_and_repeats():
    started = time.perf_counter()
    first = capture({})
    assert time.perf_counter() - started < 1
    again = capture({})
    assert (again.facts, again.identity) == (first.facts, first.identity)


def test_capture_tells_nothing_of_who_and_where():
    text = json.dumps(capture({}).model_dump(mode="json"))
    machine_id = Path("/etc/machine-id")
    secrets = [socket.gethostname(), f"/home/{getpass.getuser()}"]
    if machine_id.exists():
        secrets.append(machine_id.read_text().strip() or "no machine id")
    assert not [secret for secret in secrets if len(secret) > 3 and secret in text]


def test_every_source_failing_still_gives_a_record(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("subprocess.run", lambda *args, **kwargs: (_ for _ in ()).throw(FileNotFoundError()))
    monkeypatch.setattr("platform.freedesktop_os_release", lambda: (_ for _ in ()).throw(OSError("none")))
    monkeypatch.setattr("harness.machine.network.SYSFS", tmp_path / "absent")
    machine = capture({})
    assert machine.facts["host_processor_model_name"] is None
    assert machine.sources["host_processor_model_name"] == "lscpu is not installed"
    assert machine.facts["operating_system"] is None
    assert machine.facts["host_networking"] is None
    assert machine.sources["framework"] == "no engine has named its software"


def test_identity_is_of_the_hardware_too(tmp_path):
    machine_id = tmp_path / "machine-id"
    machine_id.write_text("0123456789abcdef\n")
    facts = {"host_processor_model_name": Fact("AMD EPYC", "lscpu")}
    one = identity(facts, ["GPU-1", "GPU-2"], machine_id)
    assert one == identity(facts, ["GPU-2", "GPU-1"], machine_id)
    assert len({one, identity(facts, ["GPU-3"], machine_id), identity(facts, ["GPU-1", "GPU-2"], tmp_path / "no")}) == 3
    assert "0123456789abcdef" not in one


def test_stack_names_each_package_once():
    facts = stack({"torch": "2.13.0", "numpy": "2"}, {"NVIDIA driver": "580.1"})
    assert facts["framework"].value == "torch 2.13.0, numpy 2"
    assert "numpy" not in facts["other_software_stack"].value
    assert "NVIDIA driver 580.1" in facts["other_software_stack"].value


def test_operating_system():
    assert ", kernel " in read_operating_system()["operating_system"].value


# --- accelerators -----------------------------------------------------------------------------------------------


def values(found):
    return {key.removeprefix("accelerator_"): fact.value for key, fact in found.facts.items()}


def test_eight_accelerators_with_nvlink(driver, tmp_path):
    boards = [Board(f"GPU-{i}", **H200, links=18, version=pynvml.NVML_NVLINK_VERSION_4_0) for i in range(8)]
    found = accelerators.read_accelerators(tmp_path, driver(boards))
    assert found.count == 8
    assert found.uuids[0] == "GPU-0"
    assert found.software == (("NVIDIA driver", "580.67"), ("CUDA driver API", "13.1"))
    assert values(found) == {
        "accelerators_per_node": 8,
        "model_name": "NVIDIA H200",
        "memory_capacity": "140.4 GiB",
        "frequency": "1980 MHz (maximum)",
        "host_interconnect": "PCIe Gen5 x16",
        "interconnect": "NVLink 4.0, 18 links",
        "interconnect_topology": None,
        "memory_configuration": None,
        "on-chip_memories": None,
    }


def test_one_accelerator_has_no_interconnect(driver, tmp_path):
    found = accelerators.read_accelerators(tmp_path, driver([Board("GPU-0", **H200)]))
    assert values(found)["interconnect"] == "none (one accelerator)"
    assert "one device" in found.facts["accelerator_interconnect"].source


def test_two_without_nvlink_speak_over_pcie(driver, tmp_path):
    found = accelerators.read_accelerators(tmp_path, driver([Board("GPU-0", **H200), Board("GPU-1", **H200)]))
    assert values(found)["interconnect"] == "PCIe"


def test_a_board_joined_to_its_host_by_c2c(driver, tmp_path):
    c2c = {"nvmlDeviceGetC2cModeInfoV": types.SimpleNamespace(isC2cEnabled=1)}
    found = accelerators.read_accelerators(tmp_path, driver([Board("GPU-0", **H200, **c2c)]))
    assert values(found)["host_interconnect"] == "NVLink-C2C"


def test_what_a_board_does_not_tell_is_none(driver, tmp_path):
    found = accelerators.read_accelerators(tmp_path, driver([Board("GPU-0", nvmlDeviceGetName="NVIDIA X")]))
    assert values(found)["model_name"] == "NVIDIA X"
    assert values(found)["memory_capacity"] is None
    assert values(found)["host_interconnect"] is None


def test_mig_mode_is_said(driver, tmp_path):
    split = {**H200, "nvmlDeviceGetMigMode": [1, 1]}
    found = accelerators.read_accelerators(tmp_path, driver([Board("GPU-0", **split)]))
    assert values(found)["model_name"] == "NVIDIA H200 (MIG mode)"


@pytest.mark.parametrize(
    "error", [pynvml.NVML_ERROR_LIBRARY_NOT_FOUND, pynvml.NVML_ERROR_DRIVER_NOT_LOADED, None], ids=str
)
def test_a_machine_without_accelerators(driver, tmp_path, error):
    found = accelerators.read_accelerators(tmp_path, driver([], error))
    assert found.count == 0
    expected = {key.removeprefix("accelerator_"): "N/A" for key in accelerators.KEYS} | {"accelerators_per_node": "0"}
    assert values(found) == expected
    assert "there is no" in found.facts["accelerator_model_name"].source


@pytest.mark.parametrize("error", [pynvml.NVML_ERROR_LIBRARY_NOT_FOUND, pynvml.NVML_ERROR_UNKNOWN, None], ids=str)
def test_device_files_without_a_driver_are_not_no_accelerators(driver, tmp_path, error):
    for name in ("nvidia0", "nvidia1", "nvidiactl", "nvidia-uvm"):
        (tmp_path / name).touch()
    found = accelerators.read_accelerators(tmp_path, driver([], error))
    assert found.count == 2
    assert values(found)["accelerators_per_node"] == 2
    assert values(found)["model_name"] is None
    assert "N/A" not in values(found).values()


def test_a_driver_that_fails_is_not_no_accelerators(driver, tmp_path):
    found = accelerators.read_accelerators(tmp_path, driver([], pynvml.NVML_ERROR_UNKNOWN))
    assert set(values(found).values()) == {None}


def test_without_the_module_nobody_knows(tmp_path):
    found = accelerators.read_accelerators(tmp_path, "no_such_module_of_nvml")
    assert set(values(found).values()) == {None}
