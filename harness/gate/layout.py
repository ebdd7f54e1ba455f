"""Checks of a tree's structure: what must be there, what may not, and what nobody expects there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath

from harness.gate import tree_rules as R  # noqa: N812 - a namespace of constants
from harness.gate.file_lists import TABLE, check_old_tables, check_sizes
from harness.gate.findings import Finding, Severity
from harness.gate.index import Node, TreeIndex
from harness.gate.link_targets import Target, target_of
from harness.gate.rulings import accepted, ruling_of
from harness.gate.system_description import claims_datacenter
from harness.rules import RulePack

_PARTS_OF_A_ROW = 6
"""Of the path of its folder: division, submitter, results, system, benchmark, scenario."""
_AT_ROOT = (".md", ".pdf")
_OF_A_REPOSITORY = {".git", ".github", "assets"}
"""What the repository of a round has beside the divisions."""
_FILES_IN_SUBMITTER = {"MANIFEST.json", "DEMONSTRATION", "model_mapping.json", "calibration.md", "README.md", "LICENSE"}


def check_names(index: TreeIndex, pack: RulePack, submitters: Iterable[PurePosixPath]) -> Iterator[Finding]:
    """Links, odd files, odd names and empty folders below the submitters, and strays above them."""
    yield from _above(index, pack)
    yield from check_old_tables(index)
    chosen = set(submitters)
    for node in index.nodes.values():
        if PurePosixPath(*node.path.parts[:2]) in chosen:
            yield from _node(index, node)


def _above(index: TreeIndex, pack: RulePack) -> Iterator[Finding]:
    for node in index.children(PurePosixPath()):
        name = node.path.name
        if node.kind == "link":
            yield _link(index, node)
        elif node.kind == "folder" and name not in (*pack.divisions.value, *_OF_A_REPOSITORY):
            near = next((d for d in pack.divisions.value if d == name.casefold()), None)
            mend = f"did you mean {near!r}? The official checker ignores this folder" if near else None
            severity = Severity.REJECT if near else None
            yield R.STRAY.broken(node.path, "a folder that is no division", mend=mend, severity=severity)
        elif node.kind == "file" and node.path.suffix not in _AT_ROOT and name != TABLE:
            yield R.STRAY.broken(node.path, "a loose file", severity=Severity.NOTE)
    for division in pack.divisions.value:
        for node in index.children(PurePosixPath(division)):
            if node.kind == "link":
                yield _link(index, node)
            elif node.kind == "file":
                yield R.STRAY.broken(node.path, "a file among the submitters")


def _node(index: TreeIndex, node: Node) -> Iterator[Finding]:
    name = node.path.name
    if node.kind == "link":
        yield _link(index, node)
    elif node.kind == "other":
        yield R.SPECIAL.broken(node.path, "neither a file nor a folder")
    # A submitter's own name may have blanks: there are published ones.
    if name.startswith(".") or name == "__pycache__" or (" " in name and len(node.path.parts) > 2):
        yield R.NAME.broken(node.path, f"the name {name!r}")
    elif not name.isprintable():
        # Its table of results, in UTF-8, names the folders that lead to each.
        severity = None if _is_text(name) or not _leads_to_a_result(node) else Severity.REJECT
        yield R.NAME.broken(node.path, f"the name {name!r}, which not every program can print", severity=severity)
    if node.kind == "folder" and not index.children(node.path) and node.path not in index.unreadable:
        yield R.EMPTY_FOLDER.broken(node.path, "an empty folder")


def _is_text(name: str) -> bool:
    try:
        return bool(name.encode("utf-8"))
    except UnicodeEncodeError:
        return False


def _leads_to_a_result(node: Node) -> bool:
    parts = node.path.parts
    return node.kind == "folder" and (len(parts) == 2 or (parts[2] == "results" and len(parts) <= _PARTS_OF_A_ROW))


def _link(index: TreeIndex, node: Node) -> Finding:
    """The official checker follows a link; the gate does not, so that only one that hides nothing is no refusal."""
    target = target_of(index, node)
    if target is Target.FILE or (target is Target.FOLDER and "src" in node.path.parts[2:3]):
        found = f"a symbolic link to {target.value}: it is not followed, what hangs on it counts as absent"
        return R.LINK.broken(node.path, found, severity=Severity.REVIEW)
    return R.LINK.broken(node.path, f"a symbolic link to {target.value}")


def check_submitter_folder(index: TreeIndex, folder: PurePosixPath, pack: RulePack) -> Iterator[Finding]:
    """What a submitter's folder must hold beside its results."""
    if not index.is_folder(folder / "results"):
        yield R.SUBMITTER.broken(folder, "no results folder")
    yield from check_sizes(index, folder, pack)
    yield from _source(index, folder)
    yield from _calibration(index, folder, pack)
    yield from _bandwidth(index, folder, pack)
    yield from _unused_systems(index, folder)
    for node in index.children(folder):
        known = pack.tree.direct_folders.value if node.kind == "folder" else _FILES_IN_SUBMITTER
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
        by_the_text = index.is_folder(folder / "code")
        mend = "rename code to src: the rules' text says code, the checker asks for src" if by_the_text else None
        yield R.SOURCE.broken(source, "no such folder" + (", but one named code" if by_the_text else ""), mend=mend)
    elif not any(node.bytes for node in index.files_below(source)):
        yield R.SOURCE_EMPTY.broken(source, "no file with any content")


def _calibration(index: TreeIndex, folder: PurePosixPath, pack: RulePack) -> Iterator[Finding]:
    places = pack.tree.calibration.value
    if any(index.has_content(folder / name) for name in places):
        return
    if (otherwise := _otherwise_named(index, folder, pack)) is not None:
        yield otherwise
        return
    severity = Severity.NOTE if folder.parts[0] == "open" else None
    expected = " or ".join(places)
    yield R.CALIBRATION.broken(folder / places[-1], "no such file, or an empty one", expected, severity=severity)


def _otherwise_named(index: TreeIndex, folder: PurePosixPath, pack: RulePack) -> Finding | None:
    """A calibration document by the name that only one of two texts knows."""
    ruling = ruling_of(pack, "CALIBRATION-NAME")
    names = ruling.accepted if ruling is not None else ()
    there = [name for name in names if index.has_content(folder / name)]
    return accepted(ruling, there[0], folder / there[0]) if ruling is not None and there else None


def _bandwidth(index: TreeIndex, folder: PurePosixPath, pack: RulePack) -> Iterator[Finding]:
    """Asked for where a system of the datacenter category has results, or one that nobody can tell the category of."""
    systems = index.folders(folder / "results")
    if not any(claims_datacenter(index, folder / "systems" / f"{name}.json") for name in systems):
        return
    places = pack.tree.bandwidth.value
    if not any(index.has_content(folder / name) for name in places):
        severity = Severity.NOTE if folder.parts[0] == "open" else None
        expected = " or ".join(places)
        yield R.BANDWIDTH.broken(folder / places[-1], "no such file, or an empty one", expected, severity=severity)


def _unused_systems(index: TreeIndex, folder: PurePosixPath) -> Iterator[Finding]:
    for node in index.children(folder / "systems"):
        if node.path.suffix == ".json" and not index.is_folder(folder / "results" / node.path.stem):
            yield R.UNUSED_SYSTEM.broken(node.path, "a system without results")
