"""Checks of accuracy.txt and of the shortened accuracy log beside it."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

from harness.gate import tree_rules as R  # noqa: N812 - a namespace of constants
from harness.gate.findings import Finding, Severity
from harness.gate.index import TreeIndex, Unreadable
from harness.rules import BenchmarkRules, RulePack

NOT_THE_REFERENCES = "not by the reference's evaluator"
"""What the first line of an accuracy.txt of the harness's own says."""

_LINE_END = re.compile(r"\r\n|\n|\r")  # and no other: str.splitlines knows more than the official reader
_HASH = re.compile(r"hash=(.*)")
_NUMBER = re.compile(r"\d+\.?\d*|\.\d+", re.ASCII)
_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class AccuracyText:
    """What an accuracy.txt says: the metric's values in its lines, its hash lines, and whether the harness wrote it.

    ``bad_values`` stand where a value should and are no number: the official checker breaks on them in any division.
    """

    values: tuple[float, ...]
    bad_values: tuple[str, ...]
    hashes: tuple[str, ...]
    ours: bool

    @classmethod
    def parse(cls, text: str, key: str) -> AccuracyText:
        """Reads the text line by line, as the official checker does; ``key`` is the metric's name."""
        lines = _LINE_END.split(text)
        metric = re.compile(rf"'{re.escape(key)}':\s([\d.]+)")
        found = [word for line in lines for word in metric.findall(line)]
        numbers = {word: float(word) for word in found if _NUMBER.fullmatch(word) and math.isfinite(float(word))}
        return cls(
            values=tuple(numbers[word] for word in found if word in numbers),
            bad_values=tuple(word for word in found if word not in numbers),
            hashes=tuple(match[1] for line in lines if (match := _HASH.fullmatch(line))),
            ours=NOT_THE_REFERENCES in text.partition("\n")[0],
        )


def check_accuracy_text(
    text: AccuracyText, path: PurePosixPath, rules: BenchmarkRules, strict: bool
) -> Iterator[Finding]:
    """What is wrong with an accuracy.txt. ``strict`` is every division but open, where accuracy is only reported."""
    milder = None if strict else Severity.REVIEW
    target = rules.accuracy_target.value
    for word in text.bad_values:
        yield R.ACCURACY_METRIC.broken(path, f"{target.key} {word}, which is no number")
    if len(text.values) != 1:
        found = f"{len(text.values)} lines '{target.key}': <number>"
        yield R.ACCURACY_METRIC.broken(path, found, severity=milder)
    if text.values and min(text.values) < target.at_least:
        found = f"{target.key} {min(text.values)}"
        severity = None if strict else Severity.NOTE
        expected = f"at least {target.at_least}"
        yield R.ACCURACY_TARGET.broken(path, found, expected, severity=severity, source=rules.accuracy_target.source)
    if text.ours:
        yield R.ACCURACY_OURS.broken(path, "a text that the harness wrote", severity=None if strict else Severity.NOTE)
    if len(text.hashes) != 1 or not _SHA256.fullmatch(text.hashes[0]):
        found = "no hash line" if not text.hashes else "hash=" + " and hash=".join(text.hashes)
        yield R.ACCURACY_HASH.broken(path, found, severity=milder)


def check_shortened_log(
    index: TreeIndex, path: PurePosixPath, text: AccuracyText | None, pack: RulePack
) -> Iterator[Finding]:
    """What is wrong with a filed accuracy log: its size, its two ends, and, where it is whole, its hash."""
    node, limit = index.file(path), pack.accuracy_log_max_bytes
    if node is None or node.bytes == 0:
        return  # told among the files of the row
    if node.bytes > limit.value:
        yield R.ACCURACY_LOG_SIZE.broken(path, f"{node.bytes} bytes", f"at most {limit.value}", source=limit.source)
        return
    try:
        content = index.read(path)
    except Unreadable as error:
        yield R.ACCURACY_LOG.broken(path, str(error))
        return
    if not content.startswith(b"[") or not content.rstrip().endswith(b"]"):
        yield R.ACCURACY_LOG.broken(path, "no array from [ to ]")
    if is_shortened(content, pack):
        return
    hashes = text.hashes if text is not None else ()
    if len(hashes) == 1 and _SHA256.fullmatch(hashes[0]) and index.sha256(path) != hashes[0]:
        yield R.ACCURACY_HASH.broken(path, "a whole log with another hash than accuracy.txt tells", hashes[0])


def is_shortened(content: bytes, pack: RulePack) -> bool:
    """Whether a log has the separator just where shortening puts it."""
    return content.startswith(pack.accuracy_log_separator.value.encode(), pack.accuracy_log_kept_bytes.value)
