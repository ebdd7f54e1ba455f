"""What the latencies of a scenario are held against, from the rules of a run's round."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from harness.gate.run_facts import applied
from harness.report.book.content import Limit
from harness.rules import RulePack
from harness.rules.values import Ruled

_P99: Final = 99.0
"""The percentile of all of a round's limits: their names say so."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Of TTFT, TPOT and the whole answer's latency, in ms; None where the round has no such limit."""

    ttft: Limit | None = None
    tpot: Limit | None = None
    latency: Limit | None = None


def limits_of(pack: RulePack | None, benchmark: str, scenario: str) -> Limits:
    """The limits of a scenario; none where the round is not known, or has no rules of it."""
    if pack is None or benchmark not in pack.benchmarks:
        return Limits()
    rules = applied(pack.benchmark(benchmark), scenario)
    if rules is None:
        return Limits()
    return Limits(
        ttft=_limit(rules.ttft_p99_below_ms, inclusive=False),
        tpot=_limit(rules.tpot_p99_below_ms, inclusive=False),
        latency=_limit(rules.latency_p99_at_most_ms, inclusive=True),
    )


def _limit(ruled: Ruled[float] | None, *, inclusive: bool) -> Limit | None:
    return None if ruled is None else Limit(_P99, ruled.value, inclusive, ruled.source)
