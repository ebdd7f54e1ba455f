"""What an accuracy.txt tells beside the number that is judged: the scores of parts, in the tables of two evaluators."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from harness.gate.accuracy_text import AccuracyText
from harness.report.book.content import Subset
from harness.rules import BenchmarkRules
from harness.rules.values import Ruled, Target

_LINES: Final = re.compile(r"\r\n|\n|\r")
_COUNT: Final = r"\s+(\d{1,12})"
_OURS: Final = re.compile(rf"(\S+)({_COUNT}){{6}}\s+(-|\d+\.\d+)\s*", re.ASCII)
"""subset, samples, repeats, correct, wrong, failed, unscored, mean tokens: the table of this harness."""
_REFERENCES: Final = re.compile(rf"(\S+){_COUNT}{_COUNT}{_COUNT}\s+\d+\.\d+\s+\d+\.\d+%\s*", re.ASCII)
"""Dataset, Correct, Total, Repeats, Score, Accuracy: the table of the reference's evaluator."""


def subsets_of(text: str) -> tuple[Subset, ...]:
    """The parts that a text tells of, none where it has no table. A name that is told again is not taken again."""
    found: dict[str, Subset] = {}
    for line in _LINES.split(text):
        subset = _of_ours(line) or _of_the_reference(line)
        if subset is not None:
            found.setdefault(subset.name, subset)
    return tuple(found.values())


def scores_of(text: str, rules: BenchmarkRules, target: Ruled[Target]) -> dict[str, float]:
    """The figures of a text by the round's keys, the judged one first: each as the official checker would take it, of
    further targets the least.
    """
    read = AccuracyText.parse(text, rules, target.value.at_least)
    found = {} if read.value is None else {target.value.key: read.value}
    for ruled in rules.accuracy_more_targets:
        if told := [float(match[1]) for match in _told(text, ruled.value.key)]:
            found[ruled.value.key] = min(told)
    upper = rules.accuracy_upper_limit
    if upper is not None and read.lengths:
        found[upper.value.key] = max(read.lengths)
    return found


def _told(text: str, key: str) -> Iterator[re.Match[str]]:
    line = re.compile(rf"{re.escape(key)}\W+(\d+(?:\.\d+)?)", re.ASCII)
    return (match for match in map(line.match, _LINES.split(text)) if match is not None)


def _of_ours(line: str) -> Subset | None:
    if _OURS.fullmatch(line) is None:
        return None
    name, *cells = line.split()
    samples, _, correct, wrong, failed, unscored = map(int, cells[:-1])
    if correct + wrong + failed + unscored != samples:
        return None
    return Subset(name, samples, correct, wrong, failed, unscored, None if cells[-1] == "-" else float(cells[-1]))


def _of_the_reference(line: str) -> Subset | None:
    """Its evaluator counts wrong whatever is not right."""
    match = _REFERENCES.fullmatch(line)
    if match is None:
        return None
    correct, total = int(match[2]), int(match[3])
    return Subset(match[1], total, correct, total - correct, 0, 0, None) if correct <= total else None
