"""The gate's checks of a whole submission tree, in whichever of the round's layouts its rows are. It is only read."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from harness.errors import ConfigError, UnknownName
from harness.events import Observer, StepProgress, Steps, ignore
from harness.gate import tree_rules as R  # noqa: N812 - a namespace of constants
from harness.gate.benchmark_folder import check_benchmark, model_mapping
from harness.gate.claims import check_claims
from harness.gate.error_correction import check_error_correction
from harness.gate.findings import Finding, Severity, Verdict, ordered, verdict
from harness.gate.index import TreeIndex, Unreadable
from harness.gate.layout import check_names, check_submitter_folder
from harness.gate.manifest_check import check_manifest, read_manifest
from harness.gate.marks import check_marks
from harness.gate.originals import check_originals, require_originals
from harness.gate.row import RowReport
from harness.gate.system_description import check_system
from harness.rules import RulePack

_LINE = re.compile(r":\d+$")
_DESCRIPTION = re.compile(r"\.json$|_power\.yaml$")
_ROW_PARTS = 6
"""Of the path of a row's folder: division, submitter, results, system, benchmark, scenario."""


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


def check_tree(
    root: Path,
    pack: RulePack,
    submitter: str | None = None,
    *,
    originals: Path | None = None,
    observer: Observer = ignore,
) -> TreeReport:
    """Checks a tree, or one submitter's part of it, and the whole accuracy logs that are kept below ``originals``.
    ``observer`` is told how many benchmarks' folders were checked.

    ConfigError where there is no folder that can be listed; UnknownName where no division has that submitter. Whatever
    else is wrong is a finding.
    """
    if originals is not None:
        require_originals(originals)
    index = _index(root)
    submitters = _submitters(index, pack, submitter)
    found = [R.UNREADABLE.broken(path, why) for path, why in index.unreadable.items()]
    found += check_names(index, pack, submitters)
    rows: list[RowReport] = []
    checked = _Checked(index, submitters, observer)
    for folder in submitters:
        some_rows, some_findings = _submitter(index, folder, pack, checked)
        rows += some_rows
        found += some_findings
    checked.steps.end(checked.benchmarks)
    if originals is not None:
        observer(StepProgress("holding accuracy logs against those that were kept", 0, None))
        found += check_originals(index, [row.place for row in rows], originals, pack)
    if not rows:
        found.append(_no_rows(pack, found))
    every = ordered([*found, *(finding for row in rows for finding in row.findings)])
    return TreeReport(root, pack.round, tuple(_with_all_that_concerns(rows, every)), tuple(every))


def _index(root: Path) -> TreeIndex:
    try:
        is_folder = root.is_dir()
    except OSError:  # a folder above it is closed to us
        is_folder = False
    if not is_folder:
        mend = "give the folder that holds closed/ or open/"
        raise ConfigError("nothing to check: no such folder", where=root, mend=mend)
    index = TreeIndex(root)
    why = index.unreadable.get(PurePosixPath())
    if why is not None:
        raise ConfigError(f"nothing to check: the folder cannot be listed: {why}", where=root)
    return index


def _no_rows(pack: RulePack, found: list[Finding]) -> Finding:
    expected = f"{' or '.join(pack.divisions.value)}/<submitter>/results/<system>/<benchmark>/<Scenario>/"
    if any(finding.rule == R.UNRULED.id for finding in found):
        said = "no result that the gate has rules for"
        return R.NO_ROWS.broken(".", said, expected, severity=Severity.REVIEW)
    return R.NO_ROWS.broken(".", "no result in the tree", expected)


def _with_all_that_concerns(rows: list[RowReport], findings: list[Finding]) -> Iterator[RowReport]:
    """The rows with what speaks against each from outside its folder too: system, submitter's files, the tree."""
    rows_by_path: dict[tuple[str, ...], list[int]] = {}
    for number, row in enumerate(rows):
        for path in _what_a_row_depends_on(row.place.folder):
            rows_by_path.setdefault(path.parts, []).append(number)
    concerned: list[list[Finding]] = [[] for _ in rows]
    for finding in findings:
        for number in rows_by_path.get(_key(finding), ()):
            concerned[number].append(finding)
    for row, some in zip(rows, concerned, strict=True):
        yield dataclasses.replace(row, findings=tuple(some))


def _what_a_row_depends_on(folder: PurePosixPath) -> Iterator[PurePosixPath]:
    yield folder
    yield from folder.parents
    submitter = folder.parents[3]
    yield submitter / "systems" / folder.parts[3]


def _key(finding: Finding) -> tuple[str, ...]:
    """The parts of the path by which :func:`_what_a_row_depends_on` knows the rows that a finding speaks against."""
    parts = PurePosixPath(_LINE.sub("", finding.path)).parts
    inside = parts[2:3]
    if inside == ("results",):
        return parts[:_ROW_PARTS]
    if inside == ("systems",) and len(parts) > 3:
        return (*parts[:3], _DESCRIPTION.sub("", parts[3]))
    return parts[:2]


def _submitters(index: TreeIndex, pack: RulePack, submitter: str | None) -> list[PurePosixPath]:
    divisions = [name for name in index.folders(PurePosixPath()) if name in pack.divisions.value]
    every = [PurePosixPath(division, name) for division in divisions for name in index.folders(PurePosixPath(division))]
    if submitter is None or not every:
        return every
    chosen = [folder for folder in every if folder.name == submitter]
    if not chosen:
        raise UnknownName("submitter", submitter, {folder.name for folder in every}, where=index.root)
    return chosen


class _Checked:
    """How far it is: benchmarks' folders, of all that there are."""

    def __init__(self, index: TreeIndex, submitters: list[PurePosixPath], observer: Observer) -> None:
        results = [folder / "results" for folder in submitters]
        total = sum(len(index.folders(path / system)) for path in results for system in index.folders(path))
        self.steps = Steps(observer, "checking results", total, "benchmarks")
        self.benchmarks = 0

    def one_more(self) -> None:
        """A benchmark's folder was checked."""
        self.benchmarks += 1
        self.steps.at(self.benchmarks)


def _submitter(
    index: TreeIndex, folder: PurePosixPath, pack: RulePack, checked: _Checked
) -> tuple[list[RowReport], list[Finding]]:
    found = list(check_submitter_folder(index, folder, pack))
    manifest, manifest_findings = read_manifest(index, folder)
    found += manifest_findings
    if manifest is not None:
        index.hash_below(folder)
    rows: list[RowReport] = []
    mapping = model_mapping(index, folder, pack, found)
    for system in index.folders(folder / "results"):
        some_rows, some_findings = _system(index, folder, system, mapping, pack, checked)
        rows += some_rows
        found += some_findings
    if manifest is not None:
        found += check_manifest(index, folder, manifest, [row.place for row in rows], pack.round)
    found += check_marks(index, folder, manifest)
    found += check_claims(index, folder, manifest, [row.place for row in rows], pack)
    found += check_error_correction(index, folder, manifest, [row.place for row in rows], pack)
    return rows, found


def _system(
    index: TreeIndex,
    folder: PurePosixPath,
    system: str,
    mapping: Mapping[str, str],
    pack: RulePack,
    checked: _Checked,
) -> tuple[list[RowReport], list[Finding]]:
    path = folder / pack.tree.system.value.format(system=system)
    described: dict[str, Any] = {}
    try:
        described = index.read_object(path)
        found = list(check_system(described, path, folder.parts[0], folder.name, pack))
    except Unreadable as error:
        found = [R.SYSTEM.broken(path, str(error))]
    found += _power_file(index, folder, system, pack)
    rows: list[RowReport] = []
    for name in index.folders(folder / "results" / system):
        some_rows, some_findings = check_benchmark(index, folder / "results" / system / name, described, mapping, pack)
        rows += some_rows
        found += some_findings
        checked.one_more()
    return rows, found


def _power_file(index: TreeIndex, folder: PurePosixPath, system: str, pack: RulePack) -> Iterator[Finding]:
    """The official checker reads it where it is, and breaks on one that it cannot read; not in every round."""
    ruled = pack.tree.nameplate_power
    if ruled is None or (path := folder / ruled.value.format(system=system)) not in index.nodes:
        return
    try:
        index.read_yaml(path)
    except Unreadable as error:
        yield R.POWER_FILE.broken(path, str(error), source=ruled.source)
