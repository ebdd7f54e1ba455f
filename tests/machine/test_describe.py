from __future__ import annotations

import pytest

from harness.config.models import SystemFile
from harness.ledger.record import Machine
from harness.machine.accelerators import KEYS
from harness.machine.describe import Filing, describe
from harness.rules import load

PACK = load("v6.1")
FILING = Filing("open", "Example", "rdi", "datacenter")
SAID = {
    "system_name": "Example system",
    "number_of_nodes": 1,
    "cooling": "air",
    "host_networking_topology": "N/A, one machine",
    "host_memory_configuration": "16x 64 GB DDR5",
}
FACTS = {
    "host_processor_model_name": "AMD EPYC",
    "host_processors_per_node": 1,
    "host_processor_core_count": 2,
    "host_processor_frequency": None,
    "host_processor_caches": "L3 32 MiB",
    "host_processor_interconnect": None,
    "host_memory_capacity": "23.5 GiB",
    "host_memory_configuration": None,
    "host_storage_capacity": "256 GiB",
    "host_storage_type": "virtual disk",
    "host_networking": "Ethernet",
    "host_network_card_count": "1x Ethernet",
    "operating_system": "Debian 12",
    "framework": "torch 2.13.0",
    "other_software_stack": "Python 3.11",
    **dict.fromkeys(KEYS, "N/A"),
    "accelerators_per_node": "0",
}


def machine(accelerators=0, **changed):
    facts = {**FACTS, **changed}
    return Machine(
        identity="0" * 64,
        facts=facts,
        sources={key: "lscpu" if value is not None else "lscpu is not installed" for key, value in facts.items()},
        accelerators=accelerators,
        captured_at="2026-01-01T00:00:00+00:00",
    )


def system(**changed):
    return SystemFile.model_validate({**SAID, **changed})


def test_complete():
    description = describe("box", machine(), system(), FILING, PACK)
    assert description.lacks == ()
    assert list(description.fields) == PACK.system_fields.required.value
    filled = description.filled("unknown")
    assert filled["accelerators_per_node"] == "0"
    assert filled["host_processors_per_node"] == 1
    assert filled["host_processor_frequency"] == ""
    assert filled["host_networking_topology"] == "N/A, one machine"
    assert filled["status"] == "rdi"


def test_what_a_person_says_wins_and_is_named_as_origin():
    description = describe("box", machine(), system(host_networking="2x 100GbE"), FILING, PACK)
    assert description.fields["host_networking"] == "2x 100GbE"
    assert description.origins["host_networking"] == "systems/box/system.yaml"
    assert description.origins["host_storage_type"] == "lscpu"
    assert "host_networking" in description.said
    assert "host_storage_type" not in description.said


def test_a_value_with_a_source_names_it():
    said = system(accelerator_model_name="NVIDIA B200", sources={"accelerator_model_name": "a datasheet"})
    description = describe("box", machine(), said, FILING, PACK)
    assert description.origins["accelerator_model_name"] == "systems/box/system.yaml: a datasheet"


def test_the_machine_of_the_client_is_not_the_one_that_is_said_to_have_accelerators():
    """Servers may stand elsewhere: what a client without accelerators calls N/A is then no answer."""
    description = describe("box", machine(0), system(accelerators_per_node=8), FILING, PACK)
    may_be_empty = set(PACK.system_fields.may_be_empty.value)
    assert {lack.field for lack in description.lacks} == set(KEYS) - {"accelerators_per_node"} - may_be_empty
    assert all("without accelerators, which is not the one that is said" in lack.why for lack in description.lacks)
    assert description.filled("unknown")["accelerator_on-chip_memories"] == ""


def test_a_system_that_is_not_entered_says_where_to_enter_it():
    lacks = describe("box", machine(), system(), Filing(None, "Example", None, None), PACK).lacks
    assert [lack.field for lack in lacks] == ["division", "status", "system_type"]
    assert "add an entry of box to submission.yaml" in lacks[0].mend


@pytest.mark.parametrize(
    ("changed", "field", "mend"),
    [
        ({"number_of_nodes": None}, "number_of_nodes", "edit systems/box/system.yaml: number_of_nodes"),
        ({"cooling": None}, "cooling", "edit systems/box/system.yaml: cooling"),
        ({"system_name": ""}, "system_name", "edit systems/box/system.yaml: system_name"),
        ({"cooling": "N/A"}, "cooling", "edit systems/box/system.yaml: cooling"),
        ({"hw_notes": 'a "fast" one'}, "hw_notes", "edit systems/box/system.yaml: hw_notes"),
        ({"host_memory_configuration": None}, "host_memory_configuration", "edit systems/box/system.yaml"),
    ],
)
def test_what_a_person_must_mend(changed, field, mend):
    (lack,) = describe("box", machine(), system(**changed), FILING, PACK).lacks
    assert lack.field == field
    assert mend in lack.mend
    assert lack.number == (field == "number_of_nodes")


def test_what_the_machine_did_not_tell_names_the_reason_and_the_command():
    (lack,) = describe("box", machine(operating_system=None), system(), FILING, PACK).lacks
    assert lack.field == "operating_system"
    assert "lscpu is not installed" in lack.why
    assert "edit systems/box/system.yaml: operating_system" in lack.mend
    assert "make system SYSTEM=box" in lack.mend


def test_before_any_leg_has_run():
    lacks = {lack.field: lack for lack in describe("box", None, system(), FILING, PACK).lacks}
    assert "run a leg on the machine" in lacks["host_processor_model_name"].mend
    assert "cooling" not in lacks
    assert lacks["accelerators_per_node"].number


def test_submitter():
    filing = Filing("open", None, "rdi", "datacenter")
    (lack,) = describe("box", machine(), system(), filing, PACK).lacks
    assert lack.mend == "edit submission.yaml: submitter"


def test_not_applicable_needs_a_machine_without_accelerators():
    accelerated = machine(8, accelerators_per_node=8, accelerator_model_name="NVIDIA H200")
    lacks = {lack.field for lack in describe("box", accelerated, system(), FILING, PACK).lacks}
    assert "accelerator_memory_capacity" in lacks
    assert "accelerator_model_name" not in lacks
    assert describe("box", machine(), system(), FILING, PACK).lacks == ()


def test_numbers_must_parse():
    (lack,) = describe("box", machine(host_processors_per_node="two"), system(), FILING, PACK).lacks
    assert lack.number


def test_unknown_fields_are_filled_with_a_word():
    filled = describe("box", machine(), system(cooling=None), FILING, PACK).filled("unknown (demonstration)")
    assert filled["cooling"] == "unknown (demonstration)"
