from __future__ import annotations

import os
import subprocess
import sys
import types
from pathlib import Path

import psutil
import pytest

from harness.machine.doctor import load
from harness.machine.doctor.cgroup import Cgroups
from harness.machine.facts import Unreadable
from tests.machine.doctor.made_host import FAIL, OK, UNKNOWN, WARN, asked, made, states

V2 = {"proc/self/cgroup": "0::/docker/abc\n"}
V1 = {"proc/self/cgroup": "4:memory:/docker/abc\n3:cpu,cpuacct:/docker/abc\n1:pids:/\n"}
GIB = 1 << 30


@pytest.fixture
def machine(monkeypatch):
    """A machine of 8 processors and 64 GiB, all of them this process's."""
    monkeypatch.setattr(psutil, "cpu_count", lambda: 8)
    monkeypatch.setattr(psutil.Process, "cpu_affinity", lambda self: list(range(8)))
    monkeypatch.setattr(psutil, "virtual_memory", lambda: types.SimpleNamespace(total=64 * GIB))


@pytest.mark.parametrize(
    ("files", "state", "read"),
    [
        ({**V2, "sys/fs/cgroup/docker/abc/cpu.max": "max 100000\n"}, OK, "8 of 8 processors, no quota"),
        ({**V2, "sys/fs/cgroup/docker/abc/cpu.max": "200000 100000\n",
          "sys/fs/cgroup/docker/abc/cpu.stat": "usage_usec 1\nnr_throttled 7\n"},
         FAIL, "8 of 8 processors, 2 processors' time, stopped 7 times"),
        ({**V2, "sys/fs/cgroup/cpu.max": "400000 100000\n", "sys/fs/cgroup/docker/abc/cpu.max": "max 100000"},
         FAIL, "8 of 8 processors, 4 processors' time, stopped 0 times"),
        ({**V1, "sys/fs/cgroup/cpu/docker/abc/cpu.cfs_quota_us": "-1\n"}, OK, "8 of 8 processors, no quota"),
        ({**V1, "sys/fs/cgroup/cpu/docker/abc/cpu.cfs_quota_us": "100000\n",
          "sys/fs/cgroup/cpu/docker/abc/cpu.cfs_period_us": "100000\n"},
         FAIL, "8 of 8 processors, 1 processors' time, stopped 0 times"),
        ({**V2, "sys/fs/cgroup/docker/abc/cpu.max": "1600000 100000\n"}, OK, "8 of 8 processors, 16 processors' time"),
    ],
)  # fmt: skip
def test_a_quota_of_time(machine, tmp_path, files, state, read):
    found = asked(load.processor_quota, made(tmp_path, files))
    assert (*states(found), found.read) == (state, False, read)


def test_processors_that_others_have(machine, monkeypatch, tmp_path):
    monkeypatch.setattr(psutil.Process, "cpu_affinity", lambda self: [0, 1])
    found = asked(load.processor_quota, made(tmp_path, V2))
    assert (*states(found), found.read) == (WARN, False, "2 of 8 processors, no quota")


@pytest.mark.parametrize(
    ("files", "state", "read"),
    [
        ({}, OK, "no limit of memory, no limit of processes"),
        ({"sys/fs/cgroup/docker/abc/memory.max": "max", "sys/fs/cgroup/docker/abc/pids.max": "max"},
         OK, "no limit of memory, no limit of processes"),
        ({"sys/fs/cgroup/docker/abc/memory.max": str(8 * GIB)}, WARN, "8 GiB of 64 GiB, no limit of processes"),
        ({"sys/fs/cgroup/memory.max": str(4 * GIB), "sys/fs/cgroup/docker/abc/memory.max": str(8 * GIB)},
         WARN, "4 GiB of 64 GiB, no limit of processes"),
        ({"sys/fs/cgroup/docker/abc/pids.max": "100"}, WARN, "no limit of memory, 100 processes"),
        ({"sys/fs/cgroup/docker/abc/pids.max": "100000"}, OK, "no limit of memory, 100000 processes"),
    ],
)  # fmt: skip
def test_a_limit_of_memory_and_processes(machine, tmp_path, files, state, read):
    found = asked(load.memory_limit, made(tmp_path, {**V2, **files}))
    assert (*states(found), found.read) == (state, False, read)


def test_limits_of_the_first_version(machine, tmp_path):
    files = {**V1, "sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes": str(2 * GIB),
             "sys/fs/cgroup/pids/pids.max": "50"}  # fmt: skip
    found = asked(load.memory_limit, made(tmp_path, files))
    assert found.read == "2 GiB of 64 GiB, 50 processes"
    assert "/sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes" in found.source


def test_a_path_that_leads_out_of_the_container(tmp_path: Path) -> None:
    files = {"proc/self/cgroup": "0::/../../docker/abc\n", "sys/fs/cgroup/memory.max": str(GIB)}
    assert Cgroups(made(tmp_path, files)).memory() == (GIB, "/sys/fs/cgroup/memory.max")


def test_a_kernel_without_groups(tmp_path: Path) -> None:
    with pytest.raises(Unreadable, match="/proc/self/cgroup"):
        Cgroups(made(tmp_path))
    assert states(asked(load.processor_quota, made(tmp_path))) == (UNKNOWN, False)


@pytest.mark.parametrize(
    ("idle", "steal", "state"), [(97.0, 0.0, OK), (80.0, 0.0, WARN), (97.0, 5.0, WARN), (20.0, 0.0, FAIL)]
)
def test_what_else_runs(monkeypatch, tmp_path, idle, steal, state):
    told = types.SimpleNamespace(idle=idle, iowait=0.0, steal=steal)
    monkeypatch.setattr(psutil, "cpu_times_percent", lambda seconds: told)
    found = asked(load.others, made(tmp_path))
    assert states(found) == (state, False)
    assert f"{1 - idle / 100:.0%} busy" in found.read


def test_a_busy_process_is_named_and_its_arguments_are_not(monkeypatch, tmp_path):
    sleeps = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)  # secret"])
    try:
        first = load._processes
        looks = iter([lambda: {**first(), sleeps.pid: 0.0}, lambda: {**first(), sleeps.pid: 1000.0}])
        monkeypatch.setattr(load, "_processes", lambda: next(looks)())
        idle = types.SimpleNamespace(idle=0.0)
        monkeypatch.setattr(psutil, "cpu_times_percent", lambda seconds: idle)
        found = asked(load.others, made(tmp_path))
    finally:
        sleeps.kill()
        sleeps.wait()
    assert f"({sleeps.pid})" in found.read
    assert "secret" not in found.read and str(os.getpid()) not in found.read
