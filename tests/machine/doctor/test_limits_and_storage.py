from __future__ import annotations

import os
import types
from pathlib import Path

import psutil
import pytest

from harness.machine.doctor import limits, storage
from harness.machine.doctor.host import INFINITE, own_limits
from harness.machine.doctor.needs import Server
from tests.machine.doctor.made_host import FAIL, OK, UNKNOWN, WARN, asked, limited, made, needing, states

GIB = 1 << 30


@pytest.mark.parametrize(
    ("soft", "hard", "state", "missing"),
    [(4096, 4096, OK, False), (1024, 4096, FAIL, False), (1024, 1024, FAIL, True), (INFINITE, INFINITE, OK, False)],
)
def test_open_files(tmp_path: Path, soft: int, hard: int, state: str, missing: bool) -> None:
    host = made(tmp_path, limits=lambda which: (soft, hard))
    found = asked(limits.open_files, host, needing(descriptors=2000))
    assert states(found) == (state, missing)
    assert found.expected == "at least 2000"
    assert ("unlimited" in found.read) is (hard == INFINITE)


@pytest.mark.parametrize(("number", "state"), [(INFINITE, OK), (96_365, OK), (1024, WARN)])
def test_processes(tmp_path: Path, number: int, state: str) -> None:
    assert states(asked(limits.processes, made(tmp_path, limits=limited(RLIMIT_NPROC=number)))) == (state, False)


@pytest.mark.parametrize(
    ("locked", "cards", "each", "state"),
    [(8 << 20, [], 8, OK), (8 << 20, ["mlx5_0"], 1, OK), (8 << 20, ["mlx5_0"], 8, WARN), (INFINITE, ["mlx5_0"], 8, OK)],
)
def test_locked_memory(tmp_path: Path, locked: int, cards: list[str], each: int, state: str) -> None:
    files = {f"sys/class/infiniband/{card}/node_guid": "" for card in cards}
    host = made(tmp_path, files, limits=limited(RLIMIT_MEMLOCK=locked))
    found = asked(limits.locked_memory, host, needing(gpus_each=each))
    assert states(found) == (state, False)
    assert ("8 MiB" in found.read) is (locked != INFINITE)


def test_the_limits_of_this_process() -> None:
    import resource

    soft, hard = own_limits(resource.RLIMIT_NOFILE)
    assert 0 < soft <= hard


@pytest.fixture
def room(monkeypatch):
    """Says how much room there is everywhere, and on what."""

    def say(free: int, total: int | None = None, kind: str = "ext4") -> None:
        told = types.SimpleNamespace(free=free, total=total or free)
        monkeypatch.setattr(psutil, "disk_usage", lambda path: told)
        part = types.SimpleNamespace(mountpoint="/", fstype=kind)
        monkeypatch.setattr(psutil, "disk_partitions", lambda **which: [part])

    return say


@pytest.mark.parametrize(
    ("free", "total", "gpus", "each", "state"),
    [
        (64 << 20, 64 << 20, 8, 8, FAIL),
        (64 << 20, 64 << 20, 1, 1, WARN),
        (16 * GIB, 16 * GIB, 8, 8, OK),
        (2 * GIB, 16 * GIB, 8, 8, FAIL),
        (16 * GIB, 16 * GIB, 0, 0, OK),
    ],
)
def test_shared_memory(tmp_path, room, free, total, gpus, each, state):
    room(free, total)
    (tmp_path / "root" / "dev" / "shm").mkdir(parents=True)
    found = asked(storage.shared_memory, made(tmp_path), needing(gpus=gpus, gpus_each=each))
    assert states(found) == (state, False)


@pytest.mark.parametrize(
    ("prefix", "each", "state"),
    [
        (("docker", "run", "--gpus", "all"), 8, FAIL),
        (("/usr/bin/docker", "run", "--ipc=host"), 8, OK),
        (("docker", "run", "--shm-size=16g"), 8, OK),
        (("docker", "run"), 1, OK),
        (("numactl", "--cpunodebind=0"), 8, OK),
    ],
)
def test_shared_memory_of_a_container(tmp_path, room, prefix, each, state):
    room(100 * GIB)
    (tmp_path / "root" / "dev" / "shm").mkdir(parents=True)
    needs = needing(gpus=each, gpus_each=each, server=Server("vllm", "0.32", prefix))
    assert states(asked(storage.shared_memory, made(tmp_path), needs)) == (state, False)


def test_a_machine_without_shared_memory(tmp_path: Path) -> None:
    assert states(asked(storage.shared_memory, made(tmp_path))) == (UNKNOWN, False)


@pytest.mark.parametrize(
    ("free", "kind", "state", "missing"),
    [
        (100 * GIB, "ext4", OK, False),
        (5 * GIB, "xfs", WARN, False),
        (GIB // 2, "ext4", FAIL, True),
        (100 * GIB, "nfs4", WARN, False),
        (100 * GIB, "tmpfs", WARN, False),
    ],
)
def test_the_disk_of_results(tmp_path, room, free, kind, state, missing):
    room(free, kind=kind)
    found = asked(storage.disk_results, made(tmp_path))
    assert states(found) == (state, missing)
    assert kind in found.read
    if free > 10 * GIB:
        assert states(asked(storage.disk_data, made(tmp_path))) == (OK, False)


def test_folders_that_cannot_be_used(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    found = asked(storage.disk_results, made(tmp_path, results=file))
    assert states(found) == (UNKNOWN, False)
    assert found.source == f"{file} is no folder"


def test_a_folder_that_may_not_be_written_to(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    found = asked(storage.disk_results, made(tmp_path))
    assert states(found) == (FAIL, True)
    assert str(tmp_path) in found.read


@pytest.mark.parametrize(
    ("bytes_", "published", "prefix", "state", "missing"),
    [
        (2000, 1900, (), OK, False),
        (2000, None, (), OK, False),
        (1000, 1900, (), FAIL, True),
        (0, 1900, (), FAIL, True),
        (None, 1900, (), FAIL, True),
        (None, 1900, ("docker", "run"), UNKNOWN, False),
    ],
)
def test_the_weights(tmp_path, bytes_, published, prefix, state, missing):
    folder = tmp_path / "weights"
    if bytes_ is not None:
        folder.mkdir()
        (folder / "config.json").write_text("{}")
        (folder / "model.safetensors").write_bytes(b"0" * bytes_)
    server = Server("vllm", "0.32", prefix)
    needs = needing(checkpoint=folder, tensor_bytes=published, server=server)
    found = asked(storage.checkpoint, made(tmp_path), needs)
    assert states(found) == (state, missing)
    assert str(folder) in (found.read if state != UNKNOWN else found.source)


def test_weights_that_are_made_are_not_looked_for(tmp_path: Path) -> None:
    assert storage.checkpoint(made(tmp_path), needing()) is None


@pytest.mark.parametrize(
    ("there", "lacking"),
    [
        ([1, 2, 3], ""),
        ([0, 1, 2], ""),
        ([1, 3], "part 2 of 3"),
        ([2], "part 1 of 3, part 3 of 3"),
    ],
)
def test_parts_of_the_weights(tmp_path: Path, there: list[int], lacking: str) -> None:
    for number in there:
        (tmp_path / f"model-{number:05}-of-00003.safetensors").write_bytes(b"0" * 100)
    found = asked(storage.checkpoint, made(tmp_path), needing(checkpoint=tmp_path))
    assert states(found) == ((FAIL, True) if lacking else (OK, False))
    assert lacking in found.read
