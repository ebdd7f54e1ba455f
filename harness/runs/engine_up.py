"""The engine of some legs, from its configuration to processes that serve, and to nothing of it left."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from harness.benchmarks.base import Benchmark
from harness.config.models import Engine, HttpEngine, TrtllmEngine
from harness.engines.address import Lane, lanes_before, lanes_each
from harness.engines.group import EngineGroup, Member, start_group
from harness.engines.remote import RemoteEngine
from harness.engines.replicas import ReplicasEngine
from harness.engines.start import EngineSpec
from harness.errors import EngineDied, RunBroke
from harness.events import Note, Observer
from harness.runs.engine_spec import engine_spec, trtllm_members
from harness.runs.tables import Asked

ENGINE_LOG: Final = "engine.log"
"""The log of the engine of a system and benchmark, in the folder that holds their scenarios."""

_START_S: Final = 600.0
_ENDING_S: Final = 8.0
_LOOK_S: Final = 0.02
_LOAD_S: Final = 3600.0
"""How long weights of hundreds of gigabytes may take."""


@contextmanager
def engine_up(
    config: Engine,
    benchmark: Benchmark,
    tables: Sequence[Asked],
    *,
    name: str,
    work: Path,
    observer: Observer,
) -> Iterator[EngineGroup]:
    """A running engine; all that was started for it ends with the block. Logs go to ``work``.

    ``name`` is what it is for, for people; ``tables`` are what it may be asked. Raises what starting an engine or
    servers raises: ConfigError, MissingError, EngineDied.
    """
    log = work / ENGINE_LOG
    if isinstance(config, HttpEngine):
        with _over_http(config, name, work, observer) as group:
            yield group
        return
    if isinstance(config, TrtllmEngine):
        members, timeout_s = trtllm_members(config), _LOAD_S
    else:
        members, timeout_s = [Member(engine_spec(config, benchmark, tables, work))], _START_S
    with start_group(members, log=log, timeout_s=timeout_s, lanes=lanes_each(len(members))) as group:
        yield group


@contextmanager
def asked(engine: EngineGroup) -> Iterator[RemoteEngine | ReplicasEngine]:
    """A client of the engine, from outside a run. What breaks is told with what of the engine has ended, and how."""
    client = engine.connect()
    try:
        yield client
    except RunBroke as error:
        how = ending_of(engine) if isinstance(error, EngineDied) else engine.ending()
        mend = error.mend or f"see {', '.join(map(str, engine.logs))}, and what the server logs"
        told = error.what if how is None else f"{how}\n  what was seen: {error.what}"
        raise type(error)(told, where=error.where, expected=error.expected, mend=mend) from None
    finally:
        client.close()


def ending_of(engine: EngineGroup) -> str | None:
    """What of an engine that died has ended: sockets close before processes have, and who watches a server first ends
    what it has left behind.
    """
    deadline = time.monotonic() + _ENDING_S
    while (how := engine.ending()) is None and time.monotonic() < deadline:
        time.sleep(_LOOK_S)
    return how


@contextmanager
def _over_http(config: HttpEngine, name: str, work: Path, observer: Observer) -> Iterator[EngineGroup]:
    """Client processes before servers, which were started for them or ran before."""
    from harness.runs.servers import http_settings, serving

    with serving(config, name=name, folder=work, observer=observer) as servers:
        lanes = lanes_before(config.replicas, config.clients.processes)
        members = http_members(http_settings(servers, config), lanes)
        answering = "1 replica answers" if config.replicas == 1 else f"{config.replicas} replicas answer"
        observer(Note(f"{name}: {answering}; client processes: {len(members)}"))
        log = work / ENGINE_LOG
        with start_group(members, log=log, timeout_s=_START_S, lanes=lanes, behind=servers.ending) as group:
            yield group


def http_members(settings: Mapping[str, object], lanes: Sequence[Lane]) -> list[Member]:
    """The client processes of these lanes. ``connections`` of the settings are for a replica, over all processes."""
    connections = settings["connections"]
    if not isinstance(connections, int):
        raise ValueError(f"connections: {connections!r}")
    lanes_to_one = sum(lane.replica == 0 for lane in lanes)
    each = -(-connections // lanes_to_one)
    processes = max(lane.process for lane in lanes) + 1
    return [
        Member(EngineSpec("http", {**settings, "connections": each, "stream": process})) for process in range(processes)
    ]
