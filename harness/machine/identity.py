"""Whether two legs ran on one machine: a salted hash that tells nothing of it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

from harness.machine.facts import Facts

MACHINE_ID = Path("/etc/machine-id")

_SALT = "mlperf-inference-harness machine identity 1"
_LASTING = ("host_processor_model_name", "host_processors_per_node", "host_processor_core_count")
"""What no reboot changes. Memory and clocks vary with the kernel's reservations, disks and links with their mounts."""


def identity(facts: Facts, accelerator_uuids: Sequence[str], machine_id: Path = MACHINE_ID) -> str:
    """The sha256, in hex, of a fixed salt, the machine id, the processor and the accelerators' UUIDs.

    Container images may carry one machine id to many machines, or none: hardware is part of it always.
    """
    try:
        given = machine_id.read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        given = ""
    lasting = [str(facts[key].value) for key in _LASTING if key in facts]
    text = json.dumps([_SALT, given, lasting, sorted(accelerator_uuids)])
    return hashlib.sha256(text.encode()).hexdigest()
