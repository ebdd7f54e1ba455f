"""An engine of one or several processes, started and ended as one."""

from __future__ import annotations

import select
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType, TracebackType

from harness.engines import gauges, metrics
from harness.engines.address import EngineAddress, Lane, lanes_each, together
from harness.engines.base import EngineInfo
from harness.engines.http.settings import HttpSettings
from harness.engines.remote import RemoteEngine
from harness.engines.replicas import ReplicasEngine, connect
from harness.engines.start import EngineProcess, EngineSpec, begin_engine
from harness.events import Occupancy

_GAUGES_S = 1.0


@dataclass(frozen=True, slots=True)
class Member:
    """One process of an engine: what it hosts, and what its environment has beyond the harness's own."""

    spec: EngineSpec
    environment: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))


class EngineGroup:
    """Running processes that are one engine. Use as a context manager, or call :meth:`stop`.

    ``behind`` tells how something that the processes depend on has ended, servers for one; None while nothing has.
    """

    def __init__(
        self,
        processes: Sequence[EngineProcess],
        lanes: Sequence[Lane],
        *,
        behind: Callable[[], str | None] | None = None,
    ) -> None:
        self.processes = tuple(processes)
        self.address = EngineAddress(
            tuple(str(process.socket) for process in processes),
            tuple(str(process.log.absolute()) for process in processes),
            tuple(lanes),
        )
        """For a client in another process: see :func:`harness.engines.replicas.connect`."""
        self.info: EngineInfo = together([process.info for process in processes], self.address.replicas)
        """What its processes said of themselves when they were ready, taken together."""
        self._behind = behind

    @property
    def spec(self) -> EngineSpec:
        """What its processes host: all the same."""
        return self.processes[0].spec

    @property
    def logs(self) -> tuple[Path, ...]:
        """The log of each process."""
        return tuple(process.log for process in self.processes)

    def connect(self, timeout_s: float = 30.0) -> RemoteEngine | ReplicasEngine:
        """A client of it. It serves one at a time; another process connects to :attr:`address`."""
        return connect(self.address, timeout_s=timeout_s)

    def ending(self) -> str | None:
        """What of it has ended and how, as a sentence; None while all of it runs."""
        if self._behind is not None and (how := self._behind()) is not None:
            return how
        for i, process in enumerate(self.processes):
            how = process.ending()
            if how is not None:
                which = "" if len(self.processes) == 1 else f"process {i} of "
                return f"{which}the engine {how}"
        return None

    def occupancy(self) -> Occupancy | None:
        """How full it is, asked of its processes, or of the servers that they are clients of; None where one of them
        does not say within a second.
        """
        if self.spec.kind == "http":
            settings = HttpSettings.parse(self.spec.settings)
            return metrics.of_servers(settings.server, [endpoint.url for endpoint in settings.endpoints])
        return gauges.together(gauges.ask(process.socket, _GAUGES_S) for process in self.processes)

    def stop(self, grace_s: float | None = None) -> None:
        """Ends all of its processes; see :meth:`EngineProcess.stop`. May be called again."""
        _stop(self.processes, grace_s)

    def __enter__(self) -> EngineGroup:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()


def start_group(
    members: Sequence[Member],
    *,
    log: Path,
    timeout_s: float,
    lanes: Sequence[Lane] | None = None,
    behind: Callable[[], str | None] | None = None,
) -> EngineGroup:
    """Starts all processes at once and waits until each serves. Unless ``lanes`` say otherwise, each is a replica.

    The first one's standard error is appended to ``log``, that of number n to ``<stem>-n`` beside it. Where one cannot
    be started, all are ended, and its error is raised as :func:`~harness.engines.start.start_engine` does.
    """
    processes: list[EngineProcess] = []
    try:
        for i, member in enumerate(members):
            own_log = log if i == 0 else log.with_name(f"{log.stem}-{i}{log.suffix}")
            processes.append(begin_engine(member.spec, log=own_log, environment=member.environment))
        _await_ready(processes, timeout_s)
        return EngineGroup(processes, lanes_each(len(processes)) if lanes is None else lanes, behind=behind)
    except BaseException:
        _stop(processes)
        raise


def _await_ready(processes: Sequence[EngineProcess], timeout_s: float) -> None:
    """Waits for all at once: the first that fails is told when it fails, whatever the others still do."""
    deadline = time.monotonic() + timeout_s
    waiting = {process.fileno(): process for process in processes}
    while waiting:
        left = max(0.0, deadline - time.monotonic())
        readable = select.select(list(waiting), [], [], left)[0] or list(waiting)
        for descriptor in readable:
            waiting.pop(descriptor).await_ready(max(0.0, deadline - time.monotonic()))


def _stop(processes: Sequence[EngineProcess], grace_s: float | None = None) -> None:
    """Asks all to end before it waits for the first; nothing is left of any, whatever comes in between."""
    for process in processes:
        process.terminate()
    with ExitStack() as stack:
        for process in processes:
            stack.callback(process.stop, grace_s)
