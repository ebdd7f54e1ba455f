"""How busy the machine is: what lets a benchmark say that it cannot judge. And what a process needed."""

from __future__ import annotations

from pathlib import Path

import psutil

QUIET_CORES = 0.35
"""What other processes may use of the machine, in cores, before a run says more about them than about us."""


def busy_s() -> float:
    """CPU seconds that all processes of the machine have used since it started."""
    times = psutil.cpu_times()
    return float(sum(times) - times.idle - getattr(times, "iowait", 0.0) - getattr(times, "guest", 0.0))


def cpu_of(pid: int) -> float:
    """CPU seconds that a process has used."""
    times = psutil.Process(pid).cpu_times()
    return float(times.user + times.system)


def peak_mb(pid: int | str = "self") -> float:
    """The most memory that a process has had, this one where none is named, in millions of bytes.

    Not ru_maxrss: Linux begins that of a process that was just started with what its parent had.
    """
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024 / 1e6
