"""Keeps the servers of a configuration running until they are told to end, for legs that come and go beside them."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from harness.config.engines import HttpEngine
from harness.errors import ConfigError, EngineDied, InUseError
from harness.events import Note, Observer
from harness.runs.plan import PlannedLeg
from harness.runs.server_state import read_state, state_of
from harness.runs.servers import Serving, digest_of, server_plans, serving

LOOK_S: Final = 0.5


@dataclass(frozen=True, slots=True)
class Target:
    """What is served: the one engine of some legs, and whose it is. ``notes`` are what the plan calculated of it."""

    system: str
    benchmark: str
    engine: HttpEngine
    notes: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """For people: ``system/benchmark``."""
        return f"{self.system}/{self.benchmark}"

    def folder(self, results: Path) -> Path:
        """Where logs, option files and servers.json lie; a ``run_harness`` beside it looks there."""
        return results / self.system / self.benchmark


def target_of(legs: Sequence[PlannedLeg]) -> Target:
    """The engine that all of these legs share.

    ConfigError where they have several (they would take each other's GPUs and ports), or one that is no server.
    """
    names = list(dict.fromkeys((leg.system, leg.benchmark) for leg in legs))
    if len(names) > 1:
        raise ConfigError(
            "servers of one benchmark on one system run at a time, these are several",
            expected="one of " + ", ".join("/".join(name) for name in names),
            mend="add --systems=… and --benchmarks=…",
        )
    scenarios = list(dict.fromkeys(leg.scenario for leg in legs))
    first = legs[0]
    others = [leg.scenario for leg in legs if leg.engine != first.engine]
    if others:
        raise ConfigError(
            f"{first.scenario} and {others[0]} have engines of their own",
            where=f"systems/{first.system}/{first.benchmark}.yaml",
            mend=f"add --scenarios=… with those that share one (there are {', '.join(scenarios)})",
        )
    if not isinstance(first.engine, HttpEngine):
        raise ConfigError(
            f"an engine of kind {first.engine.kind} is no server: run_harness starts it itself",
            where=f"systems/{first.system}/{first.benchmark}.yaml: engine",
            expected="an engine of kind http",
        )
    if first.engine.endpoints:
        raise ConfigError(
            f"these servers are somebody else's: {', '.join(first.engine.endpoints)}",
            where=f"systems/{first.system}/{first.benchmark}.yaml: engine.endpoints",
            mend="remove endpoints to have them started here",
        )
    notes = tuple(dict.fromkeys(note for leg in legs for note in _notes(leg)))
    return Target(first.system, first.benchmark, first.engine, notes)


def _notes(leg: PlannedLeg) -> tuple[str, ...]:
    if leg.stands_in_for is None:
        return leg.engine_notes
    return (f"servers on the CPU stand in for {leg.stands_in_for}: never submittable",)


def commands(target: Target, results: Path) -> str:
    """What :func:`keep_serving` would start, as a person would type it. Nothing is made, started or asked."""
    plans = server_plans(target.engine, target.folder(results), make=False)
    return "\n".join([*(f"# {line}" for line in target.notes), *(plan.text() for plan in plans)]).rstrip("\n")


def keep_serving(target: Target, results: Path, *, observer: Observer, tell: Callable[[Serving], None]) -> None:
    """Starts the servers, calls ``tell`` once all are healthy, and stays until ^C, which ends it in peace.

    Whatever ends it ends the servers. EngineDied names one that ended by itself; ^C before all are healthy goes on up.
    """
    folder = target.folder(results)
    folder.mkdir(parents=True, exist_ok=True)
    held = read_state(folder)
    if held is not None:
        raise InUseError(
            f"run_llm_server (process {held.starter}) keeps servers running here already",
            where=folder,
            mend="end it (^C), or use it",
        )
    for line in target.notes:
        observer(Note(line))
    with serving(target.engine, name=target.name, folder=folder, observer=observer) as up:
        if up.fleet is None:
            raise ValueError("servers that were not started here")
        try:
            with state_of(folder, digest_of(target.engine), up.endpoints, up.fleet.pids):
                tell(up)
                _watch(up)
        except KeyboardInterrupt:
            observer(Note("ending the servers"))


def _watch(up: Serving) -> None:
    while (ended := up.ending()) is None:
        time.sleep(LOOK_S)
    raise EngineDied(ended, mend="find in its log why; the others have been ended too")
