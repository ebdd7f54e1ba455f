"""How many samples LoadGen will issue in a leg, calculated as LoadGen does from what user.conf tells it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from harness.clients.loadgen import user_conf
from harness.gate.run_facts import ACCURACY
from harness.ledger.record import Rate
from harness.ledger.sizes import Known
from harness.runs.leg_settings import asked_rows, loadgen_settings
from harness.runs.plan import PlannedLeg

_MS_PER_S: Final = 1000
OFFLINE_SLACK: Final = 1.1
"""LoadGen's, so that a run is longer than it must be (loadgen/test_settings_internal.cc, kSlack)."""
_LEAST_QUERIES: Final = 100
"""LoadGen's, where no configuration says another number (loadgen/test_settings.h, min_query_count)."""
_READY: Final = 2
"""Where the engine's speed decides, LoadGen makes ready so many times what is expected (loadgen/loadgen.cc)."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What LoadGen is told: seconds a run must last (0: it is over with its samples), the fewest queries, what it makes
    ready (None: no limit).
    """

    least_s: float
    least: int
    ready: int | None = None


def asked(leg: PlannedLeg, rows: int, rate: Known) -> Asked:
    """The demands of a performance leg over a data set of so many rows."""
    whole = rows == leg.rules.rows(leg.which, leg.scenario) or leg.of_trajectories
    settings = loadgen_settings(
        leg, Rate(target_qps=rate.value, origin=rate.origin), rows, whole=whole, trajectories=leg.of_trajectories
    )
    told = {setting.key: float(setting.value) for setting in user_conf.parse(settings.conf)}
    least_s = told.get("min_duration", leg.pack.min_duration_ms.value) / _MS_PER_S
    least = _padded(leg, int(told.get("min_query_count", _LEAST_QUERIES)), settings.rows)
    if leg.scenario_rules.loadgen_scenario.value != "SingleStream":
        return Asked(least_s, least)
    ready = math.ceil(_READY * least_s * _MS_PER_S / told["target_latency"])
    return Asked(least_s, least, max(ready, least))


def issued(leg: PlannedLeg, rows: int, rate: Known | None, answers: Known | None) -> int | None:
    """Samples of a leg; None where they follow from a rate that nobody knows.

    Server's arrivals are random, and their mean is what is counted: near a whole pass LoadGen may ask one more or less.
    """
    if leg.audit_rules is not None:
        return leg.audit_rules.rows.value
    if leg.leg == ACCURACY:
        return asked_rows(leg, rows)
    if rate is None:
        return None
    demands = asked(leg, rows, rate)
    scenario = leg.scenario_rules.loadgen_scenario.value
    if scenario == "Offline":
        expected = int(OFFLINE_SLACK * demands.least_s * rate.value)
        return _padded(leg, max(demands.least, expected), asked_rows(leg, rows))
    if scenario == "Server":
        return _padded(leg, max(demands.least, round(demands.least_s * rate.value)), asked_rows(leg, rows))
    if answers is None or demands.ready is None:
        return None
    return min(max(demands.least, math.ceil(demands.least_s * answers.value)), demands.ready)


def _padded(leg: PlannedLeg, queries: int, rows: int) -> int:
    """Whole passes over the loaded rows, where the benchmark is asked in such."""
    whole = leg.rules.sample_concatenate_permutation
    return queries if whole is None or not whole.value else math.ceil(queries / rows) * rows
