"""The host processor, as ``lscpu -J`` tells it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.machine.facts import Facts, Unreadable, command, told

KEYS = (
    "host_processor_model_name",
    "host_processors_per_node",
    "host_processor_core_count",
    "host_processor_frequency",
    "host_processor_caches",
)
LSCPU = ("lscpu", "-J")
TOPOLOGY = Path("/sys/devices/system/cpu")

_UNSAID = ("not specified", "not set", "unknown", "none", "to be filled")


@dataclass(frozen=True, slots=True)
class Processor:
    """What lscpu said; None where it said nothing. ``cores`` are those of one socket, without threads."""

    model: str | None
    sockets: int | None
    cores: int | None
    max_mhz: float | None
    caches: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Topology:
    """Sockets, and cores of one socket, as the kernel numbers them."""

    sockets: int
    cores: int


def read_processor() -> Facts:
    """The facts of :data:`KEYS` on this machine. Raises Unreadable where lscpu gives nothing."""
    processor = parse_lscpu(command(*LSCPU))
    topology = read_topology(TOPOLOGY) if processor.sockets is None or processor.cores is None else None
    return facts_of(processor, topology)


def facts_of(processor: Processor, topology: Topology | None) -> Facts:
    """Facts under the official keys; ``topology`` stands in for the counts that lscpu left out."""
    source = " ".join(LSCPU)
    sockets, cores, counted_by = processor.sockets, processor.cores, source
    if topology is not None:
        sockets, cores, counted_by = topology.sockets, topology.cores, f"{TOPOLOGY}/cpu*/topology"
    frequency = None if processor.max_mhz is None else f"{processor.max_mhz:.0f} MHz (maximum)"
    caches = ", ".join(f"{name} {size}" for name, size in processor.caches) or None
    return {
        "host_processor_model_name": told(processor.model, f"{source}: Model name"),
        "host_processors_per_node": told(sockets, f"{counted_by}: sockets"),
        "host_processor_core_count": told(cores, f"{counted_by}: cores per socket"),
        "host_processor_frequency": told(frequency, f"{source}: CPU max MHz"),
        "host_processor_caches": told(caches, f"{source}: caches of the machine"),
    }


def parse_lscpu(text: str) -> Processor:
    """Reads lscpu's JSON, flat or nested, of any architecture. Raises Unreadable where it is not JSON."""
    try:
        data = json.loads(text)
    except json.JSONDecodeError as error:
        raise Unreadable(f"lscpu -J printed no JSON: {error}") from None
    fields: dict[str, str] = {}
    for name, value in _fields(data.get("lscpu", []) if isinstance(data, dict) else []):
        fields.setdefault(name, value)
    caches = tuple((n.removesuffix(" cache"), v) for n, v in fields.items() if re.fullmatch(r"L\d[di]?( cache)?", n))
    mhz = fields.get("CPU max MHz", "")
    return Processor(
        model=_model(fields),
        sockets=_whole(fields.get("Socket(s)")),
        cores=_whole(fields.get("Core(s) per socket")),
        max_mhz=float(mhz) if re.fullmatch(r"\d+(\.\d+)?", mhz) else None,
        caches=caches,
    )


def read_topology(root: Path) -> Topology | None:
    """Counts sockets and cores from sysfs; None where the kernel does not number them."""
    cores: set[tuple[int, int]] = set()
    for folder in root.glob("cpu[0-9]*/topology"):
        try:
            package = int((folder / "physical_package_id").read_text())
            core = int((folder / "core_id").read_text())
        except (OSError, ValueError):
            return None
        if package < 0:
            return None
        cores.add((package, core))
    sockets = len({package for package, _ in cores})
    return Topology(sockets, len(cores) // sockets) if sockets and len(cores) % sockets == 0 else None


def _fields(nodes: Any) -> Iterator[tuple[str, str]]:  # noqa: ANN401 - it is JSON
    for node in nodes:
        if isinstance(node.get("data"), str):
            yield str(node["field"]).rstrip(":"), node["data"].strip()
        yield from _fields(node.get("children", []))


def _model(fields: dict[str, str]) -> str | None:
    """The model. On ARM lscpu names the core's design there; the product stands in the firmware's name, if any."""
    model = fields.get("Model name", "-")
    firmware = fields.get("BIOS Model name", "")
    named = None if model in ("", "-") else model
    if fields.get("Architecture") != "aarch64" or not firmware:
        return named
    for unsaid in _UNSAID:
        firmware = re.sub(rf"\s*{unsaid}.*", "", firmware, flags=re.IGNORECASE)
    if not firmware:
        return named
    return f"{firmware} ({named})" if named else firmware


def _whole(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdigit() and int(text) > 0 else None
