"""A packaged row and its legs, in whichever of the round's layouts it is."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from harness.gate.findings import Severity
from harness.gate.leg_facts import DETAIL
from harness.gate.run_facts import ACCURACY, PERFORMANCE
from harness.report.book.content import Margin, RowView, RunView
from harness.report.book.run_record import UNREAD, key_of
from harness.report.book.tree_endpoints import audit_words, client_view
from harness.report.book.tree_files import TreeRow
from harness.report.book.tree_loadgen import audit_word, leg_view, legs_of
from harness.report.book.tree_originals import Originals, completed

_LATENCY: Final = "latency"
"""The word in the units of metrics of which less is better."""
_MEASURED: Final = (PERFORMANCE, ACCURACY, "endpoints")
_SHOWN: Final = (Severity.REJECT, Severity.REVIEW)


@dataclass(frozen=True, slots=True)
class RowOfTree:
    """A row's view and those of its legs."""

    row: RowView
    runs: tuple[RunView, ...]

    def numbered(self, number: int) -> RowOfTree:
        """The same with a number behind all keys."""
        runs = tuple(dataclasses.replace(run, key=f"{run.key}-{number}") for run in self.runs)
        keys = tuple(run.key for run in runs)
        return RowOfTree(dataclasses.replace(self.row, key=f"{self.row.key}-{number}", runs=keys), runs)


def row_of_tree(row: TreeRow, originals: Originals) -> RowOfTree:
    """The views of a row. Nothing in the tree raises: what cannot be read is said in its place."""
    runs = tuple(_runs(row, originals))
    place, report = row.report.place, row.report
    metric = report.metric
    view = RowView(
        key=key_of(str(row.folder)),
        system=place.system,
        benchmark=place.benchmark,
        scenario=place.scenario,
        division=place.division,
        category=row.category,
        submitter=place.submitter,
        word=_word(runs),
        metric=None if metric is None else metric.key,
        value=None if metric is None else metric.value,
        unit="" if metric is None else metric.units,
        higher_is_better=_higher_is_better(row),
        accuracy=_accuracy(row, runs),
        audits=tuple(_audits(row).items()),
        margins=tuple(_margins(runs)),
        reasons=tuple(dict.fromkeys(_reasons(row))),
        boundary=row.boundary,
        runs=tuple(run.key for run in runs),
        demonstration=row.submitter.demonstration,
    )
    return RowOfTree(view, runs)


def _runs(row: TreeRow, originals: Originals) -> Iterator[RunView]:
    client = row.pack.layouts.endpoints
    if row.report.layout == "endpoints" and client is not None:
        yield client_view(row, client)
        return
    for leg in legs_of(row):
        original = originals.run(row, leg.name, leg.logs / DETAIL)
        if isinstance(original, str):
            yield leg_view(row, leg, original)
        else:
            yield completed(leg_view(row, leg, ""), original, row)


def _word(runs: tuple[RunView, ...]) -> str:
    """The worst of what was measured: unread, INVALID, VALID. An audit's verdict is told beside it."""
    words = [run.word for run in runs if run.leg in _MEASURED]
    return next((word for word in (UNREAD, "INVALID") if word in words), "VALID")


def _higher_is_better(row: TreeRow) -> bool:
    """By the units of the metric, which say latency where less is better."""
    scenarios = row.pack.benchmark(row.report.place.benchmark).scenarios
    metric, rules = row.report.metric, scenarios.get(row.report.place.scenario)
    units = metric.units if metric is not None else "" if rules is None else rules.metric.value.units
    return _LATENCY not in units.lower()


def _accuracy(row: TreeRow, runs: tuple[RunView, ...]) -> str:
    """What the round asks for, by its keys."""
    rules = row.pack.benchmark(row.report.place.benchmark)
    judged = {margin.name for run in runs for margin in run.margins} | {rules.accuracy_target.value.key}
    scores = [score for run in runs if run.leg in (ACCURACY, "endpoints") for score in run.scores]
    told = [f"{name} {value:g}" for name, value in scores if name in judged]
    if told:
        return ", ".join(told)
    return "not told" if row.report.accuracy is None else f"{row.report.accuracy:g}"


def _audits(row: TreeRow) -> dict[str, str]:
    if row.report.layout == "endpoints":
        return audit_words(row)
    place = row.report.place
    there = [name for name in row.pack.benchmark(place.benchmark).audit_rules if _must_or_does(row, name)]
    return {name: audit_word(row, name) for name in there}


def _must_or_does(row: TreeRow, name: str) -> bool:
    """Whether a row has an audit, or its division asks for it."""
    return row.pack.holds("audits", row.report.place.division) or row.index.is_folder(row.folder / name)


def _margins(runs: tuple[RunView, ...]) -> Iterator[Margin]:
    for run in runs:
        yield from run.margins


def _reasons(row: TreeRow) -> Iterator[str]:
    """Why it cannot be submitted, then what a reviewer will ask, by its manifest and by the gate."""
    yield from row.marks
    for severity in _SHOWN:
        for finding in row.report.findings:
            if finding.severity is severity:
                yield f"{severity.value} {finding.rule}: {finding.found} ({finding.path})"
