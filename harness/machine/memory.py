"""The host's memory: capacity from the kernel, modules from the firmware where one may ask it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import psutil

from harness.machine.facts import Fact, Facts, Unreadable, command, counted, gib

CAPACITY_KEYS = ("host_memory_capacity",)
MODULE_KEYS = ("host_memory_configuration",)
DMI = Path("/sys/firmware/dmi/tables/DMI")


def read_capacity() -> Facts:
    """The memory that the kernel has."""
    return {"host_memory_capacity": Fact(gib(psutil.virtual_memory().total), "psutil: memory the kernel manages")}


def read_modules() -> Facts:
    """The memory modules, from dmidecode. Raises Unreadable without DMI tables or without root."""
    return {"host_memory_configuration": Fact(parse_dmidecode(dmidecode()), "dmidecode")}


def dmidecode() -> str:
    """What the firmware says of memory. Raises Unreadable without DMI tables, without root, or without the program."""
    if not DMI.exists():
        raise Unreadable("the machine has no DMI tables")
    if os.geteuid() != 0:
        raise Unreadable("dmidecode needs root")
    return command("dmidecode", "-t", "memory")


def parse_dmidecode(text: str) -> str:
    """Module count, size, kind, speed and error correction, e.g. ``16x 64 GB DDR5 4800 MT/s, Multi-bit ECC``.

    Takes what ``dmidecode -t memory`` prints. Raises Unreadable where it lists no module.
    """
    modules = []
    corrections: list[str] = []
    for block, fields in _blocks(text):
        if "Physical Memory Array" in block and (kind := _said(fields.get("Error Correction Type"))):
            corrections += [] if kind in corrections else [kind]
        if "Memory Device\n" in block and re.match(r"\d", fields.get("Size", "")):
            speed = _said(fields.get("Configured Memory Speed")) or _said(fields.get("Speed"))
            modules.append(" ".join(part for part in (fields["Size"], _said(fields.get("Type")), speed) if part))
    if not modules:
        raise Unreadable("dmidecode lists no memory module")
    return ", ".join([counted(modules), *corrections])


def corrections(text: str) -> list[str]:
    """The Error Correction Type of each array of system memory, as ``dmidecode -t memory`` prints it."""
    return [
        fields.get("Error Correction Type", "Unknown")
        for block, fields in _blocks(text)
        if "Physical Memory Array" in block and fields.get("Use", "System Memory") == "System Memory"
    ]


def _blocks(text: str) -> Iterator[tuple[str, dict[str, str]]]:
    for block in re.split(r"\n\s*\n", text):
        yield block, dict(re.findall(r"^\t([^:\n]+):[ \t]*(.*\S)[ \t]*$", block, re.MULTILINE))


def _said(text: str | None) -> str | None:
    return None if text is None or text.lower() in ("unknown", "none", "other", "not specified") else text
