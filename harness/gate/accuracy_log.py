"""Checks of the filed accuracy log: its size, its two ends, and, where it is whole, what it covers and its hash."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath

from harness.gate import tree_rules as R  # noqa: N812 - a namespace of constants
from harness.gate.findings import Finding
from harness.gate.index import TreeIndex, Unreadable
from harness.gate.run import unreadable
from harness.gate.run_facts import Coverage
from harness.logs import AccuracyLog, LogError
from harness.rules import RulePack


def check_accuracy_log(
    index: TreeIndex, path: PurePosixPath, hashes: tuple[str, ...], pack: RulePack, rows: int
) -> tuple[Coverage | None, list[Finding]]:
    """What a whole log covers of ``rows`` (None for one that is shortened or bad), and what is wrong with the file.

    ``hashes`` are the hash lines of accuracy.txt.
    """
    node, limit = index.file(path), pack.accuracy_log_max_bytes
    if node is None or node.bytes == 0:
        return None, []  # told among the files of the row
    if node.bytes > limit.value:
        size = f"{node.bytes} bytes"
        return None, [R.ACCURACY_LOG_SIZE.broken(path, size, f"at most {limit.value}", source=limit.source)]
    try:
        content = index.read(path)
    except Unreadable as error:
        return None, [R.ACCURACY_LOG.broken(path, str(error))]
    findings = list(_ends(path, content))
    if is_shortened(content, pack):
        return None, findings
    if hashes and index.sha256(path) != hashes[-1]:
        findings.append(
            R.ACCURACY_HASH.broken(path, "a whole log with another hash than accuracy.txt tells", hashes[-1])
        )
    try:
        return Coverage.of(AccuracyLog(index.locate(path)), rows), findings
    except LogError as error:
        return None, [*findings, unreadable(error, str(path))]


def _ends(path: PurePosixPath, content: bytes) -> Iterator[Finding]:
    if not content.startswith(b"[") or not content.rstrip().endswith(b"]"):
        yield R.ACCURACY_LOG.broken(path, "no array from [ to ]")


def is_shortened(content: bytes, pack: RulePack) -> bool:
    """Whether a log has the separator just where shortening puts it."""
    return content.startswith(pack.accuracy_log_separator.value.encode(), pack.accuracy_log_kept_bytes.value)
