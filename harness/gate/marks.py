"""Marks of what is no result: stand-ins, scripted engines, short runs. A tree that says so is a demonstration."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any

from harness.gate import tree_rules as R  # noqa: N812 - a namespace of constants
from harness.gate.findings import Finding, Severity
from harness.gate.index import TreeIndex, Unreadable

LABEL = "DEMONSTRATION"
"""The file in the submitter's folder by which a tree says that it is a demonstration."""

_PHRASES = re.compile(
    r"\bDEMONSTRATION\b|\(demonstration\)|\bnot submittable\b|\bstand-in (?:data set|checkpoint)\b"
    r"|\bdata set is a stand-in\b|\bscripted engine\b"
)
_READ = ("README.md", "accuracy.txt", "measurements.json", "calibration.md", "bandwidth.md")


def is_labelled(index: TreeIndex, submitter: PurePosixPath) -> bool:
    """Whether a submitter's folder says that it is a demonstration."""
    return index.file(submitter / LABEL) is not None


def check_marks(index: TreeIndex, submitter: PurePosixPath, manifest: Mapping[str, Any] | None) -> Iterator[Finding]:
    """Each mark, as a review where the folder is labelled as a demonstration and as a reject where it is not."""
    severity = Severity.REVIEW if is_labelled(index, submitter) else Severity.REJECT
    for path, found in _marks(index, submitter, manifest):
        yield R.MARK.broken(path, found, severity=severity)
    said = manifest.get("demonstration") if manifest is not None else None
    if said is not None and said is not is_labelled(index, submitter):
        state = "a" if is_labelled(index, submitter) else "no"
        yield R.LABEL.broken(submitter, f"{state} {LABEL} file, and demonstration {said!r} in the manifest")


def _marks(
    index: TreeIndex, submitter: PurePosixPath, manifest: Mapping[str, Any] | None
) -> Iterator[tuple[PurePosixPath, str]]:
    if is_labelled(index, submitter):
        yield submitter / LABEL, "a demonstration, no submission"
    for node in index.files_below(submitter):
        inside = node.path.relative_to(submitter)
        if inside.parts[0] == "src" or not (node.path.name in _READ or inside.parts[0] == "systems"):
            continue  # source code may speak of anything
        try:
            text = index.read_text(node.path)
        except Unreadable:
            continue  # told where the file itself is checked
        phrases = dict.fromkeys(match.group() for match in _PHRASES.finditer(text))
        if phrases:
            yield node.path, "it says: " + ", ".join(phrases)
    for row in _rows(manifest):
        reasons = row.get("not_submittable")
        if reasons:
            text = ", ".join(map(str, reasons)) if isinstance(reasons, list) else str(reasons)
            yield (
                submitter / "MANIFEST.json",
                f"{row.get('system')}/{row.get('benchmark')}/{row.get('scenario')}: {text}",
            )


def _rows(manifest: Mapping[str, Any] | None) -> list[Mapping[str, Any]]:
    rows = manifest.get("rows") if manifest is not None else None
    return [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
