"""Checks of a submitter's MANIFEST.json against the files that lie there. It is read as a stranger would read it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any

from harness.gate import tree_rules as R  # noqa: N812 - a namespace of constants
from harness.gate.accuracy_text import hash_lines
from harness.gate.findings import Finding
from harness.gate.index import TreeIndex, Unreadable
from harness.gate.row_layout import ACCURACY_FOLDER, RowPlace
from harness.gate.row_loadgen import ACCURACY_TXT

NAME = "MANIFEST.json"


def read_manifest(index: TreeIndex, submitter: PurePosixPath) -> tuple[dict[str, Any] | None, list[Finding]]:
    """The manifest of a submitter's folder, or None and why."""
    path = submitter / NAME
    if index.file(path) is None:
        return None, [R.MANIFEST_ABSENT.broken(path, "no such file")]
    try:
        manifest = index.read_object(path)
    except Unreadable as error:
        return None, [R.MANIFEST.broken(path, str(error))]
    bad = [key for key in ("files", "rows") if _objects(manifest.get(key)) != manifest.get(key)]
    if bad:
        return None, [R.MANIFEST.broken(path, f"no list of objects under {', '.join(bad)}")]
    return manifest, []


def check_manifest(
    index: TreeIndex, submitter: PurePosixPath, manifest: Mapping[str, Any], rows: Iterable[RowPlace], round_: str
) -> Iterator[Finding]:
    """What the manifest and the folder say differently: files, hashes, rows, fingerprints, round."""
    path = submitter / NAME
    if manifest.get("round") != round_:
        yield R.MANIFEST_ROUND.broken(path, f"round {manifest.get('round')!r}", round_)
    yield from _files(index, submitter, manifest["files"])
    yield from _rows(path, manifest["rows"], rows)
    yield from _shortened(index, submitter, manifest.get("truncated"))


def _files(index: TreeIndex, submitter: PurePosixPath, entries: list[dict[str, Any]]) -> Iterator[Finding]:
    listed = {submitter / NAME}
    for entry in entries:
        name, wanted = entry.get("path"), entry.get("sha256")
        if not isinstance(name, str) or not isinstance(wanted, str):
            yield R.MANIFEST.broken(submitter / NAME, f"an entry without path or sha256: {entry}")
            continue
        path = submitter / name
        listed.add(path)
        if index.file(path) is None:  # also what leads out of the tree
            yield R.MANIFEST_FILE.broken(path, "no such file")
            continue
        try:
            found = index.sha256(path)
        except Unreadable as error:
            yield R.MANIFEST_FILE.broken(path, str(error))
            continue
        if found != wanted:
            yield R.MANIFEST_HASH.broken(path, f"sha256 {found}", wanted)
    for node in index.files_below(submitter):
        if node.path not in listed:
            yield R.MANIFEST_EXTRA.broken(node.path, "a file that the manifest does not list")


def _rows(path: PurePosixPath, entries: list[dict[str, Any]], places: Iterable[RowPlace]) -> Iterator[Finding]:
    fingerprints: dict[str, set[str]] = {}
    for entry in entries:
        keys = [str(entry.get(key)) for key in ("division", "system", "benchmark", "scenario")]
        own = entry.get("fingerprint")
        marks = {str(own), *(str(leg.get("fingerprint", own)) for leg in _objects(entry.get("legs")))}
        fingerprints.setdefault("/".join(keys), set()).update(marks)
    for row, marks in fingerprints.items():
        if len(marks) > 1:
            yield R.FINGERPRINT.broken(path, f"{row}: fingerprints " + ", ".join(sorted(m[:12] for m in marks)))
    there = {f"{p.division}/{p.system}/{p.folder.parent.name}/{p.scenario}" for p in places}
    for row in sorted(there - fingerprints.keys()):
        yield R.MANIFEST_ROW.broken(path, f"no row {row}")
    for row in sorted(fingerprints.keys() - there):
        yield R.MANIFEST_ROW.broken(path, f"a row {row} that the tree has not")


def _shortened(index: TreeIndex, submitter: PurePosixPath, entries: object) -> Iterator[Finding]:
    """The hash of each whole accuracy log must be the one that accuracy.txt tells."""
    for entry in _objects(entries):
        folder = submitter / str(entry.get("path")).rpartition("/")[0]
        if folder.name != ACCURACY_FOLDER.name:
            continue
        try:
            hashes = hash_lines(index.read_text(folder / ACCURACY_TXT))
        except Unreadable:
            continue  # told where the file itself is checked
        if hashes[-1:] != (entry.get("sha256_full"),):
            found = f"hash {hashes[-1] if hashes else 'absent'}"
            yield R.ACCURACY_HASH.broken(folder / ACCURACY_TXT, found, f"{entry.get('sha256_full')}, by the manifest")


def _objects(value: object) -> list[dict[str, Any]]:
    """The objects of a JSON list; none where it is no list."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
