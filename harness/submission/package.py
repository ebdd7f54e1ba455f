"""Packages runs into the tree that is submitted: built beside its place, complete, then renamed to it."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from harness.config.files import Project
from harness.config.models import SubmissionFile
from harness.errors import ConfigError, Refused
from harness.events import Observer, Steps, ignore
from harness.ledger.store import ResultsStore
from harness.rules import RulePack
from harness.submission import layout, placing
from harness.submission.folder import Context, PackedRow, SubmitterFolder
from harness.submission.manifest import Manifest, SecretEntry
from harness.submission.official import Clone
from harness.submission.rows import Row, select
from harness.submission.secrets import Kind, Names
from harness.submission.systems import SystemEntry, describe_systems
from harness.submission.texts import Texts

_SUBMITTER = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9 ._+&-]{0,62}[A-Za-z0-9])?")


@dataclass(frozen=True, slots=True)
class PackageReport:
    """The tree at ``out``. ``previous`` is where the one that stood there went; ``notes`` say who scored what."""

    out: Path
    demonstration: bool
    rows: tuple[PackedRow, ...]
    unknown: tuple[str, ...]
    findings: tuple[SecretEntry, ...]
    notes: tuple[str, ...]
    previous: Path | None


def package(
    store: ResultsStore,
    project: Project,
    submission: SubmissionFile,
    out: Path,
    *,
    demonstration: bool,
    pack: RulePack,
    attempts: Collection[str] = (),
    names: Names | None = None,
    observe: Observer = ignore,
) -> PackageReport:
    """Lays out the entries of ``submission`` at ``out`` from the runs in ``store``.

    Refused: runs that may not be filed, legs that differ, fields that nobody filled, keys in a file, a target that
    somebody else made. ``demonstration`` takes runs that may not be filed and says so everywhere in the tree.
    MissingError: a leg that was not run, no space. ``attempts`` are the ids of runs to file in place of the newest of
    their legs; the manifest and the README tell of it. ``names`` are looked for beside keys and addresses
    (default: this host and user); ``observe`` is told what takes long.
    """
    if submission.round != pack.round:
        raise ConfigError(f"the entries are for {submission.round}, not {pack.round}", where=project.root)
    _check_submitter(submission)
    placing.check_target(out)
    rows = select(store.runs(), submission, pack, demonstration=demonstration, named=attempts)
    systems = describe_systems(rows, project, submission, pack, demonstration=demonstration)
    with placing.workplace(out) as scratch:
        tree = scratch / "tree"
        tree.mkdir()
        context = Context(
            project=project,
            texts=Texts(project.root / "measurements"),
            pack=pack,
            demonstration=demonstration,
            clone=Clone.from_environment(),
            scratch=scratch,
            names=names or Names.of_this_machine(),
            observe=observe,
        )
        manifests = _build(tree, rows, systems, _submitter(submission, demonstration), context)
        _refuse_keys(manifests)
        previous = placing.place(tree, out)
    return PackageReport(
        out=out,
        demonstration=demonstration,
        rows=tuple(context.packed),
        unknown=tuple(f"{entry.name}: {lack}" for entry in systems.values() for lack in entry.description.lacks),
        findings=tuple(finding for manifest in manifests.values() for finding in manifest.findings),
        notes=tuple(context.notes),
        previous=previous,
    )


def _check_submitter(submission: SubmissionFile) -> None:
    """ConfigError: a submitter that cannot be a folder's name everywhere. None is a field that lacks."""
    name = submission.submitter
    if name and not (_SUBMITTER.fullmatch(name) and name != layout.DEMONSTRATION_SUBMITTER):
        raise ConfigError(
            f"the submitter {name!r} cannot be the name of its folder",
            where="submission.yaml: submitter",
            expected="letters of ASCII, digits and . _ + & - or blanks, a letter or digit at both ends, at most 64;"
            f" not {layout.DEMONSTRATION_SUBMITTER}",
        )


def _submitter(submission: SubmissionFile, demonstration: bool) -> str:
    """The submitter's directory name; that somebody has said it is seen to with the systems' fields."""
    return layout.DEMONSTRATION_SUBMITTER if demonstration else str(submission.submitter)


def _build(
    tree: Path, rows: list[Row], systems: Mapping[tuple[str, str], SystemEntry], submitter: str, context: Context
) -> dict[str, Manifest]:
    manifests = {}
    steps, done = Steps(context.observe, "laying out", len(rows), "rows"), 0
    for division in dict.fromkeys(row.entry.division for row in rows):
        folder = SubmitterFolder(tree / division / submitter, division, context)
        for entry in systems.values():
            if entry.division == division:
                folder.add_system(entry)
        for row in rows:
            if row.entry.division == division:
                steps.at(done)
                folder.add_row(row, systems[division, row.entry.system])
                done += 1
        steps.at(done)
        manifests[f"{division}/{submitter}"] = folder.finish()
    steps.end(done)
    return manifests


def _refuse_keys(manifests: Mapping[str, Manifest]) -> None:
    keys = [
        f"{root}/{finding.path}:{finding.line} {finding.masked}"
        for root, manifest in manifests.items()
        for finding in manifest.findings
        if finding.kind == Kind.KEY.value
    ]
    if keys:
        raise Refused(
            "a key or token stands in a file of the tree: " + "; ".join(keys),
            expected="no secret in any file",
            mend="revoke it, take it out of where it came from, and run again what wrote it into a log",
        )
