"""Which files a tree may have: none too large, in a run's folder those of the layout, no table of another run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath

from harness.gate import file_rules as R  # noqa: N812 - a namespace of constants
from harness.gate.findings import Finding, Severity
from harness.gate.index import TreeIndex
from harness.rules import RulePack

TABLE = "summary.csv"
"""What the official checker calls its table where nobody says otherwise."""
TRACE = "mlperf_log_trace.json"
"""What LoadGen writes beside its logs, mostly empty; nobody reads it."""


def check_sizes(index: TreeIndex, submitter: PurePosixPath, pack: RulePack) -> Iterator[Finding]:
    """Files below a submitter that are larger than the round's limit."""
    limit = pack.tree.file_max_bytes
    for node in index.files_below(submitter):
        if node.bytes > limit.value:
            expected = f"at most {limit.value} bytes"
            yield R.SIZE.broken(node.path, f"{node.bytes} bytes", expected, source=limit.source)


def check_file_lists(index: TreeIndex, row: PurePosixPath, pack: RulePack) -> Iterator[Finding]:
    """What lies in the folders of a row's two LoadGen runs and is not of the layout; what lacks is told elsewhere."""
    for folder, names in _listed(pack).items():
        for node in index.children(row / folder):
            name = node.path.name
            if name in names or node.kind == "link":  # a link is told of as one
                continue
            severity = Severity.NOTE if name == TRACE and node.kind == "file" else None
            yield R.FILE_LIST.broken(node.path, f"a {node.kind} {name}", ", ".join(sorted(names)), severity=severity)


def check_old_tables(index: TreeIndex) -> Iterator[Finding]:
    """Tables of the official checker in the tree or beside it."""
    for node in index.nodes.values():
        if node.path.name == TABLE and node.kind == "file":
            yield R.OLD_TABLE.broken(node.path, "a table that is not of this run")
    if (index.root.resolve().parent / TABLE).is_file():
        yield R.OLD_TABLE.broken(f"../{TABLE}", "a table beside the tree that is not of this run")


def _listed(pack: RulePack) -> dict[PurePosixPath, set[str]]:
    """The folders of LoadGen's layout below the row's own, each with the names it may hold."""
    layout = pack.layouts.loadgen
    must = [PurePosixPath(ruled.value) for ruled in layout.files.values()]
    may = [PurePosixPath(name) for name in layout.optional_files.value]
    names: dict[PurePosixPath, set[str]] = {path.parent: set() for path in must if path.parent != PurePosixPath()}
    for path in (*must, *may):
        if path.parent in names:
            names[path.parent].add(path.name)
    return names
