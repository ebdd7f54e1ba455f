"""The runs that a search asks for, as legs: short ones that are marked as probes, and ones of full length."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Final

from harness.config.models import TestRun
from harness.rules import early_stopping
from harness.runs.leg_settings import asked_rows
from harness.runs.plan import PlannedLeg, ProbeOf
from harness.runs.search.limits import PERCENTILE
from harness.runs.search.reading import FILLING

VERB: Final = "find_target_qps"
_MS_PER_S: Final = 1000
_AT_LEAST: Final = 0.8
"""LoadGen's arrivals are random: the count of a probe ends it, so the duration that is asked for is a bit less."""


@dataclass(frozen=True, slots=True)
class Size:
    """What a short run is shortened to: ``queries`` over the first ``rows`` of the data set, each equally often."""

    queries: int
    rows: int
    min_duration_ms: int

    @classmethod
    def of(cls, rate: float, seconds: float, dataset_rows: int) -> Size:
        """A run of about ``seconds`` at a rate; never of so few queries that nothing could be said of them."""
        queries = max(math.ceil(rate * seconds), fewest_queries())
        passes = math.ceil(queries / dataset_rows)
        rows = math.ceil(queries / passes)
        return cls(passes * rows, rows, max(1, int(_AT_LEAST * _MS_PER_S * queries / rate)))

    @classmethod
    def of_offline(cls, rate: float, seconds: float, dataset_rows: int) -> Size:
        """A run of Offline of what a rate would answer in ``seconds``: a part of the data set, all of it, or more."""
        samples = max(1, math.ceil(rate * seconds))
        # LoadGen asks a tenth more than its duration asks for, and pads to whole passes over the rows.
        return cls(samples, min(samples, dataset_rows), max(1, int(_AT_LEAST * _MS_PER_S * seconds)))


def fewest_queries() -> int:
    """Queries of a probe of which, once its beginning is left out, early stopping could say yes."""
    return math.ceil(early_stopping.min_queries(0, PERCENTILE) / (1 - FILLING))


def probe_leg(leg: PlannedLeg, rate: float, size: Size, probe: ProbeOf) -> PlannedLeg:
    """A short performance leg at a rate. What the round fixes stays, but for count and duration."""
    short = TestRun(
        performance_samples=size.rows,
        accuracy_samples=size.rows,
        min_duration_ms=size.min_duration_ms,
        server_queries=size.queries,
    )
    return _at(
        leg, rate, test_run=True, probe=probe, rate_from=f"probe {probe.number} of {VERB} {probe.search}", short=short
    )


def full_leg(leg: PlannedLeg, rate: float, search: str) -> PlannedLeg:
    """The row's own performance leg at a rate, as it will be once the configuration says so."""
    return _at(leg, rate, test_run=leg.test_run, probe=None, rate_from=f"{VERB} {search}", short=leg.config.test_run)


def full_queries(leg: PlannedLeg, rate: float, dataset_rows: int) -> int:
    """Queries of a Server run of the leg at a rate: as long as it must last, and whole passes over the data set."""
    rows = asked_rows(leg, dataset_rows)
    chosen, ruled = leg.config.scenarios[leg.scenario].min_query_count, leg.scenario_rules.min_query_count
    least = leg.config.test_run.server_queries if leg.test_run else chosen or (ruled.value if ruled else 1)
    return max(math.ceil(rate * full_seconds(leg)), rows * math.ceil(least / rows))


def full_seconds(leg: PlannedLeg) -> float:
    """What a run of the leg must last."""
    if leg.test_run:
        return leg.config.test_run.min_duration_ms / _MS_PER_S
    chosen = leg.config.scenarios[leg.scenario].min_duration_ms
    return (chosen or leg.pack.min_duration_ms.value) / _MS_PER_S


def _at(
    leg: PlannedLeg, rate: float, *, test_run: bool, probe: ProbeOf | None, rate_from: str, short: TestRun
) -> PlannedLeg:
    own = leg.config.scenarios[leg.scenario].model_copy(update={"target_qps": rate})
    config = leg.config.model_copy(update={"scenarios": {**leg.config.scenarios, leg.scenario: own}, "test_run": short})
    return dataclasses.replace(leg, config=config, test_run=test_run, probe=probe, rate_from=rate_from)
