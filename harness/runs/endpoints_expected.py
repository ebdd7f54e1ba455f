"""What a run of the endpoints client is held to: the round's rules, or what it was deliberately made to differ in."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, TypeVar

from harness.gate import endpoints_rules
from harness.gate.findings import Finding, Severity
from harness.gate.run_facts import ACCURACY, PERFORMANCE
from harness.rules import BenchmarkRules, RulePack
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
    )
)
"""What a stranger may only doubt in a tree, and a run must not have: too short a time, samples that failed silently."""
_OF_TRAINED_WEIGHTS: Final = frozenset((endpoints_rules.TARGET.id, endpoints_rules.GATE.id))


@dataclass(frozen=True, slots=True)
class Departure:
    """In what a run was made to differ, each with a reason of its own in its record.

    ``rows`` are those of a shorter data set, ``min_duration_ms`` a shorter duration, ``caps`` other output caps by leg,
    ``model`` the name of what stands in for the benchmark's model. None is the round's. ``may_be_filed`` is False where
    the run can never be submitted: then nobody expects the accuracy of trained weights.
    """

    rows: int | None = None
    min_duration_ms: int | None = None
    caps: tuple[int, int] | None = None
    model: str | None = None
    may_be_filed: bool = True


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
    if departure.rows is not None:
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


def _of(ruled: Ruled[T], value: T) -> Ruled[T]:
    return ruled.model_copy(update={"value": value})


def judged(findings: Iterable[Finding], departure: Departure) -> Iterator[Finding]:
    """The gate's findings as a run of ours is judged by them."""
    for finding in findings:
        if finding.rule in _STRICTER:
            yield dataclasses.replace(finding, severity=Severity.REJECT)
        elif finding.rule in _OF_TRAINED_WEIGHTS and not departure.may_be_filed:
            yield dataclasses.replace(finding, severity=Severity.NOTE)
        else:
            yield finding
