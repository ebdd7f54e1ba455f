"""Which row, and which of the round's layouts its files have."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

from harness.gate import tree_rules as R  # noqa: N812 - a namespace of constants
from harness.gate.findings import Finding, Severity
from harness.gate.index import TreeIndex
from harness.rules import Ruled, RulePack
from harness.rules.values import LayoutName

RUN = PurePosixPath("performance/run_1")
ACCURACY_FOLDER = PurePosixPath("accuracy")
_DETAILS = ("performance_detail", "accuracy_detail")
"""The files by which the official checker tells the layouts apart."""
_SHARED = ("measurements", "readme")
"""The files that both layouts have."""


@dataclass(frozen=True, slots=True)
class RowPlace:
    """Which row: its folder in the tree and the names that lead there. ``benchmark`` is the official name, ``scenario``
    the round's spelling of the folder's.
    """

    folder: PurePosixPath
    division: str
    submitter: str
    system: str
    benchmark: str
    scenario: str

    @property
    def strict(self) -> bool:
        """Whether the rules of closed hold: everywhere but in open."""
        return self.division != "open"

    def __str__(self) -> str:
        return f"{self.division}/{self.submitter}/{self.system}/{self.folder.parent.name}/{self.folder.name}"


def layout_of(
    index: TreeIndex, folder: PurePosixPath, pack: RulePack, layouts: Ruled[list[LayoutName]] | None
) -> tuple[LayoutName, list[Finding]]:
    """The layout to check a row by, and what is wrong with the choice. ``layouts`` are those of the benchmark, its own
    first; None where nobody knows them.

    The official checker takes a row for the endpoints client's where neither of LoadGen's detail logs is there.
    """
    details = [name for name in _loadgen_files(pack, *_DETAILS) if (folder / name) in index.nodes]
    theirs = [name for name in _endpoints_files(pack) if (folder / name) in index.nodes]
    layout = _chosen(index, folder, pack, details, theirs) or ("loadgen" if layouts is None else layouts.value[0])
    found = list(_doubts(folder, pack, details, theirs))
    if layouts is not None and layout not in layouts.value:
        allowed = " or ".join(layouts.value)
        found.append(R.ROW_LAYOUT.broken(folder, f"the {layout} layout", allowed, source=layouts.source))
    return layout, found


def _chosen(
    index: TreeIndex, folder: PurePosixPath, pack: RulePack, details: list[str], theirs: list[str]
) -> LayoutName | None:
    if details:
        return "loadgen"
    if theirs:
        return "endpoints"
    own = [role for role in pack.layouts.loadgen.files if role not in _SHARED]
    return "loadgen" if any(index.file(folder / name) for name in _loadgen_files(pack, *own)) else None


def _doubts(folder: PurePosixPath, pack: RulePack, details: list[str], theirs: list[str]) -> Iterator[Finding]:
    if len(details) == 1:
        yield R.ROW_LAYOUT.broken(folder, f"of LoadGen's two detail logs {details[0]} alone")
    elif not details and not theirs:
        found = "neither LoadGen's detail logs" + (
            f", and {pack.round} has no other layout"
            if pack.layouts.endpoints is None
            else " nor any report of the endpoints client"
        )
        yield R.ROW_LAYOUT.broken(folder, found)
    if details and theirs:
        found = f"LoadGen's logs, and of the endpoints client {', '.join(theirs)}"
        yield R.ROW_LAYOUT.broken(folder, found, severity=Severity.REVIEW)


def _loadgen_files(pack: RulePack, *roles: str) -> list[str]:
    return [pack.layouts.loadgen.files[role].value for role in roles]


def _endpoints_files(pack: RulePack) -> list[str]:
    """The files that only the endpoints client's layout has; none where the round has no such layout."""
    if pack.layouts.endpoints is None:
        return []
    values = [ruled.value for role, ruled in pack.layouts.endpoints.files.items() if role not in _SHARED]
    return [name for value in values for name in ([value] if isinstance(value, str) else value)]
