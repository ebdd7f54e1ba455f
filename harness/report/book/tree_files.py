"""What a packaged row's folder, its submitter and its system say of it beside its logs."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, Final

from harness.gate.findings import Finding, Severity
from harness.gate.index import TreeIndex, Unreadable
from harness.gate.manifest_check import read_manifest
from harness.gate.marks import is_labelled
from harness.gate.row import RowReport
from harness.gate.system_description import categories_of
from harness.report.book.boundary import Boundary, Subject, of_files
from harness.report.book.content import Said
from harness.rules import RulePack

_MEASUREMENTS: Final = "measurements.json"

Object = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Submitter:
    """A submitter's folder: its manifest where it has one that can be read, and whether it is a demonstration's."""

    index: TreeIndex
    folder: PurePosixPath
    manifest: Object | None
    demonstration: bool

    @classmethod
    def read(cls, index: TreeIndex, folder: PurePosixPath) -> Submitter:
        """Reads what a submitter's folder says of all its rows."""
        return cls(index, folder, read_manifest(index, folder)[0], is_labelled(index, folder))

    @property
    def made_by(self) -> str | None:
        """The program that says it packaged the folder."""
        made_by = (self.manifest or {}).get("made_by")
        return str(made_by["harness"]) if isinstance(made_by, dict) and "harness" in made_by else None


@dataclass(frozen=True, slots=True)
class TreeRow:
    """One row of a tree, with the gate's report of it. Files that cannot be read are empty here: the gate says so."""

    submitter: Submitter
    report: RowReport
    pack: RulePack
    system: Object
    measurements: Object

    @classmethod
    def read(cls, submitter: Submitter, report: RowReport, pack: RulePack) -> TreeRow:
        """Reads a row's description and measurements."""
        place = report.place
        described = submitter.folder / pack.tree.system.value.format(system=place.system)
        system = _object(submitter.index, described)
        return cls(submitter, report, pack, system, _object(submitter.index, place.folder / _MEASUREMENTS))

    @property
    def index(self) -> TreeIndex:
        """The tree."""
        return self.submitter.index

    @property
    def folder(self) -> PurePosixPath:
        """The row's folder in it."""
        return self.report.place.folder

    @property
    def entry(self) -> Object:
        """What the manifest says of the row, empty where it says nothing."""
        place = self.report.place
        own = (place.division, place.system, place.folder.parent.name, place.scenario)
        for row in (self.submitter.manifest or {}).get("rows", ()):
            if tuple(row.get(key) for key in ("division", "system", "benchmark", "scenario")) == own:
                return dict(row)
        return {}

    def leg(self, name: str) -> Object:
        """What the manifest says of a leg, empty where it says nothing."""
        legs = self.entry.get("legs")
        for leg in legs if isinstance(legs, list) else ():
            if isinstance(leg, dict) and leg.get("leg") == name:
                return leg
        return {}

    @property
    def marks(self) -> tuple[str, ...]:
        """Why the row is no submission, by its manifest."""
        reasons = self.entry.get("not_submittable")
        return tuple(map(str, reasons)) if isinstance(reasons, list) else ()

    @property
    def deviations(self) -> tuple[str, ...]:
        """In what the row departs from the round's rules, by its manifest."""
        said = self.entry.get("deviations")
        return tuple(map(str, said)) if isinstance(said, list) else ()

    @property
    def category(self) -> str | None:
        """The category that the system claims, of several the one that the benchmark has results in."""
        claimed = categories_of(self.system)
        ruled = [name for name in self.pack.benchmark(self.report.place.benchmark).categories.value if name in claimed]
        return ",".join(ruled or sorted(claimed)) or None

    @property
    def boundary(self) -> Boundary:
        """What must be equal for another row to be compared with this one."""
        place = self.report.place
        subject = Subject(place.benchmark, place.scenario, place.division, self.category, self.report.layout)
        return of_files(subject, self.pack, system=self.system, measurements=self.measurements, marks=self.marks)

    def findings_below(self, *paths: PurePosixPath) -> tuple[Finding, ...]:
        """What the gate says of files at or below some paths."""
        return tuple(f for f in self.report.findings if any(_path(f).is_relative_to(path) for path in paths))


def said(finding: Finding) -> Said:
    """A finding, for the report."""
    return Said(
        rule=finding.rule,
        severity=finding.severity.value,
        place=finding.path,
        found=finding.found,
        expected=finding.expected,
        mend=finding.mend,
        source=finding.source,
    )


def rejects(findings: tuple[Finding, ...]) -> list[Finding]:
    """Those that refuse the result."""
    return [finding for finding in findings if finding.severity is Severity.REJECT]


def _path(finding: Finding) -> PurePosixPath:
    path, colon, line = finding.path.rpartition(":")
    return PurePosixPath(path if colon and line.isdecimal() else finding.path)


def _object(index: TreeIndex, path: PurePosixPath) -> Object:
    with contextlib.suppress(Unreadable):  # told by the gate
        return index.read_object(path)
    return {}
