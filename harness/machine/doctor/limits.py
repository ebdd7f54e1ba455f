"""What this process, and all that it starts, may have: open files, processes, locked memory."""

from __future__ import annotations

import resource
from typing import Final

from harness.machine.doctor.check import Check, Question, check
from harness.machine.doctor.host import INFINITE, Host
from harness.machine.doctor.needs import Needs
from harness.machine.facts import sized

_PROCESSES: Final = 8192
"""Threads count too: a server of eight GPUs has some thousand, clients and a judge their own."""
_LOCKED: Final = 64 << 30
_SOURCE: Final = "getrlimit(2)"


@check(
    "limits",
    "open-files",
    expected="as many open files as there are connections, and some",
    why="each connection is an open file of the client's and of the server's: those beyond the limit fail",
    authority="getrlimit(2): RLIMIT_NOFILE; the client raises its own up to the hard limit, servers do not",
    mend="ulimit -n 65536, in a container docker run --ulimit nofile=65536:65536; to last: /etc/security/limits.conf",
)
def open_files(ask: Question, host: Host, needs: Needs) -> Check:
    """The limit of open files against the connections of one process."""
    soft, hard = host.limits(resource.RLIMIT_NOFILE)
    told, expected = (f"{_named(soft)}, at most {_named(hard)}", _SOURCE), f"at least {needs.descriptors}"
    if hard < needs.descriptors:
        return ask.missing(*told, expected=expected)
    return (ask.ok if soft >= needs.descriptors else ask.fail)(*told, expected=expected)


@check(
    "limits",
    "processes",
    expected=f"at least {_PROCESSES} processes and threads",
    why="an engine that gets no further thread dies in the middle of a leg",
    authority="getrlimit(2): RLIMIT_NPROC; cgroups: pids.max",
    mend=f"ulimit -u {4 * _PROCESSES}, in a container docker run --pids-limit=-1",
)
def processes(ask: Question, host: Host, needs: Needs) -> Check:
    """The limit of processes of this user, and of this container."""
    soft, hard = host.limits(resource.RLIMIT_NPROC)
    told = f"{_named(soft)}, at most {_named(hard)}", _SOURCE
    return ask.ok(*told) if soft >= _PROCESSES else ask.warn(*told)


@check(
    "limits",
    "locked-memory",
    expected="unlimited locked memory where accelerators of a replica speak over InfiniBand",
    why="NCCL and UCX register buffers with the network card, and that locks them",
    authority="NCCL user guide, troubleshooting: memory limits",
    mend="ulimit -l unlimited, in a container docker run --ulimit memlock=-1",
)
def locked_memory(ask: Question, host: Host, needs: Needs) -> Check:
    """The limit of locked memory, where something locks any."""
    soft, _ = host.limits(resource.RLIMIT_MEMLOCK)
    read = "unlimited" if soft == INFINITE else sized(soft)
    cards = sorted(path.name for path in (host.root / "sys/class/infiniband").glob("*"))
    wanted = bool(cards) and (needs.gpus_each > 1 or not needs.every)
    if not wanted:
        return ask.ok(read, _SOURCE, expected="any: nothing here speaks over InfiniBand")
    told = f"{read}, InfiniBand {', '.join(cards[:8])}", f"{_SOURCE}, /sys/class/infiniband"
    return ask.ok(*told) if soft >= _LOCKED else ask.warn(*told)


def _named(number: int) -> str:
    return "unlimited" if number == INFINITE else str(number)


CHECKS = (open_files, processes, locked_memory)
