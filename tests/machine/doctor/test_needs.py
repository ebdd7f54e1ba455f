from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from harness.config import Project
from harness.errors import ConfigError, UnknownName
from harness.machine.doctor.needs import Needs, Server, needs_of
from harness.rules import load
from tests.harness_process import ROOT

PACK = load("v6.1")
HERE = Project(ROOT)
VLLM = {
    "kind": "http", "server": "vllm", "version": "0.32",
    "checkpoint": {"name": "openai/gpt-oss-120b", "path": "/models/x", "weight_data_type": "mxfp4"},
    "replicas": 2, "options": {"tensor_parallel_size": 4},
    "clients": {"processes": 4, "connections": 1000},
}  # fmt: skip


def project(root: Path, engine: dict[str, object], entry: dict[str, str] | None = None, **system: object) -> Project:
    folder = root / "systems" / "BOX"
    folder.mkdir(parents=True)
    said = {"system_name": "Box", "number_of_nodes": 1, "cooling": "air", "host_networking_topology": "N/A", **system}
    (folder / "system.yaml").write_text(yaml.safe_dump(said))
    file = {"engine": engine, "scenarios": {"Offline": {"target_qps": 5}}, "watchdog_s": 600}
    (folder / "gpt-oss-120b.yaml").write_text(yaml.safe_dump(file))
    if entry is not None:
        fields = {
            "availability": "rdi",
            "system": "BOX",
            "benchmark": "gpt-oss-120b",
            "scenarios": ["Offline"],
            **entry,
        }
        (root / "submission.yaml").write_text(yaml.safe_dump({"round": "v6.1", "submitter": None, "entries": [fields]}))
    return Project(root)


def test_eight_servers_of_one_gpu() -> None:
    found = needs_of(HERE, ["H200-SXM-141GBx8_TRT"], ["gpt-oss-120b"], PACK)
    assert (found.gpus, found.gpus_each, found.connections) == (8, 1, 1536)
    assert found.ports == tuple(range(30000, 30008))
    assert found.descriptors == 1536 * 8 // 2 + 64  # two client processes, four servers each
    assert found.servers == (Server("trtllm-serve", "1.2"),)
    assert found.extras == ("gpt-oss",)
    assert found.named == "H200-SXM-141GBx8_TRT (gpt-oss-120b)"
    assert not found.corrected
    need = found.every[0]
    assert (str(need.checkpoint), need.tensor_bytes) == ("/models/gpt-oss-120b", 65_248_815_744)


def test_the_cpu_system_needs_no_accelerator() -> None:
    found = needs_of(HERE, ["CPU-torch"], [], PACK)
    assert (found.gpus, found.gpus_each, found.ports, found.servers) == (0, 0, (), ())
    assert set(found.extras) == {"torch", "gpt-oss", "qwen3-vl"}
    assert {need.checkpoint for need in found.every} == {None}  # they are made
    assert found.benchmarks == tuple(HERE.benchmark_names("CPU-torch"))


def test_servers_of_ours_listen_on_ports() -> None:
    found = needs_of(HERE, ["CPU-http"], ["gpt-oss-120b"], PACK)
    assert (found.gpus, found.ports, found.servers) == (0, (30000, 30001), ())
    assert "torch" in found.extras


def test_every_system_of_the_project_can_be_asked_about() -> None:
    for system in HERE.system_names():
        assert needs_of(HERE, [system], [], PACK).every


def test_replicas_of_several_gpus(tmp_path: Path) -> None:
    found = needs_of(project(tmp_path, VLLM, accelerator_memory_capacity="141 GB"), ["BOX"], [], PACK)
    assert (found.gpus, found.gpus_each, found.gpu_bytes) == (8, 4, 141 * 10**9)
    assert found.descriptors == 1000 * 2 // 4 + 64  # two processes share a server's connections
    assert found.wait_s == 600


def test_nodes_share_what_is_needed(tmp_path: Path) -> None:
    assert needs_of(project(tmp_path, VLLM, number_of_nodes=2), ["BOX"], [], PACK).gpus == 4


def test_servers_elsewhere_need_nothing_here(tmp_path: Path) -> None:
    engine = {**VLLM, "endpoints": ["http://node1:30000", "http://127.0.0.1:30001"]}
    found = needs_of(project(tmp_path, engine), ["BOX"], [], PACK)
    assert (found.gpus, found.gpus_each, found.ports, found.servers) == (0, 0, (), ())
    assert found.elsewhere == ("node1",)
    assert found.every[0].checkpoint is None
    assert found.connections == 1000


@pytest.mark.parametrize(
    ("division", "category", "corrected"),
    [("closed", "datacenter", True), ("open", "datacenter", False), ("closed", "edge", False)],
)
def test_where_error_correction_is_a_rule(tmp_path: Path, division: str, category: str, corrected: bool) -> None:
    made = project(tmp_path, VLLM, {"division": division, "category": category})
    assert needs_of(made, ["BOX"], [], PACK).corrected is corrected


def test_nothing_named_is_what_holds_for_any_run() -> None:
    found = needs_of(HERE, [], [], PACK)
    assert found == Needs((), PACK)
    assert (found.gpus, found.connections, found.descriptors) == (0, 1024, 1024 + 64)
    assert found.named.startswith("no configuration")


def test_names_that_are_not_known() -> None:
    with pytest.raises(UnknownName, match="unknown system 'H100'"):
        needs_of(HERE, ["H100"], [], PACK)
    with pytest.raises(UnknownName, match="unknown benchmark 'gpt-oss'"):
        needs_of(HERE, ["CPU-torch"], ["gpt-oss"], PACK)
    with pytest.raises(ConfigError, match="which system is this machine to be"):
        needs_of(HERE, [], ["gpt-oss-120b"], PACK)


def test_a_configuration_that_cannot_be_meant(tmp_path: Path) -> None:
    wrong = project(tmp_path, {**VLLM, "options": {"tensor_parallel_size": "four"}})
    with pytest.raises(ConfigError, match="'four'"):
        needs_of(wrong, ["BOX"], [], PACK)
