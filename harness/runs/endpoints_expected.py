"""What a run of the endpoints client is held to: the round's rules, or what it was deliberately made to differ in."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, TypeVar

from harness.clients.endpoints import agentic
from harness.gate import endpoints_rules
from harness.gate.findings import Finding, Severity
from harness.gate.run_facts import ACCURACY, PERFORMANCE
from harness.rules import BenchmarkRules, RulePack, TrajectoryRules
from harness.rules.benchmark import TokenRules
from harness.rules.values import OutputCaps, Ruled, Subset

T = TypeVar("T")

_STRICTER: Final = frozenset(
    rule.id
    for rule in (
        endpoints_rules.DURATION,
        endpoints_rules.COMPLETE,
        endpoints_rules.ACCURACY_COMPLETE,
        endpoints_rules.ACCURACY_EMPTY,
        endpoints_rules.FINISH,
        endpoints_rules.TURNS,
    )
)
"""What a stranger may only doubt in a tree, and a run must not have: too short a time, samples that failed silently."""
_OF_TRAINED_WEIGHTS: Final = frozenset((endpoints_rules.TARGET.id, endpoints_rules.GATE.id))


@dataclass(frozen=True, slots=True)
class Departure:
    """In what a run was made to differ, each with a reason of its own in its record.

    ``rows`` are those of a shorter data set, ``min_duration_ms`` a shorter duration, ``caps`` other output caps by leg,
    ``model`` the name of what stands in for the benchmark's model. None is the round's. ``may_be_filed`` is False where
    the run can never be submitted: then nobody expects the accuracy of trained weights. ``trajectories`` are how many
    are replayed and how many turns these have, ``all_questions`` is whether all of the rows were asked in place of the
    client's picking some of its own.
    """

    rows: int | None = None
    min_duration_ms: int | None = None
    caps: tuple[int, int] | None = None
    model: str | None = None
    may_be_filed: bool = True
    trajectories: tuple[int, int] | None = None
    all_questions: bool = False


def expected_pack(pack: RulePack, benchmark: str, scenario: str, departure: Departure) -> RulePack:
    """The round's rules with what the run was made to differ in; equal to the round's for a run without departures."""
    changes: dict[str, object] = {
        "benchmarks": {**pack.benchmarks, benchmark: _rules(pack, benchmark, scenario, departure)}
    }
    if departure.min_duration_ms is not None:
        for name in ("min_duration_ms", "measured_duration_ms"):
            changes[name] = _of(getattr(pack, name), departure.min_duration_ms)
    return pack.model_copy(update=changes)


def _rules(pack: RulePack, benchmark: str, scenario: str, departure: Departure) -> BenchmarkRules:
    rules = pack.benchmark(benchmark)
    changes: dict[str, object] = {}
    if isinstance(rules, TrajectoryRules):
        changes |= _of_trajectories(rules, scenario, departure)
    elif departure.rows is not None:
        changes |= _of_rows(rules, scenario, departure.rows)
    if departure.caps is not None and rules.output_caps is not None:
        performance, accuracy = departure.caps
        caps = rules.output_caps
        changes["output_caps"] = OutputCaps(
            performance=_of(caps.performance, performance), accuracy=_of(caps.accuracy, accuracy)
        )
    if departure.model is not None:
        changes["model"] = _of(rules.model, departure.model)
    return rules.model_copy(update=changes)


def _of_rows(rules: BenchmarkRules, scenario: str, rows: int) -> dict[str, object]:
    """Fewer rows, where the benchmark has one data set: what a run was cut to."""
    if isinstance(rules, TokenRules):
        return {}
    legs = {leg: _of(rules.datasets[leg], rows) for leg in (PERFORMANCE, ACCURACY)}
    own = rules.scenario(scenario).model_copy(update={"datasets": legs, "min_samples_issued": None})
    subsets = {name: Subset(samples=rows, repeats=1) for name in rules.accuracy_subsets.value}
    return {
        "datasets": legs,
        "scenarios": {**rules.scenarios, scenario: own},
        "accuracy_subsets": _of(rules.accuracy_subsets, subsets),
    }


def _of_trajectories(rules: TrajectoryRules, scenario: str, departure: Departure) -> dict[str, object]:
    """Fewer trajectories, or others; and questions of a table that holds no more than is asked."""
    changes: dict[str, object] = {}
    if departure.trajectories is not None and rules.endpoints_agentic is not None:
        trajectories, turns = departure.trajectories
        own = rules.scenario(scenario)
        least = Ruled(value=turns, source=rules.performance_data.source)
        changes["scenarios"] = {**rules.scenarios, scenario: own.model_copy(update={"min_samples_issued": least})}
        told = agentic.replay(rules, trajectories)["agentic_inference"]
        changes["endpoints_agentic"] = _of(rules.endpoints_agentic, {**rules.endpoints_agentic.value, **told})
    if departure.rows is not None:
        changes["datasets"] = {**rules.datasets, ACCURACY: _of(rules.datasets[ACCURACY], departure.rows)}
    if departure.all_questions:
        changes["accuracy_sampling"] = _of(rules.accuracy_sampling, agentic.all_of_them(rules))
    return changes


def _of(ruled: Ruled[T], value: T) -> Ruled[T]:
    return ruled.model_copy(update={"value": value})


def judged(findings: Iterable[Finding], departure: Departure, rules: BenchmarkRules) -> Iterator[Finding]:
    """The gate's findings as a run of ours is judged by them; the work of some benchmarks is fixed, however long it
    takes.
    """
    stricter = _STRICTER - ({endpoints_rules.DURATION.id} if isinstance(rules, TrajectoryRules) else set())
    for finding in findings:
        if finding.rule in stricter:
            yield dataclasses.replace(finding, severity=Severity.REJECT)
        elif finding.rule in _OF_TRAINED_WEIGHTS and not departure.may_be_filed:
            yield dataclasses.replace(finding, severity=Severity.NOTE)
        else:
            yield finding
