"""Legs sized before they run: how many samples, how long, what they need, and why they could not be VALID."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Final

from harness.gate.run_facts import PERFORMANCE
from harness.ledger import ResultsStore
from harness.ledger.sizes import AtShare, Known, LegSize, MatrixSize, Stopping
from harness.rules import TokenRules, TrajectoryRules, early_stopping
from harness.runs.issued import asked, issued
from harness.runs.known_rates import Rates
from harness.runs.plan import PlannedLeg, notes
from harness.runs.search.limits import PERCENTILE
from harness.runs.space import SPARE_BYTES, free_bytes, library_bytes, logged_bytes
from harness.runs.trajectories import asking_of

SHARES: Final = (0.005, 0.008, 0.009, 0.0095)
"""Shares over the limit: far from the one that a percentile leaves, and ever nearer, as tuned Server runs come."""
_STREAM_PERCENTILE: Final = 0.9
"""Of SingleStream (loadgen/mlperf.conf, target_latency_percentile)."""
_NEEDLESS: Final = 1.5
"""A run so many times as long as it must be is told to be needlessly long."""
_SURE: Final = 1.02
"""By so much a measured rate is raised in what is advised: runs differ."""


def size_of(
    leg: PlannedLeg, rates: Rates, *, rows: int | None = None, turns: int | None = None, rate: Known | None = None
) -> LegSize:
    """One leg. ``rows`` and ``turns`` are the data set's where it has been read, ``rate`` LoadGen's where it is known;
    the round's and what the ledger tells stand in for them.
    """
    rows = rows if rows is not None else ruled_rows(leg)
    turns = turns if turns is not None else _ruled_turns(leg, rows)
    target, answers = rate or rates.target(leg), rates.answers(leg, rate)
    count = issued(leg, rows, target, answers)
    seconds, unknown = _expected(leg, rates, rows, count, target, answers)
    stopping = _stopping(leg, count, target)
    return LegSize(
        system=leg.system,
        benchmark=leg.benchmark,
        scenario=leg.scenario,
        leg=leg.kept_as,
        rate=target,
        answers=answers,
        issued=count,
        expected_s=seconds,
        unknown=unknown,
        warmup_s=_warmup_s(leg, rates, turns, rows),
        logged_bytes=logged_bytes(leg, rows, turns, of_text=not isinstance(leg.rules, TokenRules)),
        library_bytes=library_bytes(leg, rows),
        stopping=stopping,
        faults=tuple(_faults(leg, rows, count, target, answers, stopping)),
        advice=tuple(_advice(leg, rows, count, target, answers)),
    )


def matrix(legs: Sequence[PlannedLeg], store: ResultsStore) -> MatrixSize:
    """All legs of a plan, in the order they run. Nothing is started or written; no data set is read."""
    rates = Rates(store)
    sizes = tuple(size_of(leg, rates) for leg in legs)
    groups = itertools.groupby(legs, key=lambda leg: (leg.system, leg.benchmark, leg.engine))
    free, needed = free_bytes(store.root), sum(size.logged_bytes + SPARE_BYTES for size in sizes)
    faults = []
    if free is not None and free < needed:
        faults.append(f"the disk of {store.root} has {_gib(free)} free, the logs may take {_gib(needed)}")
    return MatrixSize(
        legs=sizes,
        starts=sum(1 for _ in groups),
        results=str(store.root),
        free_bytes=free,
        needed_bytes=needed,
        notes=(*notes(legs), *rates.unread),
        faults=tuple(faults),
    )


def impossible(legs: Sequence[PlannedLeg], store: ResultsStore) -> list[str]:
    """Why legs cannot be VALID as they are configured, in lines for people; empty where nothing says so."""
    return [f"{size.name}: cannot be VALID: {fault}" for size in matrix(legs, store).legs for fault in size.faults]


def ruled_rows(leg: PlannedLeg) -> int:
    """Rows of the data set that a leg runs over by the rules; of trajectories those of LoadGen's library."""
    if isinstance(leg.rules, TrajectoryRules) and leg.leg == PERFORMANCE:
        return leg.rules.performance_data.value.trajectories * asking_of(leg).repeats
    return leg.rules.rows(leg.which, leg.scenario)


def _ruled_turns(leg: PlannedLeg, rows: int) -> int | None:
    if not isinstance(leg.rules, TrajectoryRules) or leg.leg != PERFORMANCE:
        return None
    data = leg.rules.performance_data.value
    return -(-rows * data.turns // data.trajectories)


def _expected(
    leg: PlannedLeg, rates: Rates, rows: int, count: int | None, target: Known | None, answers: Known | None
) -> tuple[float | None, str]:
    scenario = leg.scenario_rules.loadgen_scenario.value
    if scenario == "Server" and target is None:
        return None, rates.why_no_target(leg)
    if answers is None and scenario == "Server" and target is not None and leg.leg == PERFORMANCE:
        answers = target
    if count is None or answers is None:
        return None, rates.why_no_target(leg) if target is None else "nothing says how fast the engine answers them"
    seconds = count / answers.value
    if scenario == "Server" and target is not None:
        # Asked at the rate; an engine that answers slower than it is asked takes the longer.
        seconds = count / target.value if leg.leg == PERFORMANCE else max(seconds, count / target.value)
    if scenario == "SingleStream" and leg.leg == PERFORMANCE and target is not None:
        demands = asked(leg, rows, target)
        seconds = max(seconds, demands.least_s) if count != demands.ready else seconds
    return seconds, ""


def _stopping(leg: PlannedLeg, count: int | None, target: Known | None) -> Stopping | None:
    scenario = leg.scenario_rules.loadgen_scenario.value
    if leg.leg != PERFORMANCE or count is None or scenario == "Offline":
        return None
    if scenario == "SingleStream":
        allowed = early_stopping.allowed_over(count, _STREAM_PERCENTILE)
        return Stopping(_STREAM_PERCENTILE, count, allowed, early_stopping.min_queries(1, _STREAM_PERCENTILE))
    return Stopping(
        PERCENTILE,
        count,
        early_stopping.allowed_over(count, PERCENTILE),
        early_stopping.min_queries(0, PERCENTILE),
        tuple(_at_share(share, target) for share in SHARES),
    )


def _at_share(share: float, target: Known | None) -> AtShare:
    queries = early_stopping.min_queries_at_share(share, PERCENTILE)
    return AtShare(share, queries, None if queries is None or target is None else queries / target.value)


def _faults(
    leg: PlannedLeg,
    rows: int,
    count: int | None,
    target: Known | None,
    answers: Known | None,
    stopping: Stopping | None,
) -> Iterator[str]:
    """Why a leg cannot be VALID as it is configured."""
    if stopping is not None and stopping.queries < stopping.fewest:
        yield (
            f"{stopping.queries} queries are too few for early stopping at p{stopping.percentile * 100:g}: it wants "
            f"{stopping.fewest} at least, with none over; raise min_query_count, min_duration_ms or target_qps"
        )
    if not _of_a_duration(leg) or count is None or target is None or answers is None:
        return
    least_s = asked(leg, rows, target).least_s
    if count / answers.value < least_s:
        yield (
            f"target_qps {target.value:g} is too low: {count} samples at {answers.value:.4g}/s ({answers.origin}) end "
            f"after {count / answers.value:.0f} s, before the {least_s:.0f} s that LoadGen demands; "
            f"{answers.value * _SURE:.4g} is enough"
        )


def _advice(
    leg: PlannedLeg, rows: int, count: int | None, target: Known | None, answers: Known | None
) -> Iterator[str]:
    """What is needlessly long."""
    if not _of_a_duration(leg) or count is None or target is None or answers is None:
        return
    least_s, seconds = asked(leg, rows, target).least_s, count / answers.value
    enough = Known(answers.value * _SURE, answers.origin)
    fewer = issued(leg, rows, enough, answers)
    if seconds > _NEEDLESS * least_s and fewer is not None and fewer < count:
        yield (
            f"target_qps {target.value:g} is needlessly high: {count} samples at {answers.value:.4g}/s "
            f"({answers.origin}) take {seconds:.0f} s, and {least_s:.0f} s are enough; {enough.value:.4g} would do"
        )


def _of_a_duration(leg: PlannedLeg) -> bool:
    """Whether the engine's speed decides if a leg lasts as long as LoadGen demands."""
    return leg.leg == PERFORMANCE and leg.scenario_rules.loadgen_scenario.value == "Offline"


def _warmup_s(leg: PlannedLeg, rates: Rates, turns: int | None, rows: int) -> float | None:
    performance = rates.measured(leg, leg.scenario, PERFORMANCE) or rates.measured(leg, "Offline", PERFORMANCE)
    if performance is None:
        return None
    each = 1.0 if turns is None else turns / rows
    return leg.config.warmup.requests / (performance.value * each)


def _gib(size: int) -> str:
    return f"{size / (1 << 30):.1f} GiB"
