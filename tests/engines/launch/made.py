"""Plans of fake servers, free ports, and what is left of processes."""

from __future__ import annotations

import os
import random
import socket
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from harness.engines.launch.plan import ServerPlan
from harness.events import Event, Note

FAKE_SERVER = Path(__file__).with_name("fake_server.py")


LEAST_PORT = 12_000
PORT_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")


def free_ports(count: int = 1) -> int:
    """The first of ``count`` ports in a row that nobody listens on.

    Below those that the system gives to connections: one of them may be a test's beside this one a moment later.
    """
    most = int(PORT_RANGE.read_text().split()[0]) - count
    while True:
        first = random.SystemRandom().randrange(LEAST_PORT, most)  # of two workers each its own
        with ExitStack() as held:
            try:
                for port in range(first, first + count):
                    held.enter_context(socket.socket()).bind(("127.0.0.1", port))
            except OSError:
                continue
            return first


def fake_plan(folder: Path, port: int, *words: object, name: str = "0", **changes: Any) -> ServerPlan:
    """A plan of ``fake_server.py`` with these words of its own."""
    values: dict[str, Any] = {
        "name": name,
        "server": "trtllm-serve",
        "command": (sys.executable, str(FAKE_SERVER), "--port", str(port), *map(str, words)),
        "environment": {"PATH": os.environ["PATH"]},
        "files": {},
        "folder": folder,
        "caches": folder / "caches",
        "log": folder / f"server-{name}.log",
        "host": "127.0.0.1",
        "port": port,
        "url": f"http://127.0.0.1:{port}",
        "model": "tiny",
    }
    return ServerPlan(**values | changes)


class Notes:
    """An observer that keeps what it is told, and does something at a line that holds a text."""

    def __init__(self, at: str = "", do: Callable[[], None] | None = None) -> None:
        self.lines: list[str] = []
        self._at, self._do = at, do

    def __call__(self, event: Event) -> None:
        assert isinstance(event, Note)
        self.lines.append(event.text)
        if self._do is not None and self._at in event.text:
            self._do()


def pids_in(path: Path) -> list[int]:
    """The processes that ``--forks`` told of: server, child, daemon."""
    from tests.harness_process import wait_until

    wait_until(path.exists, f"{path} with the pids of what the server forked")
    return [int(word) for word in path.read_text().split()]
