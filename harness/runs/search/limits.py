"""The latencies that a round limits in a scenario, and how sure early stopping wants to be of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from harness.rules import ScenarioRules
from harness.rules.values import Ruled

TTFT: Final = "TTFT"
TPOT: Final = "TPOT"
LATENCY: Final = "latency"
PERCENTILE: Final = 0.99
"""That of the rule pack's ``*_p99_*``."""
_NS_PER_MS: Final = 1e6


@dataclass(frozen=True, slots=True)
class Limit:
    """What 99 of 100 answers must keep: ``name`` is TTFT, TPOT or latency. ``strict``: below it, not at it."""

    name: str
    limit_ns: float
    strict: bool

    def __post_init__(self) -> None:
        if self.name not in (TTFT, TPOT, LATENCY) or self.limit_ns <= 0:
            raise ValueError(f"a limit of {self.name} of {self.limit_ns} ns")


def limits_of(rules: ScenarioRules) -> tuple[Limit, ...]:
    """The limits of a scenario in the order in which they are told; none where the round limits nothing."""
    ruled: tuple[tuple[str, Ruled[float] | None, bool], ...] = (
        (TTFT, rules.ttft_p99_below_ms, True),
        (TPOT, rules.tpot_p99_below_ms, True),
        (LATENCY, rules.latency_p99_at_most_ms, False),
    )
    return tuple(Limit(name, at.value * _NS_PER_MS, strict) for name, at, strict in ruled if at is not None)
