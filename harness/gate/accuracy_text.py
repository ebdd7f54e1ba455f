"""Checks of accuracy.txt: the metric as the official checker reads it, and the hash of the whole accuracy log."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

from harness.gate import tree_rules as R  # noqa: N812 - a namespace of constants
from harness.gate.findings import Finding, Severity
from harness.rules import BenchmarkRules, Ruled
from harness.rules.values import Target

NOT_THE_REFERENCES = "not by the reference's evaluator"
"""What the first line of an accuracy.txt of the harness's own says."""

_LINE_END = re.compile(r"\r\n|\n|\r")  # and no other: str.splitlines knows more than the official reader
_HASH = re.compile(r"hash=(.*)")
_OFFICIAL_HASH = re.compile(r"hash=\w+")
_NUMBER = re.compile(r"\d+\.?\d*|\.\d+", re.ASCII)
_SHA256 = re.compile(r"[0-9a-f]{64}")
_PERCENT = 100


@dataclass(frozen=True, slots=True)
class AccuracyText:
    """What an accuracy.txt says.

    ``values`` are the metric's, as far as the official checker reads: up to where it has both a value that reaches the
    target and a hash. ``later`` are the words in the metric's place behind that, ``bad_values`` those that are no
    number and that it breaks on in any division. ``lengths`` are the values that have an upper limit. ``hashes`` is
    what follows ``hash=`` in each such line, ``written`` the hashes of the metric's own lines, which some evaluators
    add. ``ours``: whether the harness wrote the text.
    """

    values: tuple[float, ...]
    later: tuple[str, ...]
    bad_values: tuple[str, ...]
    lengths: tuple[float, ...]
    hashes: tuple[str, ...]
    written: frozenset[str]
    ours: bool

    @property
    def value(self) -> float | None:
        """The accuracy that the official checker puts in its table, None where it has none."""
        return self.values[-1] if self.values else None

    @classmethod
    def parse(cls, text: str, rules: BenchmarkRules, at_least: float) -> AccuracyText:
        """Reads the text line by line, as the official checker does; ``at_least`` is the target."""
        upper = rules.accuracy_upper_pattern
        reader = _Reader(rules.accuracy_pattern.value, None if upper is None else upper.value, at_least)
        for line in _LINE_END.split(text):
            reader.take(line)
        return cls(
            values=tuple(reader.values),
            later=tuple(reader.later),
            bad_values=tuple(reader.bad_values),
            lengths=tuple(reader.lengths),
            hashes=hash_lines(text),
            written=frozenset(reader.written),
            ours=NOT_THE_REFERENCES in text.partition("\n")[0],
        )


def hash_lines(text: str) -> tuple[str, ...]:
    """What follows ``hash=`` in the lines of an accuracy.txt; the last is the accuracy log's."""
    return tuple(match[1] for line in _LINE_END.split(text) if (match := _HASH.fullmatch(line)))


class _Reader:
    """The official checker's way through the lines."""

    def __init__(self, pattern: str, upper: str | None, at_least: float) -> None:
        self.values: list[float] = []
        self.later: list[str] = []
        self.bad_values: list[str] = []
        self.lengths: list[float] = []
        self.written: set[str] = set()
        self._pattern = re.compile(pattern)
        self._upper = None if upper is None else re.compile(upper)
        self._at_least = at_least
        self._hash_seen = self._reached = False

    def take(self, line: str) -> None:
        match = self._pattern.match(line)
        if match is not None:
            self.written.add(hashlib.sha256(line.encode()).hexdigest())
        if self._hash_seen and self._reached:
            self.later += [] if match is None else [match[1]]
            return
        self._hash_seen |= _OFFICIAL_HASH.fullmatch(line) is not None
        value = None if match is None else self._number(match[1])
        if value is not None:
            self.values.append(value)
            self._reached |= value >= self._at_least
        length = None if self._upper is None else self._upper.match(line)
        if length is not None and (number := self._number(length[1])) is not None:
            self.lengths.append(number)

    def _number(self, word: str) -> float | None:
        if _NUMBER.fullmatch(word) and math.isfinite(float(word)):
            return float(word)
        self.bad_values.append(word)
        return None


def check_accuracy_text(
    text: AccuracyText, path: PurePosixPath, rules: BenchmarkRules, target: Ruled[Target], strict: bool
) -> Iterator[Finding]:
    """What is wrong with an accuracy.txt. ``strict`` is every division but open, where accuracy is only reported."""
    yield from _metric(text, path, rules, target.value.key, strict)
    if text.values and not min(text.values) >= target.value.at_least:
        found = f"{target.value.key} {min(text.values)}"
        severity = None if strict else Severity.NOTE
        expected = f"at least {target.value.at_least}"
        yield R.ACCURACY_TARGET.broken(path, found, expected, severity=severity, source=target.source)
    limit = rules.accuracy_upper_limit
    if limit is not None and text.lengths and not max(text.lengths) <= limit.value.at_most:
        found = f"{limit.value.key} {max(text.lengths)}"
        severity = None if strict else Severity.NOTE
        yield R.ACCURACY_LENGTH.broken(
            path, found, f"at most {limit.value.at_most}", severity=severity, source=limit.source
        )
    if text.ours:
        yield R.ACCURACY_OURS.broken(path, "a text that the harness wrote", severity=None if strict else Severity.NOTE)
    yield from _hashes(text, path, strict)


def check_more_targets(text: str, path: PurePosixPath, rules: BenchmarkRules, strict: bool) -> Iterator[Finding]:
    """The benchmark's further targets, each by the lines that begin with its key. The official checker knows of none.

    Where several lines tell one, the least counts.
    """
    for ruled in rules.accuracy_more_targets:
        key, least = ruled.value.key, ruled.value.at_least
        line = re.compile(rf"{re.escape(key)}\W+(\d+(?:\.\d+)?)", re.ASCII)
        told = [float(match[1]) for match in map(line.match, _LINE_END.split(text)) if match is not None]
        expected = f"at least {least}"
        if not told:
            untold = Severity.REVIEW if strict else Severity.NOTE
            found = f"no line with {key} and a number"
            yield R.ACCURACY_METRIC.broken(path, found, expected, severity=untold, source=ruled.source)
        elif not min(told) >= least:
            severity = None if strict else Severity.NOTE
            found = f"{key} {min(told)}"
            yield R.ACCURACY_TARGET.broken(path, found, expected, severity=severity, source=ruled.source)


def _metric(
    text: AccuracyText, path: PurePosixPath, rules: BenchmarkRules, key: str, strict: bool
) -> Iterator[Finding]:
    for word in text.bad_values:
        yield R.ACCURACY_METRIC.broken(path, f"{word} where a number should be")
    if not text.values and not text.bad_values:
        severity = None if strict else Severity.REVIEW
        yield R.ACCURACY_METRIC.broken(path, f"no line with {key} and a number", severity=severity)
    if len(text.values) > 1 or text.later:
        said = ", ".join([*map(str, text.values), *text.later])
        yield R.ACCURACY_METRIC.broken(path, f"{key} in several lines: {said}", severity=Severity.REVIEW)
    most = 1 if rules.accuracy_scale is not None else _PERCENT
    if text.values and max(text.values) > most:
        scale = "a fraction" if rules.accuracy_scale is not None else "percent"
        yield R.ACCURACY_METRIC.broken(path, f"{key} {max(text.values)}", f"{scale}, at most {most}")


def _hashes(text: AccuracyText, path: PurePosixPath, strict: bool) -> Iterator[Finding]:
    if not text.hashes or not _SHA256.fullmatch(text.hashes[-1]):
        found = "no hash line" if not text.hashes else f"hash={text.hashes[-1]}"
        yield R.ACCURACY_HASH.broken(path, found, severity=None if strict else Severity.REVIEW)
    unknown = [hash_ for hash_ in text.hashes[:-1] if hash_ not in text.written]
    if unknown:
        found = f"another hash line before the last, of no line of the text: {unknown[0]}"
        yield R.ACCURACY_HASH.broken(path, found, severity=Severity.REVIEW)
