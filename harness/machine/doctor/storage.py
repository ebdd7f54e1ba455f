"""Room for what is written: shared memory, the folder of results, the folder of data sets."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import psutil

from harness.machine.doctor.check import Check, Question, check
from harness.machine.doctor.host import Host
from harness.machine.doctor.needs import Needs
from harness.machine.facts import Unreadable, sized

_SHM: Final = "dev/shm"
_SHM_OF_A_GPU: Final = 1 << 30
_SHM_OF_A_CONTAINER: Final = 64 << 20
"""What docker gives where nobody says another size."""
_LEAST: Final = 1 << 30
_ENOUGH: Final = 10 << 30
_FAR_AWAY: Final = frozenset({"nfs", "nfs4", "cifs", "smb3", "lustre", "gpfs", "ceph", "beegfs", "9p", "fuse.sshfs"})
_CONTAINERS: Final = frozenset({"docker", "podman", "nerdctl"})


@check(
    "storage",
    "shared-memory",
    expected="1 GiB of /dev/shm for each accelerator of a replica",
    why="the processes of one replica hand each other data there; with a container's 64 MiB they hang",
    authority="docker run reference: --shm-size (64m); NCCL user guide, troubleshooting: shared memory",
    mend="docker run --ipc=host, or --shm-size=16g; elsewhere: sudo mount -o remount,size=16g /dev/shm",
)
def shared_memory(ask: Question, host: Host, needs: Needs) -> Check:
    """The size and what is free of /dev/shm, here and in containers that servers are started in."""
    boxed = _boxed_in(needs)
    if boxed is not None:
        return ask.fail(f"{boxed}: 64 MiB, the default of a container", "engine.launch.prefix")
    folder = host.root / _SHM
    if not folder.is_dir():
        return ask.unknown(f"there is no /{_SHM}")
    room = psutil.disk_usage(str(folder))
    told = f"{sized(room.free)} of {sized(room.total)} free", f"psutil: disk_usage of /{_SHM}"
    needed = max(needs.gpus, 1) * _SHM_OF_A_GPU
    if room.total <= _SHM_OF_A_CONTAINER or room.free < needed:
        return (ask.fail if needs.gpus_each > 1 else ask.warn)(*told, expected=f"{sized(needed)} free")
    return ask.ok(*told, expected=f"{sized(needed)} free")


@check(
    "storage",
    "disk-results",
    expected=f"at least {sized(_ENOUGH)} free for results, on a local disk that may be written to",
    why="a leg is refused where its logs might not fit; over a network they are written while it measures",
    authority="harness: the logs of an accuracy leg are some 8 bytes a token",
    mend="free space, or give --results_dir on another disk: df -h",
)
def disk_results(ask: Question, host: Host, needs: Needs) -> Check:
    """Room where runs are kept."""
    return _folder(ask, host.results, written=True)


@check(
    "storage",
    "disk-data",
    expected=f"at least {sized(_ENOUGH)} free for data sets and what is made of them",
    why="requests are made once and kept beside the data set: some gigabytes for pictures and trajectories",
    authority="harness: docs/datasets.md",
    mend="free space, or give --data_dir (HARNESS_DATA_DIR) on another disk: df -h",
)
def disk_data(ask: Question, host: Host, needs: Needs) -> Check:
    """Room where data sets lie."""
    return _folder(ask, host.data, written=False)


def _folder(ask: Question, folder: Path, *, written: bool) -> Check:
    """``written``: while a leg is measured, so that a disk that is far away is told of."""
    place = _nearest(folder)
    if not os.access(place, os.W_OK):
        return ask.missing(
            f"{place} may not be written to", "access(2)", mend="give a folder of your own, or its rights"
        )
    free, kind = psutil.disk_usage(str(place)).free, _file_system(place)
    told = f"{sized(free)} free on {kind or 'an unknown file system'}", f"psutil: disk_usage of {place}"
    if free < _LEAST:
        return ask.missing(*told)
    return ask.warn(*told) if free < _ENOUGH or (written and kind in _FAR_AWAY | {"tmpfs"}) else ask.ok(*told)


def _nearest(folder: Path) -> Path:
    """The folder, or the nearest above it that is there."""
    place = folder.absolute()
    while not place.exists() and place != place.parent:
        place = place.parent
    if not place.is_dir():
        raise Unreadable(f"{place} is no folder")
    return place


def _file_system(place: Path) -> str | None:
    """The kind of file system that a folder lies on: that of the longest mount point above it."""
    real = place.resolve()
    mounts = [part for part in psutil.disk_partitions(all=True) if real.is_relative_to(part.mountpoint)]
    return max(mounts, key=lambda part: len(part.mountpoint)).fstype if mounts else None


def _boxed_in(needs: Needs) -> str | None:
    """A container's words that leave replicas of several accelerators with the default of shared memory."""
    for need in needs.every:
        words = need.server.prefix if need.server is not None else ()
        container = next((word for word in words if Path(word).name in _CONTAINERS), None)
        given = any(word.startswith(("--ipc", "--shm-size")) for word in words)
        if need.gpus_each > 1 and container is not None and not given:
            return f"{need.name}: {container} without --ipc=host or --shm-size"
    return None


CHECKS = (shared_memory, disk_results, disk_data)
