"""All servers of a configuration together: started, waited for, watched, ended."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from harness.engines.launch.environment import asks_a_scheduler
from harness.engines.launch.http import get
from harness.engines.launch.plan import ServerPlan
from harness.engines.launch.ports import check_port, stranger
from harness.engines.launch.process import GRACE_S, ServerProcess, start_server
from harness.engines.launch.supervisor import below
from harness.errors import EngineDied
from harness.events import Note, Observer

HEALTH_TIMEOUT_S: Final = 5.0
FIRST_POLL_S: Final = 0.05
SLOWEST_POLL_S: Final = 2.0
LIFE_EVERY_S: Final = 30.0
"""How often a user who waits is shown that something goes on."""


class Fleet:
    """Servers that were started together."""

    def __init__(self, servers: Sequence[ServerProcess]) -> None:
        self.servers = tuple(servers)

    @property
    def pids(self) -> list[int]:
        """The leaders of the servers' sessions, in order of the replicas."""
        return [server.pid for server in self.servers]

    def ending(self) -> str | None:
        """Which server ended and how, with the end of its log; None while all run. Never waits."""
        for server in self.servers:
            how = server.ending()
            if how is not None:
                return f"{server.plan.title} {how}{_shown(server)}"
        return None

    def await_healthy(self, timeout_s: float, observer: Observer) -> None:
        """Until every /health answers 200. EngineDied for a server that ends first or takes longer."""
        started = time.monotonic()
        pending = list(self.servers)
        pause, next_life = FIRST_POLL_S, started + LIFE_EVERY_S
        seen = dict.fromkeys(self.servers, 0)
        while pending:
            self._raise_if_ended()
            pending = [server for server in pending if not self._healthy(server, started, observer)]
            now = time.monotonic()
            if pending and now - started > timeout_s:
                raise _too_slow(pending[0], timeout_s)
            if pending and now > next_life:
                next_life = now + LIFE_EVERY_S
                for server in pending:
                    observer(Note(_life(server, now - started, seen)))
            if pending:
                time.sleep(pause)
                pause = min(pause * 1.3, SLOWEST_POLL_S)
        self._raise_if_ended()

    def stop(self) -> None:
        """Ends all of them at once and waits until nothing of them is left. May be called again."""
        for server in self.servers:
            server.ask_to_end()
        for server in self.servers:
            server.await_end()

    def _raise_if_ended(self) -> None:
        for server in self.servers:
            how = server.ending()
            if how is not None:
                raise EngineDied(
                    f"{server.plan.title} {how} before all servers were healthy{_shown(server)}",
                    where=server.plan.log,
                    mend=_mend(how),
                )

    def _healthy(self, server: ServerProcess, started: float, observer: Observer) -> bool:
        if get(server.plan.url, "/health", timeout_s=HEALTH_TIMEOUT_S).status != 200:
            return False
        _raise_if_a_stranger_answers(server)
        observer(Note(f"{server.plan.title} is healthy after {time.monotonic() - started:.1f} s"))
        return True


@contextmanager
def running(
    plans: Sequence[ServerPlan], *, ready_s: float, observer: Observer, grace_s: float = GRACE_S
) -> Iterator[Fleet]:
    """Starts planned servers, waits until all are healthy, and ends them when the block is left, however it is.

    Raises MissingError (a port in use, no such program) before anything is started, EngineDied for a server that ends
    or is not healthy after ``ready_s``.
    """
    for plan in plans:
        check_port(plan.host, plan.port, elsewhere=asks_a_scheduler(plan.command))
    servers: list[ServerProcess] = []
    try:
        for plan in plans:
            for folder in (plan.folder, plan.caches):
                folder.mkdir(parents=True, exist_ok=True)
            observer(Note(f"starting {plan.title} (its log: {plan.log})"))
            servers.append(start_server(plan, grace_s))
        fleet = Fleet(servers)
        fleet.await_healthy(ready_s, observer)
        yield fleet
    finally:
        Fleet(servers).stop()


def _raise_if_a_stranger_answers(server: ServerProcess) -> None:
    """EngineDied where the port went to another while ours was loading: a run would measure that one.

    Only of a server that was started without a prefix is it known which processes are its own.
    """
    who = "" if server.plan.prefixed else stranger(server.plan.port, [server.pid, *below(server.pid)])
    if who:
        raise EngineDied(
            f"{who} answers in place of {server.plan.title}, which was started and does not listen there",
            where=server.plan.url,
            mend="end it, or give engine.launch.port another: two harnesses on one machine want different ports",
        )


def _shown(server: ServerProcess) -> str:
    lines = server.last_lines()
    return "; its log ends with" + "".join(f"\n    {line}" for line in lines) if lines else "; it logged nothing"


def _mend(how: str) -> str | None:
    if "SIGKILL" in how or how.endswith("137"):
        return "the kernel's log says whether memory ran out (dmesg)"
    return None


def _too_slow(server: ServerProcess, timeout_s: float) -> EngineDied:
    reply = get(server.plan.url, "/health", timeout_s=HEALTH_TIMEOUT_S)
    said = f"its /health answers {reply.status}" if reply.status else f"nothing answers there ({reply.body})"
    return EngineDied(
        f"{server.plan.title} is not healthy after {timeout_s:g} s: {said}{_shown(server)}",
        where=server.plan.log,
        mend="give it more time (engine.launch.ready_s), or find in its log what it waits for",
    )


def _life(server: ServerProcess, waited_s: float, seen: dict[ServerProcess, int]) -> str:
    """A line that shows a user of a long load whether anything moves."""
    size = server.log_bytes()
    grown, seen[server] = size - seen[server], size
    last = server.last_lines(1)
    moves = f"its log grew by {grown:,} bytes" + (f": {last[0].strip()[:100]}" if last else "")
    return f"{server.plan.title} loads since {waited_s:.0f} s; {moves if grown else 'its log has not grown'}"
