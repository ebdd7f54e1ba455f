"""Which weights a run served: as its engine told it, or as they were configured where nobody could look at them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.ledger.record import RunRecord


def served_weights(record: RunRecord) -> Mapping[str, Any]:
    """``name``, ``sha256``, ``weight_data_type``, ``stand_in``, as far as told; empty of an engine without weights."""
    return record.engine.checkpoint or configured_weights(record)


def configured_weights(record: RunRecord) -> Mapping[str, Any]:
    """The published checkpoint that the run's configuration names; empty where it names none."""
    scenarios = record.config.get("scenarios")
    own = scenarios.get(record.id.scenario) if isinstance(scenarios, Mapping) else None
    engine = (own.get("engine") if isinstance(own, Mapping) else None) or record.config.get("engine")
    checkpoint = engine.get("checkpoint") if isinstance(engine, Mapping) else None
    return checkpoint if isinstance(checkpoint, Mapping) and "name" in checkpoint else {}
