"""A capture of mlperf-sysinfo beside what is said and what is read here."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.config.models import SystemFile
from harness.config.system_form import EXPECTED, Form
from harness.errors import ConfigError
from harness.machine.describe import describe
from harness.machine.sysinfo import read_capture
from harness.machine.to_fill import Compared, compared, form_of
from tests.machine.recorded import MLPERF_SYSINFO
from tests.machine.test_describe import FILING, PACK, machine, system

CAPTURED: dict[str, Any] = json.loads(MLPERF_SYSINFO)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "system_desc.json"


def capture_with(path: Path, **changed: object) -> Path:
    path.write_text(json.dumps({**CAPTURED, **changed}))
    return path


def test_values_are_taken_as_they_are_and_empty_ones_are_none(path: Path) -> None:
    capture = read_capture(capture_with(path))
    assert capture.values["host_memory_capacity"] == "25G"
    assert capture.values["host_storage_capacity"] == "252 GB HDD"
    assert "framework" not in capture.values
    assert set(capture.values) <= set(EXPECTED)
    assert capture.elsewhere["host_processor_vcpu_count"] == "2"
    assert {"division", "submitter", "status", "system_type"} <= set(capture.elsewhere)
    assert capture.source == "mlperf-sysinfo 1.0.0a12, captured 2026-11-30T15:01:19+00:00"
    assert capture.incomplete is None


@pytest.mark.parametrize("said", ["8", 8, " 8 "])
def test_numbers_come_as_numbers_or_text(path: Path, said: object) -> None:
    capture = read_capture(capture_with(path, accelerators_per_node=said, host_network_card_count=9))
    assert capture.values["accelerators_per_node"] == 8
    assert capture.values["host_network_card_count"] == "9"


def test_no_accelerators_are_for_a_leg_to_read(path: Path) -> None:
    capture = read_capture(capture_with(path, accelerators_per_node="0"))
    assert "accelerators_per_node" not in capture.values
    assert capture.elsewhere["accelerators_per_node"] == 0


def test_a_capture_that_is_not_whole_says_so(path: Path) -> None:
    tool = {**CAPTURED["mlperf_sysinfo"], "complete": False, "nodes_expected": 4, "nodes_collected": 3}
    assert read_capture(capture_with(path, mlperf_sysinfo=tool)).incomplete == "3 of 4 nodes were collected"


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"mlperf_sysinfo": None}, "not a capture"),
        ({"mlperf_sysinfo": {}}, "not a capture"),
        ({"number_of_nodes": "two"}, "'number_of_nodes' is no whole number: two"),
        ({"host_processor_core_count": -2}, "no whole number: -2"),
        ({"accelerators_per_node": 1.5}, "no whole number: 1.5"),
        ({"other_software_stack": {"cuda": "13.0"}}, "'other_software_stack' is no text and no number but a dict"),
        ({"cooling": True}, "but a bool"),
    ],
)
def test_a_capture_that_is_none(path: Path, changed: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_capture(capture_with(path, **changed))
    assert said in caught.value.what
    assert caught.value.where == str(path)


@pytest.mark.parametrize("content", [b"", b"[1]", b"{", b"\xff", b"[" * 100_000, b"nul"])
def test_a_file_that_is_no_capture(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    with pytest.raises(ConfigError):
        read_capture(path)


def test_a_file_that_is_not_there(path: Path) -> None:
    with pytest.raises(ConfigError, match="no such file"):
        read_capture(path)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5), inner, max_size=2),
    max_leaves=5,
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.dictionaries(st.sampled_from([*EXPECTED, "mlperf_sysinfo", "x"]), JSON, max_size=5))
def test_any_capture_is_values_a_file_takes_or_a_configuration_error(path: Path, changed: dict[str, Any]) -> None:
    try:
        capture = read_capture(capture_with(path, **changed))
    except ConfigError:
        return
    assert SystemFile.model_validate({**system().model_dump(), **capture.values})


def test_each_value_stands_beside_what_is_said_and_read(path: Path) -> None:
    capture = read_capture(capture_with(path, cooling="liquid"))
    lines = {line.field: line for line in compared(system(), machine(), capture)}
    assert lines["cooling"] == Compared("cooling", "liquid", "air", None)
    assert lines["cooling"].word == "differs from what is said"
    assert lines["number_of_nodes"].word == "as said"
    assert lines["host_processor_model_name"].word == "as read"
    assert lines["host_memory_capacity"] == Compared("host_memory_capacity", "25G", None, "23.5 GiB")
    assert lines["host_memory_capacity"].word == "differs from what is read"
    assert lines["host_processor_interconnect"].word == "new"
    assert [line.field for line in lines.values() if line.is_taken] == [
        "host_processor_caches",
        "host_processor_interconnect",
        "host_memory_capacity",
        "host_storage_type",
        "host_storage_capacity",
        "operating_system",
    ]


def filled_in(file: SystemFile, path: Path) -> Form:
    capture = read_capture(path)
    description = describe("box", machine(host_memory_capacity=None, framework=None), file, FILING, PACK)
    return form_of(file, description, compared(file, machine(), capture), capture.source)


def test_what_is_said_is_not_written_and_what_lacks_is_asked_for(path: Path) -> None:
    form = filled_in(system(cooling=None, system_name=None, host_networking_topology=None), capture_with(path))
    assert form.values["cooling"] == "air"
    assert form.sources["cooling"].startswith("mlperf-sysinfo 1.0.0a12")
    assert "host_memory_configuration" not in form.values
    assert form.wanted == ["host_networking_topology", "bandwidth"]
    assert list(form.values) == [key for key in EXPECTED if key in form.values]


def test_without_a_capture_only_what_lacks_is_asked_for() -> None:
    description = describe("box", machine(host_memory_capacity=None, framework=None), system(), FILING, PACK)
    form = form_of(system(), description, [], "")
    assert form == Form({}, {}, ["host_memory_capacity", "bandwidth"])
