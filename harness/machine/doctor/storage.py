"""Room for what is written: shared memory, the folder of results, the folder of data sets."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final

import psutil

from harness.machine.doctor.check import Check, Question, check
from harness.machine.doctor.host import Host
from harness.machine.doctor.needs import Need, Needs
from harness.machine.facts import Unreadable, sized

_SHM: Final = "dev/shm"
_SHM_OF_A_GPU: Final = 1 << 30
_SHM_OF_A_CONTAINER: Final = 64 << 20
"""What docker gives where nobody says another size."""
_LEAST: Final = 1 << 30
_ENOUGH: Final = 10 << 30
_FAR_AWAY: Final = frozenset({"nfs", "nfs4", "cifs", "smb3", "lustre", "gpfs", "ceph", "beegfs", "9p", "fuse.sshfs"})
_WHOLE: Final = 0.97
"""Some sizes are computed, and what was published may have a tensor more or less."""
_PART: Final = re.compile(r".*-(?P<number>\d+)-of-(?P<last>\d+)\.safetensors")
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


@check(
    "storage",
    "checkpoint",
    expected="the weights where the configuration says, all their parts, as many bytes as were published",
    why="a server that finds none, or a part of them, is waited for until it gives up",
    authority="systems/<system>/<benchmark>.yaml: engine.checkpoint; harness/rules/models",
    mend="hf download <name> --local-dir <path>, or correct engine.checkpoint.path",
)
def checkpoint(ask: Question, host: Host, needs: Needs) -> Check | None:
    """The folders of weights by the sizes of their files; none of them is read."""
    wanted = dict.fromkeys((need.checkpoint, need.tensor_bytes, _boxed(need)) for need in needs.every)
    found = [_weights(path, size, boxed) for path, size, boxed in wanted if path is not None]
    if not found:
        return None
    read, source = "; ".join(text for text, _ in found), "sizes of *.safetensors"
    if any(whole is False for _, whole in found):
        return ask.missing(read, source)
    if any(whole is None for _, whole in found):
        return ask.unknown(read, mend="look whether the container mounts that folder: ls in it")
    return ask.ok(read, source)


def _weights(path: Path, size: int | None, boxed: bool) -> tuple[str, bool | None]:
    """What is known of a checkpoint, and whether it is whole; None where it lies in a container's own view."""
    if not path.is_dir():
        return (f"{path} is seen inside a container alone", None) if boxed else (f"{path} is not there", False)
    files = sorted(path.glob("*.safetensors"))
    if not files:
        return f"{path} has no *.safetensors", False
    there, lacking = sum(file.stat().st_size for file in files), _lacking_parts([file.name for file in files])
    if lacking:
        return f"{path} lacks {', '.join(lacking[:3])}" + (f" and {len(lacking) - 3} more" * (len(lacking) > 3)), False
    if size is None:
        return f"{path}, {sized(there)}", True
    return f"{path}, {sized(there)} of {sized(size)}", there >= _WHOLE * size


def _lacking_parts(names: list[str]) -> list[str]:
    """The parts that are not there of what is named model-00001-of-00015.safetensors."""
    parts = [found for name in names if (found := _PART.fullmatch(name)) is not None]
    last = max((int(part["last"]) for part in parts), default=0)
    there = {int(part["number"]) for part in parts}
    first = 0 if 0 in there else 1
    return [f"part {number} of {last}" for number in range(first, last + first) if number not in there]


def _boxed(need: Need) -> bool:
    return need.server is not None and bool(need.server.prefix)


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


CHECKS = (shared_memory, disk_results, disk_data, checkpoint)
