"""What a run is made with: versions, and the fingerprint that legs of one row share."""

from __future__ import annotations

import functools
import importlib.metadata
import platform
from collections.abc import Collection, Mapping
from typing import Any

import harness
from harness.engines.base import EngineInfo
from harness.ledger import Fingerprint
from harness.ledger.hashes import source_sha256
from harness.ledger.record import Machine
from harness.runs.plan import PlannedLeg

LOADGEN = "mlcommons_loadgen"


@functools.cache
def versions() -> dict[str, str]:
    """Versions of the harness (and a hash of its source), Python, LoadGen and NumPy, as installed."""
    found = {"harness": harness.__version__, "harness_source": source_sha256(), "python": platform.python_version()}
    for package in (LOADGEN, "numpy"):
        found[package] = importlib.metadata.version(package)
    return found


OF_THE_ENGINE = ("checkpoint", "engine")
OF_THE_PLACE = ("machine", "dataset", "scenario_dataset")
"""Families of the fingerprint's keys: what only a running engine tells, and what only the place tells that runs."""
OF_THE_CLIENT = "client"
"""The family that runs of the endpoints client have besides."""


def fingerprint(leg: PlannedLeg, engine: EngineInfo, datasets: Mapping[str, str], machine: Machine) -> Fingerprint:
    """What must be equal for legs to make one row: configuration without what the leg alone decides, checkpoint,
    versions, data, machine. Keys that start with ``scenario`` are those that two scenarios may differ in.

    ``datasets`` maps each table of the data set to its sha256; where scenarios have tables of their own, two may differ
    in them.
    """
    checkpoint = engine.checkpoint.sha256 if engine.checkpoint else None
    return Fingerprint.of(
        {
            **_configured(leg),
            **_placed(leg, datasets, machine),
            "checkpoint": checkpoint,
            **flat("engine", engine.versions),
        }
    )


def before_the_engine(leg: PlannedLeg, datasets: Mapping[str, str], machine: Machine) -> Fingerprint:
    """The part of the fingerprint that is known before an engine runs."""
    return Fingerprint.of({**_configured(leg), **_placed(leg, datasets, machine)})


def configured(leg: PlannedLeg) -> Fingerprint:
    """The part of the fingerprint that is known anywhere: configuration, round and versions."""
    return Fingerprint.of(_configured(leg))


def changed(recorded: Fingerprint, asked: Fingerprint, *, but: Collection[str] = ()) -> list[str]:
    """The keys in which a run differs from what is asked for, less those of the families ``but``."""
    return [key for key in recorded.differs_from(asked) if key.split(".")[0] not in but]


def _configured(leg: PlannedLeg) -> dict[str, Any]:
    config = leg.config.model_dump(mode="json")
    scenario = config.pop("scenarios")[leg.scenario]
    del scenario["audit_shares"]  # the audit's alone: it does not set the other legs apart
    shortened_to = config.pop("test_run")
    return {
        "round": leg.pack.round,
        "system": leg.system,
        "benchmark": leg.benchmark,
        "scenario": leg.scenario,
        "test_run": shortened_to if leg.test_run else None,
        **flat("config", config),
        **flat("scenario", scenario),
        **flat("versions", versions()),
    }


def _placed(leg: PlannedLeg, datasets: Mapping[str, str], machine: Machine) -> dict[str, Any]:
    by_scenario = any(scenario.datasets for scenario in leg.rules.scenarios.values())
    return {"machine": machine.identity, **flat("scenario_dataset" if by_scenario else "dataset", datasets)}


def flat(prefix: str, node: Mapping[str, Any]) -> dict[str, Any]:
    """A tree of values as one level: dotted keys below ``prefix``."""
    found: dict[str, Any] = {}
    for key, value in node.items():
        place = f"{prefix}.{key}"
        found.update(flat(place, value) if isinstance(value, dict) else {place: value})
    return found
