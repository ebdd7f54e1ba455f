"""Checks of one result row, in whichever of the round's layouts it is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from harness.gate import tree_rules as R  # noqa: N812 - a namespace of constants
from harness.gate.findings import Finding, Verdict, verdict
from harness.gate.index import TreeIndex, Unreadable
from harness.gate.metric import ResultMetric
from harness.gate.row_endpoints import check_endpoints_row
from harness.gate.row_layout import ACCURACY_FOLDER, RUN, RowPlace, layout_of
from harness.gate.row_loadgen import check_loadgen_row
from harness.gate.rulings import check_row_rulings
from harness.rules import Ruled, RulePack
from harness.rules.values import LayoutName

_POWER = "power"
"""The name beside the run by which the official checker takes a result for one with power measured."""


@dataclass(frozen=True, slots=True)
class RowReport:
    """A row and all that is said of it; ``metric`` and ``accuracy`` are None where the tree does not tell them.

    ``layout`` is the one that the row was checked by.
    """

    place: RowPlace
    layout: LayoutName
    metric: ResultMetric | None
    accuracy: float | None
    findings: tuple[Finding, ...] = field(repr=False)

    @property
    def verdict(self) -> Verdict:
        """The worst of the row's findings."""
        return verdict(self.findings)


RowCheck = Callable[[TreeIndex, RowPlace, RulePack], tuple[ResultMetric | None, float | None, list[Finding]]]


def check_row(index: TreeIndex, place: RowPlace, pack: RulePack) -> RowReport:
    """Reads one row and says all that is wrong with it."""
    layout, found = check_structure(index, place.folder, pack, pack.benchmark(place.benchmark).layouts)
    metric, accuracy, more = _CHECKS[layout](index, place, pack)
    if place.scenario in pack.benchmark(place.benchmark).scenarios:
        found += check_row_rulings(place, layout, accuracy, pack)
    return RowReport(place, layout, metric, accuracy, (*found, *more))


def check_structure(
    index: TreeIndex, folder: PurePosixPath, pack: RulePack, layouts: Ruled[list[LayoutName]] | None
) -> tuple[LayoutName, list[Finding]]:
    """What holds for a row of any benchmark: its layout, its files, its measurements.json. ``layouts`` are those of the
    benchmark, None where nobody knows them.
    """
    layout, found = layout_of(index, folder, pack, layouts)
    found += _files(index, folder, pack, layout)
    found += _runs(index, folder)
    found += _measurements(index, folder, pack)
    return layout, found


def _files(index: TreeIndex, folder: PurePosixPath, pack: RulePack, layout: LayoutName) -> Iterator[Finding]:
    """What every row must have, none of it empty; of several names for one file, any will do."""
    files = getattr(pack.layouts, layout)
    for ruled in () if files is None else files.files.values():
        names = [ruled.value] if isinstance(ruled.value, str) else ruled.value
        nodes = [node for name in names if (node := index.file(folder / name)) is not None]
        if not nodes:
            yield R.FILE.broken(folder / names[0], "no such file", source=ruled.source)
        elif not any(node.bytes for node in nodes):
            yield R.FILE_EMPTY.broken(nodes[0].path, "an empty file", source=ruled.source)


def _runs(index: TreeIndex, folder: PurePosixPath) -> Iterator[Finding]:
    for node in index.children(folder / RUN.parent):
        if node.path.name == _POWER:
            yield R.POWER.broken(node.path, f"a {node.kind} named {_POWER}")
        elif node.kind == "folder" and node.path.name != RUN.name:
            yield R.EXTRA_RUN.broken(node.path, f"a folder {node.path.name} beside {RUN.name}")


def _measurements(index: TreeIndex, folder: PurePosixPath, pack: RulePack) -> Iterator[Finding]:
    path = folder / pack.layouts.loadgen.files["measurements"].value
    if not index.has_content(path):
        return
    try:
        measurements = index.read_object(path)
    except Unreadable as error:
        yield R.MEASUREMENTS.broken(path, str(error))
        return
    for name in pack.measurements_fields.value:
        if not measurements.get(name):
            found = f"{name} is {measurements[name]!r}" if name in measurements else f"no field {name}"
            yield R.MEASUREMENTS_FIELD.broken(path, found, source=pack.measurements_fields.source)


def _endpoints(
    index: TreeIndex, place: RowPlace, pack: RulePack
) -> tuple[ResultMetric | None, float | None, list[Finding]]:
    row = check_endpoints_row(index, place, pack)
    return row.metric, row.accuracy, list(row.findings)


_CHECKS: dict[LayoutName, RowCheck] = {"loadgen": check_loadgen_row, "endpoints": _endpoints}

__all__ = ["ACCURACY_FOLDER", "RUN", "RowPlace", "RowReport", "check_row"]
