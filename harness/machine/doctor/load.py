"""What else goes on on this machine, and how much of it this process may have."""

from __future__ import annotations

import os
import time
from typing import Final

import psutil

from harness.machine.doctor.cgroup import Cgroups
from harness.machine.doctor.check import Check, Question, check
from harness.machine.doctor.host import Host
from harness.machine.doctor.needs import Needs
from harness.machine.facts import sized

_LOOKED_FOR_S: Final = 0.3
_BUSY, _TOO_BUSY = 0.1, 0.5
_STOLEN: Final = 0.02
_NAMED: Final = 3
_FEW_PIDS: Final = 8192


@check(
    "load",
    "others",
    expected=f"less than {_BUSY:.0%} of the processors busy, and nothing stolen by other virtual machines",
    why="whatever else runs takes its time from first tokens; a Server run is INVALID for it",
    authority="harness: docs/runbook.md, the machine is busy",
    mend="end it, or wait: top -o %CPU",
)
def others(ask: Question, host: Host, needs: Needs) -> Check:
    """How busy processors are while nothing is measured, by whom, and what a hypervisor gives to others."""
    before, started = _processes(), time.monotonic()
    share = psutil.cpu_times_percent(_LOOKED_FOR_S)
    seconds = time.monotonic() - started
    stolen, busy = getattr(share, "steal", 0.0) / 100, 1 - (share.idle + getattr(share, "iowait", 0.0)) / 100
    by = _busiest(before, seconds)
    read = f"{busy:.0%} busy" + (f" ({by})" if busy > _BUSY and by else "") + f", {stolen:.0%} stolen"
    load = ", ".join(f"{value:.2f}" for value in psutil.getloadavg())
    told = f"{read}; load {load} on {psutil.cpu_count()} processors", "psutil: cpu_times_percent, getloadavg"
    if busy > _TOO_BUSY:
        return ask.fail(*told)
    return ask.warn(*told) if busy > _BUSY or stolen > _STOLEN else ask.ok(*told)


@check(
    "load",
    "processor-quota",
    expected="all processors of the machine, and no quota of their time",
    why="a quota stops every thread for the rest of a tenth of a second once it is used up: late tokens in bursts",
    authority="Linux Documentation/admin-guide/cgroup-v2.rst (cpu.max), scheduler/sched-bwc.rst",
    mend="docker run without --cpus and --cpuset-cpus; kubernetes: no limits.cpu, or the static CPU policy",
)
def processor_quota(ask: Question, host: Host, needs: Needs) -> Check:
    """The processors that this process may use, and how much of their time."""
    groups = Cgroups(host)
    mine, all_ = len(psutil.Process().cpu_affinity() or ()), psutil.cpu_count() or 0
    quota = groups.quota()
    read = f"{mine} of {all_} processors" + (", no quota" if quota is None else f", {quota[0]:g} processors' time")
    source = "psutil: cpu_affinity" + ("" if quota is None else f", {quota[1]}")
    stops = groups.throttled()
    if quota is not None and quota[0] < mine:
        return ask.fail(f"{read}, stopped {stops} times", source)
    return ask.warn(read, source) if mine < all_ else ask.ok(read, source)


@check(
    "load",
    "memory-limit",
    expected="a limit of memory that leaves the machine's to this process, and of processes too",
    why="a process that reaches the limit is killed, with the engine in it",
    authority="Linux Documentation/admin-guide/cgroup-v2.rst (memory.max, pids.max)",
    mend="docker run without --memory and with --pids-limit=-1; kubernetes: raise limits.memory",
)
def memory_limit(ask: Question, host: Host, needs: Needs) -> Check:
    """What a container lets this process have of memory and of processes."""
    groups, total = Cgroups(host), psutil.virtual_memory().total
    memory, pids = groups.memory(), groups.pids()
    limited = memory is not None and memory[0] < total
    read = [f"{sized(memory[0])} of {sized(total)}" if memory is not None and limited else "no limit of memory"]
    read.append("no limit of processes" if pids is None else f"{pids[0]} processes")
    source = ", ".join(one[1] for one in (memory if limited else None, pids) if one is not None) or "/proc/self/cgroup"
    few = pids is not None and pids[0] < _FEW_PIDS
    return ask.warn(", ".join(read), source) if limited or few else ask.ok(", ".join(read), source)


def _processes() -> dict[int, float]:
    """Seconds of processors that each process has had."""
    found = {}
    for one in psutil.process_iter(["cpu_times"]):
        times = one.info["cpu_times"]
        if times is not None:
            found[one.pid] = times.user + times.system
    return found


def _busiest(before: dict[int, float], seconds: float) -> str:
    """Who took most since, by name and share of one processor; not this process, and not the names of its arguments."""
    took = {pid: now - before[pid] for pid, now in _processes().items() if pid in before and pid != os.getpid()}
    most = sorted((pid for pid in took if took[pid] > 0), key=lambda pid: -took[pid])[:_NAMED]
    return ", ".join(f"{_name(pid)} {took[pid] / seconds:.0%}" for pid in most)


def _name(pid: int) -> str:
    try:
        return f"{psutil.Process(pid).name()} ({pid})"
    except psutil.Error:
        return f"process {pid}"


CHECKS = (others, processor_quota, memory_limit)
