"""The host's processors: how they are clocked, and what the kernel does to memory behind a program's back."""

from __future__ import annotations

import re
from typing import Final

from harness.machine.doctor.check import Check, Question, check
from harness.machine.doctor.host import GUESTS_MEND, Host
from harness.machine.doctor.needs import Needs
from harness.machine.error_correction import is_guest
from harness.machine.facts import counted

_CPU: Final = "sys/devices/system/cpu"
_PAGES: Final = "sys/kernel/mm/transparent_hugepage"
_CHOSEN: Final = re.compile(r"\[([\w+-]+)\]")


@check(
    "processors",
    "cpu-governor",
    expected="the governor performance on every processor",
    why="a clock that follows the load is low when a burst of requests comes: first tokens are late",
    authority="Linux Documentation/admin-guide/pm/cpufreq.rst",
    mend="sudo cpupower frequency-set -g performance",
)
def cpu_governor(ask: Question, host: Host, needs: Needs) -> Check:
    """What decides on each processor's clock."""
    found = [path.read_text().strip() for path in (host.root / _CPU).glob("cpu[0-9]*/cpufreq/scaling_governor")]
    if not found:
        return ask.unknown(f"no cpufreq below /{_CPU}: {_who_governs(host)}", mend=_mend(host))
    told = counted(sorted(found)), f"/{_CPU}/cpu*/cpufreq/scaling_governor"
    return ask.ok(*told) if set(found) == {"performance"} else ask.warn(*told)


@check(
    "processors",
    "cpu-boost",
    expected="boost allowed",
    why="LoadGen, the client and the servers' own loops are single threads, which boost makes faster",
    authority="Linux Documentation/admin-guide/pm/cpufreq.rst (boost), intel_pstate.rst (no_turbo)",
    mend="echo 0 | sudo tee /sys/devices/system/cpu/intel_pstate/no_turbo, or echo 1 | sudo tee "
    "/sys/devices/system/cpu/cpufreq/boost",
)
def cpu_boost(ask: Question, host: Host, needs: Needs) -> Check:
    """Whether processors may go above their nominal clock."""
    for name, on in ((f"{_CPU}/intel_pstate/no_turbo", "0"), (f"{_CPU}/cpufreq/boost", "1")):
        value = host.told(name)
        if value is not None:
            return ask.ok("on", f"/{name}") if value == on else ask.warn("off", f"/{name}")
    why = f"neither intel_pstate/no_turbo nor cpufreq/boost below /{_CPU}: {_who_governs(host)}"
    return ask.unknown(why, mend=_mend(host))


@check(
    "processors",
    "numa-balancing",
    expected="automatic NUMA balancing off where memory has several nodes",
    why="the kernel unmaps pages to see who uses them and moves them: threads stop for it at any time",
    authority="Linux Documentation/admin-guide/sysctl/kernel.rst (numa_balancing)",
    mend="sudo sysctl -w kernel.numa_balancing=0",
)
def numa_balancing(ask: Question, host: Host, needs: Needs) -> Check:
    """Whether the kernel moves pages between nodes."""
    nodes = len(list((host.root / "sys/devices/system/node").glob("node[0-9]*")))
    name = "proc/sys/kernel/numa_balancing"
    if nodes == 1:
        return ask.ok("one node of memory", "/sys/devices/system/node")
    on = host.number(name)
    read = f"{'on' if on else 'off'}, {nodes or 'an unknown number of'} nodes"
    return ask.warn(read, f"/{name}") if on else ask.ok(read, f"/{name}")


@check(
    "processors",
    "huge-pages",
    expected="transparent huge pages always or madvise, and no program waiting while memory is compacted for them",
    why="without them gigabytes are mapped 4 kB at a time; with defrag always any allocation may stall",
    authority="Linux Documentation/admin-guide/mm/transhuge.rst",
    mend="echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled "
    "/sys/kernel/mm/transparent_hugepage/defrag",
)
def huge_pages(ask: Question, host: Host, needs: Needs) -> Check:
    """How the kernel makes huge pages."""
    enabled, defrag = (_CHOSEN.search(host.text(f"{_PAGES}/{name}")) for name in ("enabled", "defrag"))
    if enabled is None or defrag is None:
        return ask.unknown(f"/{_PAGES} names no choice")
    told = f"enabled {enabled[1]}, defrag {defrag[1]}", f"/{_PAGES}"
    stalls = defrag[1] == "always" and enabled[1] != "never"
    return ask.warn(*told) if stalls or enabled[1] == "never" else ask.ok(*told)


def _who_governs(host: Host) -> str:
    return "a virtual machine's clock is its host's" if is_guest(host.root) else "the firmware may govern it"


def _mend(host: Host) -> str:
    return GUESTS_MEND if is_guest(host.root) else "set the firmware's power profile to performance"


CHECKS = (cpu_governor, cpu_boost, numa_balancing, huge_pages)
