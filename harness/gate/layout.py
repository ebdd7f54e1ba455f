"""Checks of a tree's structure: what must be there, what may not, and what nobody expects there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath

from harness.gate import tree_rules as R  # noqa: N812 - a namespace of constants
from harness.gate.findings import Finding, Severity
from harness.gate.index import Node, TreeIndex
from harness.rules import RulePack

_AT_ROOT = (".md", ".pdf")
_IN_SUBMITTER = {"systems", "src", "documentation", "results"}
_FILES_IN_SUBMITTER = {"MANIFEST.json", "DEMONSTRATION", "model_mapping.json", "calibration.md", "README.md", "LICENSE"}


def check_names(index: TreeIndex, pack: RulePack, submitters: Iterable[PurePosixPath]) -> Iterator[Finding]:
    """Links, odd files, odd names and empty folders below the submitters, and strays above them."""
    yield from _above(index, pack)
    chosen = set(submitters)
    for node in index.nodes.values():
        if PurePosixPath(*node.path.parts[:2]) in chosen:
            yield from _node(index, node)


def _above(index: TreeIndex, pack: RulePack) -> Iterator[Finding]:
    for node in index.children(PurePosixPath()):
        name = node.path.name
        if node.kind == "link":
            yield R.LINK.broken(node.path, "a symbolic link")
        elif node.kind == "folder" and name not in pack.divisions.value:
            near = next((d for d in pack.divisions.value if d == name.casefold()), None)
            mend = f"did you mean {near!r}? The official checker ignores this folder" if near else None
            severity = Severity.REJECT if near else None
            yield R.STRAY.broken(node.path, "a folder that is no division", mend=mend, severity=severity)
        elif node.kind == "file" and node.path.suffix not in _AT_ROOT:
            yield R.STRAY.broken(node.path, "a loose file", severity=Severity.NOTE)
    for division in pack.divisions.value:
        for node in index.children(PurePosixPath(division)):
            if node.kind == "link":
                yield R.LINK.broken(node.path, "a symbolic link")
            elif node.kind == "file":
                yield R.STRAY.broken(node.path, "a file among the submitters")


def _node(index: TreeIndex, node: Node) -> Iterator[Finding]:
    name = node.path.name
    if node.kind == "link":
        yield R.LINK.broken(node.path, "a symbolic link")
    elif node.kind == "other":
        yield R.SPECIAL.broken(node.path, "neither a file nor a folder")
    # A submitter's own name may have blanks: there are published ones.
    if name.startswith(".") or name == "__pycache__" or (" " in name and len(node.path.parts) > 2):
        yield R.NAME.broken(node.path, f"the name {name!r}")
    if node.kind == "folder" and not index.children(node.path) and node.path not in index.unreadable:
        yield R.EMPTY_FOLDER.broken(node.path, "an empty folder")


def check_submitter_folder(index: TreeIndex, folder: PurePosixPath) -> Iterator[Finding]:
    """What a submitter's folder must hold beside its results."""
    if not index.is_folder(folder / "results"):
        yield R.SUBMITTER.broken(folder, "no results folder")
    yield from _source(index, folder)
    yield from _documents(index, folder)
    yield from _unused_systems(index, folder)
    for node in index.children(folder):
        known = _IN_SUBMITTER if node.kind == "folder" else _FILES_IN_SUBMITTER
        if node.path.name not in known and node.kind in ("folder", "file"):
            yield R.STRAY.broken(node.path, f"a {node.kind} beside the layout", severity=Severity.NOTE)
    results = folder / "results"
    systems = [results / name for name in index.folders(results)]
    benchmarks = [system / name for system in systems for name in index.folders(system)]
    for place in (results, *systems, *benchmarks):
        for node in index.children(place):
            if node.kind == "file":
                yield R.STRAY.broken(node.path, "a file among folders of results", severity=Severity.NOTE)


def _source(index: TreeIndex, folder: PurePosixPath) -> Iterator[Finding]:
    source = folder / "src"
    if not index.is_folder(source):
        yield R.SOURCE.broken(source, "no such folder")
    elif not any(node.bytes for node in index.files_below(source)):
        yield R.SOURCE_EMPTY.broken(source, "no file with any content")


def _documents(index: TreeIndex, folder: PurePosixPath) -> Iterator[Finding]:
    severity = Severity.NOTE if folder.parts[0] == "open" else None
    documents = folder / "documentation"
    wanted = (
        (R.CALIBRATION, (documents / "calibration.md", folder / "calibration.md")),
        (R.BANDWIDTH, (documents / "bandwidth.md", documents / "bandwidth.adoc")),
    )
    for rule, places in wanted:
        if not any((node := index.file(place)) is not None and node.bytes for place in places):
            yield rule.broken(places[0], "no such file, or an empty one", severity=severity)


def _unused_systems(index: TreeIndex, folder: PurePosixPath) -> Iterator[Finding]:
    for node in index.children(folder / "systems"):
        if node.path.suffix == ".json" and not index.is_folder(folder / "results" / node.path.stem):
            yield R.UNUSED_SYSTEM.broken(node.path, "a system without results")
