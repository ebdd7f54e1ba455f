"""What a record keeps of what ran, in the ledger's words."""

from __future__ import annotations

import dataclasses

from harness.engines.base import EngineInfo
from harness.ledger.record import EngineEcho


def engine_echo(info: EngineInfo) -> EngineEcho:
    """What the engine said of itself once it was up."""
    return EngineEcho(
        kind=info.kind,
        versions=dict(info.versions),
        settings=dict(info.settings),
        checkpoint=None if info.checkpoint is None else dataclasses.asdict(info.checkpoint),
        slots=info.slots,
        max_total_tokens=info.max_total_tokens,
        replicas=list(info.replicas),
    )
