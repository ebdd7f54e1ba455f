"""What a container, or a slice of systemd's, lets this process have: cgroups of both versions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from harness.machine.doctor.host import Host

_MOUNT: Final = "sys/fs/cgroup"


class Cgroups:
    """The control groups of this process, its own and all above it: the tightest of them holds."""

    def __init__(self, host: Host) -> None:
        """Raises Unreadable where the kernel does not tell them."""
        self._host = host
        self._paths = dict(_controllers(host.text("proc/self/cgroup")))

    def quota(self) -> tuple[float, str] | None:
        """How many processors' time it may take, and where that is said; None for no quota."""
        found = []
        for name in self._names("cpu", "cpu.max"):
            limit, _, period = self._host.text(name).partition(" ")
            if limit != "max":
                found.append((int(limit) / int(period), f"/{name}"))
        for name in self._names("cpu", "cpu.cfs_quota_us"):
            limit_us = self._host.number(name)
            if limit_us > 0:
                found.append((limit_us / self._host.number(str(Path(name).with_name("cpu.cfs_period_us"))), f"/{name}"))
        return min(found, default=None)

    def throttled(self) -> int:
        """How often it was stopped for that."""
        text = "\n".join(self._host.told(name) or "" for name in self._names("cpu", "cpu.stat"))
        return max((int(line.split()[1]) for line in text.splitlines() if line.startswith("nr_throttled ")), default=0)

    def memory(self) -> tuple[int, str] | None:
        """How much memory it may have, in bytes; None for no limit of its own."""
        names = [*self._names("memory", "memory.max"), *self._names("memory", "memory.limit_in_bytes")]
        return self._least(names)

    def pids(self) -> tuple[int, str] | None:
        """How many processes and threads; None for no limit of its own."""
        return self._least(self._names("pids", "pids.max"))

    def _least(self, names: list[str]) -> tuple[int, str] | None:
        said = [(self._host.text(name), f"/{name}") for name in names]
        return min(((int(text), name) for text, name in said if text != "max"), default=None)

    def _names(self, controller: str, file: str) -> list[str]:
        """The file in the group of this process and in those above it, as far as they are to be seen."""
        found: list[str] = []
        for base, path in ((f"{_MOUNT}/{controller}", self._paths.get(controller)), (_MOUNT, self._paths.get(""))):
            if path is None:
                continue
            for above in _upwards(path):
                name = f"{base}{above}/{file}"
                if (self._host.root / name).is_file():
                    found.append(name)
        return found


def _controllers(text: str) -> Iterator[tuple[str, str]]:
    """Controller to path, of lines as ``4:memory:/a/b`` and ``0::/a/b`` (version 2, named "")."""
    for line in text.splitlines():
        _, _, rest = line.partition(":")
        names, _, path = rest.partition(":")
        for name in names.split(","):
            yield name, path


def _upwards(path: str) -> Iterator[str]:
    """``/a/b``, ``/a`` and the root, which is empty. In a container's own view the path may lead out of it."""
    parts = [part for part in path.split("/") if part and part != ".."]
    while parts:
        yield "/" + "/".join(parts)
        parts.pop()
    yield ""
