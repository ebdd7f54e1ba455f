"""Capture: the facts of this machine under the keys of the official system description, each with its source."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass

from harness.ledger.record import Ecc, Machine
from harness.machine import accelerators, memory, network, processor, software, storage
from harness.machine.error_correction import read_ecc
from harness.machine.facts import Fact, Facts, read
from harness.machine.identity import identity


@dataclass(frozen=True, slots=True)
class Captured:
    """What was read of a machine: what it is, and how it is set where a rule asks for that."""

    machine: Machine
    ecc: Ecc


def capture(framework: Mapping[str, str]) -> Machine:
    """What the machine is that this process runs on; see :func:`captured`."""
    return captured(framework).machine


def captured(framework: Mapping[str, str]) -> Captured:
    """Reads the machine that this process runs on; well under a second without accelerators.

    ``framework`` names what computes, with versions, as the engine says it. Nothing fails: what no source gave is
    None, and ``sources`` says why. Host and user names, serial numbers and addresses are not read.
    """
    devices = accelerators.read_accelerators()
    facts: Facts = {
        **read(processor.KEYS, processor.read_processor),
        **read(memory.CAPACITY_KEYS, memory.read_capacity),
        **read(memory.MODULE_KEYS, memory.read_modules),
        **read(storage.KEYS, storage.read_storage),
        **read(network.KEYS, network.read_network),
        **read(software.OS_KEYS, software.read_operating_system),
        **devices.facts,
        **software.stack(framework, dict(devices.software)),
        "host_processor_interconnect": _interconnect_is_for_people(),
    }
    machine = Machine(
        identity=identity(facts, devices.uuids),
        facts={key: fact.value for key, fact in facts.items()},
        sources={key: fact.source for key, fact in facts.items()},
        accelerators=devices.count,
        captured_at=datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
    )
    return Captured(machine, read_ecc(devices))


def _interconnect_is_for_people() -> Fact:
    return Fact(None, "no tool tells how sockets are joined")
