"""The gate's checks of a whole submission tree in the layout of LoadGen results. The tree is only read."""

from __future__ import annotations

import dataclasses
import difflib
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from harness.errors import ConfigError, UnknownName
from harness.gate import tree_rules as R  # noqa: N812 - a namespace of constants
from harness.gate.claims import check_claims
from harness.gate.findings import Finding, Rule, Severity, Verdict, ordered, verdict
from harness.gate.index import TreeIndex, Unreadable
from harness.gate.layout import check_names, check_submitter_folder
from harness.gate.manifest_check import check_manifest, read_manifest
from harness.gate.marks import check_marks
from harness.gate.row import RowPlace, RowReport, check_row
from harness.gate.rulings import check_scenario_rulings
from harness.gate.system_description import categories_of, check_system
from harness.rules import RulePack

MAPPING = "model_mapping.json"
POWER_FILE = "_power.yaml"
"""What follows the system's name in the name of its power description."""

_LINE = re.compile(r":\d+$")


@dataclass(frozen=True, slots=True)
class TreeReport:
    """What the gate says of a tree: its rows, each with all that concerns it, and all ``findings`` in order."""

    root: Path
    round: str
    rows: tuple[RowReport, ...]
    findings: tuple[Finding, ...] = field(repr=False)

    @property
    def verdict(self) -> Verdict:
        """The worst of all findings."""
        return verdict(self.findings)


def check_tree(root: Path, pack: RulePack, submitter: str | None = None) -> TreeReport:
    """Checks a tree, or one submitter's part of it.

    ConfigError where there is no tree at all; UnknownName where no division has that submitter. Whatever else is
    wrong is a finding.
    """
    if not root.is_dir():
        raise ConfigError(
            "nothing to check: no such folder", where=root, mend="give the folder that holds closed/ or open/"
        )
    index = TreeIndex(root)
    submitters = _submitters(index, pack, submitter)
    found = [R.UNREADABLE.broken(path, why) for path, why in index.unreadable.items()]
    found += check_names(index, pack, submitters)
    rows: list[RowReport] = []
    for folder in submitters:
        some_rows, some_findings = _submitter(index, folder, pack)
        rows += some_rows
        found += some_findings
    if not rows:
        found.append(R.NO_ROWS.broken(".", "no result in the tree"))
    every = ordered([*found, *(finding for row in rows for finding in row.findings)])
    return TreeReport(root, pack.round, tuple(_with_all_that_concerns(row, every) for row in rows), tuple(every))


def _with_all_that_concerns(row: RowReport, findings: list[Finding]) -> RowReport:
    """The row with what speaks against it from outside its folder too: its system, its submitter's files, the tree."""
    return dataclasses.replace(row, findings=tuple(f for f in findings if _concerns(f, row.place)))


def _concerns(finding: Finding, place: RowPlace) -> bool:
    path = PurePosixPath(_LINE.sub("", finding.path))
    submitter = place.folder.parents[3]
    if path == submitter / "systems" / f"{place.system}.json" or path in (place.folder, *place.folder.parents):
        return True
    if path.is_relative_to(submitter / "results") or path.is_relative_to(submitter / "systems"):
        return path.is_relative_to(place.folder)
    return path.is_relative_to(submitter)


def _submitters(index: TreeIndex, pack: RulePack, submitter: str | None) -> list[PurePosixPath]:
    divisions = [name for name in index.folders(PurePosixPath()) if name in pack.divisions.value]
    every = [PurePosixPath(division, name) for division in divisions for name in index.folders(PurePosixPath(division))]
    if not every:
        expected = "folders " + ", ".join(f"{d}/<submitter>" for d in pack.divisions.value)
        raise ConfigError("nothing to check: no submitter in it", where=index.root, expected=expected)
    if submitter is None:
        return every
    chosen = [folder for folder in every if folder.name == submitter]
    if not chosen:
        raise UnknownName("submitter", submitter, {folder.name for folder in every}, where=index.root)
    return chosen


def _submitter(index: TreeIndex, folder: PurePosixPath, pack: RulePack) -> tuple[list[RowReport], list[Finding]]:
    found = list(check_submitter_folder(index, folder, pack))
    rows: list[RowReport] = []
    mapping = _model_mapping(index, folder, found)
    for system in index.folders(folder / "results"):
        some_rows, some_findings = _system(index, folder, system, mapping, pack)
        rows += some_rows
        found += some_findings
    manifest, manifest_findings = read_manifest(index, folder)
    found += manifest_findings
    if manifest is not None:
        found += check_manifest(index, folder, manifest, [row.place for row in rows], pack.round)
    found += check_marks(index, folder, manifest)
    found += check_claims(index, folder, manifest, [row.place for row in rows], pack)
    return rows, found


def _model_mapping(index: TreeIndex, folder: PurePosixPath, found: list[Finding]) -> dict[str, str]:
    """Own names of benchmarks -> official ones; in open alone."""
    path = folder / MAPPING
    if folder.parts[0] != "open" or index.file(path) is None:
        return {}
    try:
        return {name: str(official) for name, official in index.read_object(path).items()}
    except Unreadable as error:
        found.append(R.BENCHMARK.broken(path, str(error)))
        return {}


def _system(
    index: TreeIndex, folder: PurePosixPath, system: str, mapping: dict[str, str], pack: RulePack
) -> tuple[list[RowReport], list[Finding]]:
    path = folder / "systems" / f"{system}.json"
    described: dict[str, Any] = {}
    try:
        described = index.read_object(path)
        found = list(check_system(described, path, folder.parts[0], folder.name, pack))
    except Unreadable as error:
        found = [R.SYSTEM.broken(path, str(error))]
    found += _power_file(index, folder / "systems" / f"{system}{POWER_FILE}")
    rows: list[RowReport] = []
    for name in index.folders(folder / "results" / system):
        place = folder / "results" / system / name
        benchmark = mapping.get(name, name)
        if benchmark not in pack.benchmarks:
            found.append(_unknown(R.BENCHMARK, place, name, list(pack.benchmarks)))
            continue
        found += _category(described, path, benchmark, folder.parts[0], pack)
        some_rows, some_findings = _benchmark(index, place, benchmark, pack)
        rows += some_rows
        found += some_findings
    return rows, found


def _power_file(index: TreeIndex, path: PurePosixPath) -> Iterator[Finding]:
    """The official checker reads it where it is, and breaks on one that it cannot read."""
    if path not in index.nodes:
        return
    try:
        index.read_yaml(path)
    except Unreadable as error:
        yield R.POWER_FILE.broken(path, str(error))


def _category(
    system: dict[str, Any], path: PurePosixPath, benchmark: str, division: str, pack: RulePack
) -> Iterator[Finding]:
    wanted = pack.benchmark(benchmark).categories
    if categories_of(system).isdisjoint(wanted.value):
        severity = Severity.REVIEW if division == "open" else None
        found = f"system_type {system.get('system_type')!r} with results of {benchmark}"
        yield R.SYSTEM_CATEGORY.broken(path, found, " or ".join(wanted.value), severity=severity, source=wanted.source)


def _benchmark(
    index: TreeIndex, place: PurePosixPath, benchmark: str, pack: RulePack
) -> tuple[list[RowReport], list[Finding]]:
    division, submitter, _, system, _ = place.parts
    rules = pack.benchmark(benchmark)
    rows: list[RowReport] = []
    found: list[Finding] = []
    for scenario in index.folders(place):
        if scenario in rules.scenarios:
            row = RowPlace(place / scenario, division, submitter, system, benchmark, scenario)
            rows.append(check_row(index, row, pack))
        else:
            found.append(_unknown(R.SCENARIO, place / scenario, scenario, list(rules.scenarios)))
    found += check_scenario_rulings(place, division, benchmark, [row.place.scenario for row in rows], pack)
    if division == "open":
        return rows, found
    there = {row.place.scenario for row in rows}
    missing = [scenario for scenario in rules.required_scenarios.value if scenario not in there]
    found += [R.SCENARIO_SET.broken(place, f"no {scenario}") for scenario in missing]
    if rules.one_of_scenarios.value and there.isdisjoint(rules.one_of_scenarios.value):
        choice = " or ".join(rules.one_of_scenarios.value)
        found.append(R.SCENARIO_SET.broken(place, f"neither {choice.replace(' or ', ' nor ')}", f"{choice}, or both"))
    return rows, found


def _unknown(rule: Rule, path: PurePosixPath, name: str, known: list[str]) -> Finding:
    near = difflib.get_close_matches(name.casefold(), [k.casefold() for k in known], n=1, cutoff=0.5)
    mend = None
    if near:
        right = next(k for k in known if k.casefold() == near[0])
        mend = f"did you mean {right!r}? " + rule.mend
    return rule.broken(path, f"a folder {name}", "one of " + ", ".join(known), mend=mend)
