"""The host's disks, as ``lsblk`` tells them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import psutil

from harness.machine.facts import Fact, Facts, Unreadable, command, counted, gib

KEYS = ("host_storage_capacity", "host_storage_type")
LSBLK = ("lsblk", "-Jbdo", "NAME,TYPE,SIZE,TRAN,ROTA")


@dataclass(frozen=True, slots=True)
class Disk:
    """One disk: bytes, and what kind it is."""

    size_bytes: int
    kind: str


def read_storage() -> Facts:
    """Capacity and kinds of all disks; where lsblk cannot tell, the capacity of the mounted file systems."""
    try:
        return facts_of(parse_lsblk(command(*LSBLK)))
    except Unreadable as reason:
        total = sum(psutil.disk_usage(mount).total for mount in _mounts().values())
        if not total:
            raise
        capacity = f"{gib(total)} (file systems)"
        return {
            "host_storage_capacity": Fact(capacity, f"psutil: mounted file systems ({reason})"),
            "host_storage_type": Fact(None, str(reason)),
        }


def facts_of(disks: list[Disk]) -> Facts:
    """Facts under the official keys. Raises Unreadable where there is no disk."""
    if not disks:
        raise Unreadable("lsblk lists no disk")
    source = "lsblk"
    return {
        "host_storage_capacity": Fact(counted(f"{gib(disk.size_bytes)} {disk.kind}" for disk in disks), source),
        "host_storage_type": Fact(", ".join(dict.fromkeys(disk.kind for disk in disks)), source),
    }


def parse_lsblk(text: str) -> list[Disk]:
    """The disks in lsblk's JSON, old spelling (all strings) or new. Raises Unreadable where it is not JSON."""
    try:
        data = json.loads(text)
    except json.JSONDecodeError as error:
        raise Unreadable(f"lsblk -J printed no JSON: {error}") from None
    devices = data.get("blockdevices", []) if isinstance(data, dict) else []
    disks = [_disk(device) for device in devices if _is_disk(device)]
    return sorted((disk for disk in disks if disk.size_bytes > 0), key=lambda disk: (disk.kind, -disk.size_bytes))


def _is_disk(device: dict[str, Any]) -> bool:
    # Compressed memory and memory disks also call themselves disks.
    return device.get("type") == "disk" and not str(device.get("name")).startswith(("zram", "ram", "nbd", "fd"))


def _disk(device: dict[str, Any]) -> Disk:
    transport = str(device.get("tran") or "").lower()
    name = str(device["name"])
    spins = device.get("rota") in (True, "1", 1)
    if transport == "nvme" or name.startswith("nvme"):
        kind = "NVMe SSD"
    elif name.startswith(("vd", "xvd")) or transport == "virtio":
        kind = "virtual disk"
    else:
        kind = f"{transport.upper()} {'HDD' if spins else 'SSD'}".strip()
    return Disk(int(device.get("size") or 0), kind)


def _mounts() -> dict[str, str]:
    return {part.device: part.mountpoint for part in psutil.disk_partitions() if part.device.startswith("/dev/")}
