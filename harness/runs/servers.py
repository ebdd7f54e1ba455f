"""The servers that answer a benchmark's legs: started here, started before, or somebody else's; in each case asked
what they are before anything is measured.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from harness.benchmarks.gpt_oss_120b import vocab
from harness.config.engines import HttpEngine
from harness.engines.base import EngineInfo
from harness.engines.launch import probe, weights
from harness.engines.launch.fleet import Fleet, running
from harness.engines.launch.plan import ServerPlan
from harness.engines.launch.planning import Surroundings, plan_servers
from harness.engines.metrics import of_servers
from harness.env import TIKTOKEN_ENCODINGS_BASE, cache_dir
from harness.errors import ConfigError, MissingError
from harness.events import Note, Observer, Occupancy
from harness.rules import engine_keys
from harness.runs.server_state import RunningServers, read_state

STAND_IN: Final = "stand-in checkpoint"
UNSEEN: Final = "the checkpoint cannot be seen from here: what is served has no hash"
_PRODUCTS: Final = {"torch": "harness serve"}
"""Servers whose version is that of something else than their name says."""
_PARALLEL: Final[tuple[engine_keys.MeaningName, ...]] = ("tensor", "pipeline", "context", "data")


@dataclass(frozen=True, slots=True)
class Serving:
    """Servers that answer: ``endpoints`` are (name, base URL) by replica, all with the model ``model``.

    ``fleet`` are those that were started for this, None where they ran before.
    """

    server: str
    model: str
    endpoints: tuple[tuple[str, str], ...]
    info: EngineInfo
    fleet: Fleet | None = None
    ending: Callable[[], str | None] = lambda: None
    """Which server ended and how, with the end of its log; None while all run. Never waits.

    Of servers at ``engine.endpoints`` nothing is known but what their connections tell.
    """

    def occupancy(self) -> Occupancy | None:
        """How full they are together, as their ``/metrics`` say; None where one of them does not within a second."""
        return of_servers(self.server, [url for _, url in self.endpoints])


@contextmanager
def serving(engine: HttpEngine, *, name: str, folder: Path, observer: Observer) -> Iterator[Serving]:
    """Servers for ``engine``, healthy and found to be what it says; those started here end with the block.

    ``name`` is whom they serve, for people; logs and option files go to ``folder``. Servers at ``engine.endpoints``
    are only asked. So are those that ``run_llm_server`` runs for ``folder`` with the same configuration; with another
    one it is a MissingError. Otherwise one server a replica is started.

    Raises ConfigError (a server is not what was asked for), MissingError (no server, port in use, no program),
    EngineDied (ended or not healthy in time, with the end of its log).
    """
    if engine.endpoints:
        observer(Note(f"{name}: asking the {engine.server} servers at {', '.join(engine.endpoints)}"))
        yield _serving(engine, _named(engine.endpoints), observer)
        return
    state = read_state(folder)
    if state is not None:
        _check_same(state, engine, folder)
        observer(Note(f"{name}: the servers that run_llm_server (process {state.starter}) started are used"))
        endpoints = tuple((server.name, server.url) for server in state.servers)
        yield dataclasses.replace(_serving(engine, endpoints, observer), ending=state.ending)
        return
    plans = server_plans(engine, folder, make=True)
    _check_weights(engine, observer)
    with running(plans, ready_s=engine.launch.ready_s, observer=observer) as fleet:
        found = _serving(engine, tuple((plan.name, plan.url) for plan in plans), observer, model=plans[0].model)
        yield dataclasses.replace(found, fleet=fleet, ending=fleet.ending)


def server_plans(engine: HttpEngine, folder: Path, *, make: bool) -> list[ServerPlan]:
    """What would be started, one plan a replica. ``make`` makes a stand-in checkpoint that is not there yet."""
    around = Surroundings(
        gpus_each=gpus_each(engine),
        checkpoint=weights.made(engine.checkpoint) if make else weights.folder_of(engine.checkpoint),
        folder=folder.absolute(),
        caches=cache_dir() / "servers",
        vocabulary=_vocabulary(make),
    )
    return plan_servers(engine, around)


def http_settings(serving: Serving, engine: HttpEngine) -> dict[str, object]:
    """The settings of an engine spec of kind ``http`` that asks these servers."""
    return {
        "server": serving.server,
        "model": serving.model,
        "endpoints": [{"name": name, "url": url} for name, url in serving.endpoints],
        "connections": engine.clients.connections,
        "request_timeout_s": engine.clients.request_timeout_s,
        "info": dataclasses.asdict(serving.info),
    }


def digest_of(engine: HttpEngine) -> str:
    """SHA-256 of what decides how servers are started; how they are asked (``clients``) does not count."""
    content = engine.model_dump(mode="json", exclude={"clients", "endpoints"})
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def gpus_each(engine: HttpEngine) -> int:
    """GPUs that one replica takes: the product of all ways in which it is parallel; none for server torch."""
    if engine.server == "torch":
        return 0
    return math.prod(_number(engine, name) or 1 for name in _PARALLEL)


def _check_weights(engine: HttpEngine, observer: Observer) -> None:
    """Before a server takes minutes to say the same. In a container the path may be one that is not seen here."""
    if weights.described(engine.checkpoint, observer) is None and not engine.launch.prefix:
        raise MissingError(
            "there is no such checkpoint",
            where=weights.folder_of(engine.checkpoint),
            mend="fetch it, or mend engine.checkpoint.path",
        )


def _vocabulary(make: bool) -> Path | None:
    """Where o200k_base.tiktoken lies: a server of gpt-oss would fetch it. None where there is none to hand on."""
    stated = TIKTOKEN_ENCODINGS_BASE.path()
    if stated is not None or not make:
        return stated or cache_dir() / "vocab"
    try:
        return vocab.find()
    except MissingError:
        return None


def _serving(
    engine: HttpEngine, endpoints: tuple[tuple[str, str], ...], observer: Observer, model: str | None = None
) -> Serving:
    told = [probe.ask(engine.server, url) for _, url in endpoints]
    options = {} if engine.server == "torch" else engine.options
    stated = _number(engine, "max_total_tokens")
    probe.check(told, probe.Asked(engine.version, model, stated, options))
    served = model or next(iter(told[0].models), None)
    if served is None:
        raise ConfigError("the server does not say which model it serves", where=told[0].url, expected="/v1/models")
    return Serving(engine.server, served, endpoints, _info(engine, endpoints, told, observer))


def _info(
    engine: HttpEngine, endpoints: Sequence[tuple[str, str]], told: Sequence[probe.Told], observer: Observer
) -> EngineInfo:
    folder = weights.folder_of(engine.checkpoint)
    checkpoint = weights.described(engine.checkpoint, observer)
    reasons = [UNSEEN] if checkpoint is None else [STAND_IN] if checkpoint.stand_in else []
    return EngineInfo(
        kind="http",
        vocab_size=weights.config_number(folder, "vocab_size") or 0,
        max_total_tokens=_max_total_tokens(engine, told[0], folder),
        slots=(_number(engine, "max_batch") or engine.clients.connections) * engine.replicas,
        checkpoint=checkpoint,
        versions={_PRODUCTS.get(engine.server, engine.server): told[0].version or "not told"},
        settings={
            "server": engine.server,
            "replicas": engine.replicas,
            "options": engine.options,
            "told": _noted(told[0], engine),
        },
        not_submittable=tuple(reasons),
        replicas=tuple(name for name, _ in endpoints),
    )


def _noted(told: probe.Told, engine: HttpEngine) -> dict[str, object]:
    """What is kept of a server's own account: the options that were asked for, and the size of its cache."""
    asked = {key.replace("-", "_") for key in engine.options}
    return {key: value for key, value in told.settings.items() if key in asked or key.startswith("kv_cache_")}


def _max_total_tokens(engine: HttpEngine, told: probe.Told, folder: Path) -> int:
    for found in (
        told.max_total_tokens,
        _number(engine, "max_total_tokens"),
        weights.config_number(folder, "max_position_embeddings"),
    ):
        if found is not None:
            return found
    raise ConfigError(
        "nothing says how many tokens prompt and answer may have together",
        where="engine.options",
        mend="state it (max_seq_len, max_model_len or context-length, as the server calls it)",
    )


def _check_same(state: RunningServers, engine: HttpEngine, folder: Path) -> None:
    if state.digest != digest_of(engine):
        raise MissingError(
            f"run_llm_server (process {state.starter}) serves another configuration than this one",
            where=folder,
            expected="the servers of this scenario's engine",
            mend="end it (^C) and let run_harness start them, or start run_llm_server with --scenarios of these legs",
        )


def _named(urls: Sequence[str]) -> tuple[tuple[str, str], ...]:
    return tuple((str(i), url.rstrip("/")) for i, url in enumerate(urls))


def _number(engine: HttpEngine, meaning: engine_keys.MeaningName) -> int | None:
    """A whole number that the options say or the server takes for one unsaid, by what it means; None for no number."""
    found = engine_keys.load_or_older(engine.server, engine.version).meaning(engine.options, meaning)
    return found if isinstance(found, int) and not isinstance(found, bool) else None
