"""What a run is made with: versions, and the fingerprint that legs of one row share."""

from __future__ import annotations

import functools
import importlib.metadata
import platform
from collections.abc import Mapping
from typing import Any

import harness
from harness.benchmarks.base import Which
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


def fingerprint(leg: PlannedLeg, engine: EngineInfo, datasets: Mapping[Which, str], machine: Machine) -> Fingerprint:
    """What must be equal for legs to make one row: configuration without what the leg alone decides, checkpoint,
    versions, data, machine. Keys that start with ``scenario`` are those that two scenarios may differ in.

    ``datasets`` maps each table of the data set to its sha256.
    """
    config = leg.config.model_dump(mode="json")
    scenario = config.pop("scenarios")[leg.scenario]
    shortened_to = config.pop("test_run")
    keys: dict[str, Any] = {
        "round": leg.pack.round,
        "system": leg.system,
        "benchmark": leg.benchmark,
        "scenario": leg.scenario,
        "test_run": shortened_to if leg.test_run else None,
        "machine": machine.identity,
        "checkpoint": engine.checkpoint.sha256 if engine.checkpoint else None,
        **_flat("config", config),
        **_flat("scenario", scenario),
        **_flat("engine", dict(engine.versions)),
        **_flat("versions", dict(versions())),
        **_flat("dataset", {str(which): sha256 for which, sha256 in datasets.items()}),
    }
    return Fingerprint.of(keys)


def _flat(prefix: str, node: Mapping[str, Any]) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in node.items():
        place = f"{prefix}.{key}"
        flat.update(_flat(place, value) if isinstance(value, dict) else {place: value})
    return flat
