"""Findings of results that keep a ruling of the pack to which only the other side of a disagreement objects."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from pathlib import PurePosixPath

from harness.gate.findings import Finding, Rule, Severity
from harness.gate.row_layout import RowPlace
from harness.rules import RulePack, Ruling
from harness.rules.values import LayoutName, SeverityName

PREFIX = "RULING-"
"""What stands before a ruling's id in its findings."""


def finding(ruling: Ruling, path: object, found: str, *, layout: LayoutName | None = None) -> Finding | None:
    """What is said of a result that keeps the ruling; None where the pack wants nothing said.

    ``found`` is the fact to which the other side objects.
    """
    severity = ruling.in_layout.get(layout, ruling.severity) if layout is not None else ruling.severity
    return None if severity is None else _rule(ruling, severity).broken(path, found)


def accepted(ruling: Ruling, value: str, path: object) -> Finding | None:
    """What is said of a result that has another value than the ruling's; None where the pack does not accept it."""
    severity = ruling.accepted.get(value)
    return None if severity is None else _rule(ruling, severity).broken(path, value)


def ruling_of(pack: RulePack, id_: str) -> Ruling | None:
    """A ruling by its id; None where the round has no such disagreement."""
    return next((ruling for ruling in pack.rulings if ruling.id == id_), None)


def check_row_rulings(place: RowPlace, layout: LayoutName, accuracy: float | None, pack: RulePack) -> Iterator[Finding]:
    """The rulings that can be told from a row's place, layout and accuracy alone."""
    for ruling in pack.rulings:
        tell = _OF_A_ROW.get(ruling.id)
        if tell is None or not _concerns(ruling, place, layout):
            continue
        said = tell(ruling, place, layout, accuracy, pack)
        one = finding(ruling, place.folder, said, layout=layout) if said else None
        if one is not None:
            yield one


def check_scenario_rulings(
    folder: PurePosixPath, division: str, benchmark: str, scenarios: Collection[str], pack: RulePack
) -> Iterator[Finding]:
    """The rulings on which scenarios of a benchmark belong together; ``folder`` is the benchmark's."""
    ruling = ruling_of(pack, "VLM-SCENARIOS")
    if ruling is None or benchmark not in ruling.concerns.benchmarks or not pack.holds("scenario_set", division):
        return
    if "Interactive" in scenarios and "Server" not in scenarios:
        one = finding(ruling, folder, "Interactive without Server")
        if one is not None:
            yield one


def _rule(ruling: Ruling, severity: SeverityName) -> Rule:
    unit = f" {ruling.unit}" if ruling.unit else ""
    return Rule(
        id=PREFIX + ruling.id,
        severity=Severity(severity),
        demand=f"{ruling.value}{unit}, of which {ruling.other.source} says: {ruling.other.says}",
        mend="nothing that the gate knows of: official texts disagree, be ready to say which one you followed",
        source=f"{ruling.follows.source}; against it {ruling.other.source}",
    )


def _concerns(ruling: Ruling, place: RowPlace, layout: LayoutName) -> bool:
    about = ruling.concerns
    told: tuple[tuple[Collection[str], str], ...] = (
        (about.benchmarks, place.benchmark),
        (about.scenarios, place.scenario),
        (about.divisions, place.division),
        (about.layouts, layout),
    )
    return all(not among or one in among for among, one in told)


_Tell = Callable[[Ruling, RowPlace, LayoutName, "float | None", RulePack], "str | None"]
"""The fact to which the other side of a ruling objects in a row; None where it does not."""


def _scenario(ruling: Ruling, place: RowPlace, layout: LayoutName, accuracy: float | None, pack: RulePack) -> str:
    return f"a result of {place.scenario}"


def _layout(ruling: Ruling, place: RowPlace, layout: LayoutName, accuracy: float | None, pack: RulePack) -> str:
    return f"a result of the {layout} layout"


def _digits(ruling: Ruling, place: RowPlace, layout: LayoutName, accuracy: float | None, pack: RulePack) -> str | None:
    """An accuracy that reaches the target which a product gives, and not the one that a text rounds it to."""
    target = pack.benchmark(place.benchmark).target(place.scenario, layout).value
    rounded = _number(ruling.other.says, place.scenario)
    if accuracy is None or rounded is None or not pack.holds("accuracy_target", place.division):
        return None
    return f"{target.key} {accuracy}, below {rounded}" if target.at_least <= accuracy < rounded else None


def _number(says: str, scenario: str) -> float | None:
    """The number that a source says: the one behind the scenario's name where there is such, else the first."""
    match = re.search(rf"{scenario} ([\d.]+)", says) or re.search(r"([\d.]+)", says)
    return None if match is None else float(match[1])


_OF_A_ROW: dict[str, _Tell] = {
    "AGENTIC-SCENARIO": _scenario,
    "SINGLESTREAM-METRIC": _layout,
    "VLM-CLIENT": _layout,
    "VLM-F1-DIGITS": _digits,
    "GPT-OSS-TARGET-DIGITS": _digits,
}
