"""What configurations ask of the machine that runs them: accelerators, connections, ports, packages."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from harness.config import BenchmarkFile, Project
from harness.config.engine_subject import Checked, Subject, keys_of
from harness.config.engines import Clients, HttpEngine, ServedCheckpoint, TorchEngine, TrtllmEngine
from harness.config.memory import capacity_bytes
from harness.config.models import Engine, SystemFile
from harness.errors import ConfigError, UnknownName
from harness.rules import RulePack, TrajectoryRules
from harness.rules.models import find

CONNECTING_AT_ONCE: Final = 128
"""Connections to one server that the HTTP client has under way at once (harness.engines.http.pool)."""
SPARE_DESCRIPTORS: Final = 64
"""Open files that it keeps for other things (harness.engines.http.settings)."""
_HERE: Final = frozenset({"127.0.0.1", "localhost", "::1", "0.0.0.0", "::"})  # noqa: S104 - compared with
_EXTRA_OF: Final = {"gpt-oss-120b": "gpt-oss", "qwen3-vl-235b-a22b": "qwen3-vl"}
"""The extra of setup.py that a benchmark's tokenizer or pictures come with."""


@dataclass(frozen=True, slots=True)
class Server:
    """A program that is to be found here: ``words`` start it, ``prefix`` (a container's words) stand before them."""

    kind: str
    version: str | None
    prefix: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Need:
    """What one scenario asks of this machine; ``name`` is ``system/benchmark/scenario``.

    ``gpus`` are on this node, ``gpus_each`` of them under one replica; 0 for engines on processors. ``connections``
    are to one server, ``descriptors`` in one process of the client. ``ports`` are those that servers listen on here.
    ``wait_s`` is how long a connection may be silent. ``elsewhere`` are servers' hosts that are not this one.
    ``checkpoint`` is where the weights must lie for an engine that is started here, ``tensor_bytes`` their size.
    """

    name: str
    gpus: int = 0
    gpus_each: int = 0
    gpu_bytes: int | None = None
    connections: int = 0
    descriptors: int = 0
    ports: tuple[int, ...] = ()
    wait_s: float = 0.0
    elsewhere: tuple[str, ...] = ()
    server: Server | None = None
    extras: tuple[str, ...] = ()
    checkpoint: Path | None = None
    tensor_bytes: int | None = None
    trajectories: bool = False
    corrected: bool = False
    """Whether the rule on error correction holds for an entry of it."""


@dataclass(frozen=True, slots=True)
class Needs:
    """All that the named configurations ask; of several the most. Empty where none was named."""

    every: tuple[Need, ...] = ()
    round: RulePack | None = None

    @property
    def named(self) -> str:
        """For people: what was named, or that nothing was."""
        systems: dict[str, list[str]] = {}
        for need in self.every:
            system, benchmark, _ = need.name.split("/")
            if benchmark not in systems.setdefault(system, []):
                systems[system].append(benchmark)
        named = ", ".join(f"{system} ({', '.join(benchmarks)})" for system, benchmarks in systems.items())
        return named or "no configuration (name one with --systems)"

    @property
    def benchmarks(self) -> tuple[str, ...]:
        """The benchmarks that are to run."""
        return tuple(dict.fromkeys(need.name.split("/")[1] for need in self.every))

    @property
    def gpus(self) -> int:
        """Accelerators on this node."""
        return max((need.gpus for need in self.every), default=0)

    @property
    def gpus_each(self) -> int:
        """Accelerators that work together on one model."""
        return max((need.gpus_each for need in self.every), default=0)

    @property
    def gpu_bytes(self) -> int | None:
        """Memory of one accelerator, as the system says."""
        return max((need.gpu_bytes for need in self.every if need.gpu_bytes), default=None)

    @property
    def connections(self) -> int:
        """Connections to one server; the default of a configuration where none is named."""
        return max((need.connections for need in self.every), default=Clients().connections)

    @property
    def descriptors(self) -> int:
        """Open files of one process."""
        default = Clients().connections + SPARE_DESCRIPTORS
        return max((need.descriptors for need in self.every), default=default)

    @property
    def ports(self) -> tuple[int, ...]:
        """Ports that servers are to listen on here."""
        return tuple(sorted({port for need in self.every for port in need.ports}))

    @property
    def elsewhere(self) -> tuple[str, ...]:
        """Hosts of servers that run elsewhere."""
        return tuple(sorted({host for need in self.every for host in need.elsewhere}))

    @property
    def wait_s(self) -> float:
        """How long a connection may be silent."""
        return max((need.wait_s for need in self.every), default=0.0)

    @property
    def corrected(self) -> bool:
        """Whether the rule on error correction holds for one of them."""
        return any(need.corrected for need in self.every)

    @property
    def servers(self) -> tuple[Server, ...]:
        """Programs that are to be found here."""
        return tuple(dict.fromkeys(need.server for need in self.every if need.server is not None))

    @property
    def extras(self) -> tuple[str, ...]:
        """Extras of the harness that must be installed."""
        return tuple(dict.fromkeys(extra for need in self.every for extra in need.extras))


def needs_of(
    project: Project, systems: Sequence[str], benchmarks: Sequence[str], pack: RulePack, variant: str | None = None
) -> Needs:
    """What the named systems and benchmarks ask; of a system without benchmarks all that it has.

    Raises UnknownName, and ConfigError for a benchmark without a system, or for what the files say wrongly.
    """
    if benchmarks and not systems:
        raise ConfigError(
            "which system is this machine to be?",
            expected="one of " + ", ".join(project.system_names()),
            mend="add --systems=<system>",
        )
    found: list[Need] = []
    for system in systems:
        machine, known = project.system(system), project.benchmark_names(system)
        for benchmark in benchmarks or known:
            if benchmark not in known:
                raise UnknownName("benchmark", benchmark, known, where=project.systems / system)
            found += _of_benchmark(project, system, machine, benchmark, pack, variant)
    return Needs(tuple(found), pack)


def _of_benchmark(
    project: Project, system: str, machine: SystemFile, benchmark: str, pack: RulePack, variant: str | None
) -> Iterator[Need]:
    file = project.benchmark(system, benchmark, variant)
    corrected = _corrected(project, system, benchmark, pack)
    for scenario in file.scenarios:
        engine = file.engine_of(scenario)
        each = _gpus_each(engine, Subject(system, scenario, machine, pack.benchmark(benchmark), file.output_caps))
        replicas = engine.replicas if isinstance(engine, HttpEngine | TrtllmEngine) else 1
        name = f"{system}/{benchmark}/{scenario}"
        weights, size = _weights(engine)
        common = Need(
            name,
            checkpoint=weights,
            tensor_bytes=size,
            extras=_extras(benchmark, engine),
            trajectories=isinstance(pack.benchmark(benchmark), TrajectoryRules),
            corrected=corrected,
        )
        if isinstance(engine, HttpEngine):
            yield _of_servers(common, engine, each, file, machine)
        else:
            yield replace(
                common,
                gpus=_on_this_node(each * replicas, machine),
                gpus_each=each,
                gpu_bytes=_capacity(machine) if each else None,
                server=Server("trtllm", engine.version) if isinstance(engine, TrtllmEngine) else None,
            )


def _of_servers(common: Need, engine: HttpEngine, each: int, file: BenchmarkFile, machine: SystemFile) -> Need:
    hosts = [urlsplit(url).hostname or "" for url in engine.endpoints]
    elsewhere = tuple(sorted({host for host in hosts if host not in _HERE}))
    started = not engine.endpoints
    return replace(
        common,
        gpus=0 if elsewhere else _on_this_node(each * engine.replicas, machine),
        gpus_each=0 if elsewhere else each,
        gpu_bytes=_capacity(machine) if each and not elsewhere else None,
        connections=engine.clients.connections,
        descriptors=_descriptors(engine),
        ports=tuple(range(engine.launch.port, engine.launch.port + engine.replicas)) if started else (),
        wait_s=engine.clients.request_timeout_s or file.watchdog_s,
        elsewhere=elsewhere,
        server=Server(engine.server, engine.version, tuple(engine.launch.prefix)) if started and each else None,
    )


def _descriptors(engine: HttpEngine) -> int:
    """Of the process that opens most: each of the client's has some replicas, or some of the connections of one."""
    clients = engine.clients
    share = clients.connections * engine.replicas / clients.processes
    return math.ceil(max(share, clients.connections if clients.processes <= engine.replicas else 0)) + SPARE_DESCRIPTORS


def _gpus_each(engine: Engine, subject: Subject) -> int:
    """Accelerators under one replica; 0 where the engine knows no such thing."""
    if not isinstance(engine, HttpEngine | TrtllmEngine):
        return 0
    checked = Checked(engine, keys_of(engine), subject)
    return 0 if checked.keys.key_of("tensor") is None else checked.gpus_each


def _on_this_node(gpus: int, machine: SystemFile) -> int:
    return math.ceil(gpus / (machine.number_of_nodes or 1))


def _capacity(machine: SystemFile) -> int | None:
    said = machine.accelerator_memory_capacity
    return None if said is None else capacity_bytes(said)


def _extras(benchmark: str, engine: Engine) -> tuple[str, ...]:
    computes_here = isinstance(engine, TorchEngine) or (isinstance(engine, HttpEngine) and engine.server == "torch")
    own = _EXTRA_OF.get(benchmark)
    return (*(("torch",) if computes_here else ()), *((own,) if own else ()))


def _weights(engine: Engine) -> tuple[Path | None, int | None]:
    """Where they must lie before the engine can be started here, and their published size; None for what is made."""
    checkpoint = getattr(engine, "checkpoint", None)
    if isinstance(engine, HttpEngine) and engine.endpoints:
        return None, None
    if isinstance(checkpoint, Path):
        return checkpoint, None
    if not isinstance(checkpoint, ServedCheckpoint):
        return None, None
    facts = find(checkpoint.name)
    return checkpoint.path.expanduser(), None if facts is None else facts.checkpoints[checkpoint.name].tensor_bytes


def _corrected(project: Project, system: str, benchmark: str, pack: RulePack) -> bool:
    """Whether an entry of it is one for which memory must correct its errors."""
    if not (project.root / "submission.yaml").is_file():
        return False
    rule = pack.error_correction.value
    return any(
        rule.holds(entry.division, entry.category)
        for entry in project.submission().entries
        if (entry.system, entry.benchmark) == (system, benchmark)
    )
