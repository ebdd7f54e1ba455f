"""``servers.json``: servers that ``run_llm_server`` keeps running, for a ``run_harness`` beside it to find."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from harness.engines.launch.supervisor import relative

STATE: Final = "servers.json"


@dataclass(frozen=True, slots=True)
class RunningServer:
    """One server: its URL, and its supervisor's process with the time at which the kernel says that it started."""

    name: str
    url: str
    pid: int
    started: int

    def alive(self) -> bool:
        """Whether its supervisor runs."""
        return _runs(self.pid, self.started)


@dataclass(frozen=True, slots=True)
class RunningServers:
    """What a starter wrote: its process and when that started, the digest of the configuration, the servers."""

    starter: int
    starter_started: int
    digest: str
    servers: tuple[RunningServer, ...]

    def ending(self) -> str | None:
        """Which server is gone; None while all run, and their starter does: they end when it does."""
        if not _runs(self.starter, self.starter_started):
            return f"run_llm_server (process {self.starter}) has gone, and its servers go with it"
        for server in self.servers:
            if not server.alive():
                return f"server {server.name} ({server.url}) has gone; run_llm_server (process {self.starter}) says why"
        return None


def read_state(folder: Path) -> RunningServers | None:
    """The servers that run now; None where there are none, or only the note of a starter that is gone."""
    try:
        found: dict[str, Any] = json.loads((folder / STATE).read_bytes())
        servers = tuple(RunningServer(**server) for server in found["servers"])
        state = RunningServers(int(found["starter"]), int(found["starter_started"]), str(found["digest"]), servers)
    except (OSError, ValueError, TypeError, KeyError):
        return None
    return state if servers and state.ending() is None else None


@contextmanager
def state_of(folder: Path, digest: str, names: Sequence[tuple[str, str]], pids: Sequence[int]) -> Iterator[None]:
    """Says while the block runs that these servers (name, URL) do; ``pids`` are their supervisors."""
    servers = []
    for (name, url), pid in zip(names, pids, strict=True):
        servers.append(RunningServer(name, url, pid, _started(pid)))
    starter = os.getpid()
    content = asdict(RunningServers(starter, _started(starter), digest, tuple(servers)))
    path = folder / STATE
    scratch = path.with_suffix(".new")
    scratch.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    scratch.replace(path)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            path.unlink()


def _started(pid: int) -> int:
    """When a process started, as the kernel counts; 0 where there is none."""
    found = relative(pid)
    return found.started if found is not None else 0


def _runs(pid: int, started: int) -> bool:
    """Whether that very process runs, and not a later one of the same number."""
    found = relative(pid)
    return found is not None and found.started == started and not found.zombie
