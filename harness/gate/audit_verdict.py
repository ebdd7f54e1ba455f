"""What the verdict of an audit says: the texts of upstream's run_verification.py, read line by line."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from pathlib import PurePosixPath

from harness.gate import audit_rules as R  # noqa: N812 - a namespace of constants
from harness.gate.accuracy_text import NOT_THE_REFERENCES
from harness.gate.findings import Finding, Rule, Severity
from harness.rules import Ruled
from harness.rules.audits import AuditRules
from harness.rules.values import Range, Target

FAIL = "TEST FAIL"
MEAN = "Mean output tokens"
_SCORE_TITLE = "Verification Summary"
_LENGTH_TITLE = "Verify Output Token Length"
_NUMBER = re.compile(r"\d+\.?\d*|\.\d+", re.ASCII)
_PRINTED_DIGITS = 5e-4  # of a score with three digits after the point
_LOADED = re.compile(r"\bLoaded (\d+) (?:log )?entries\b", re.ASCII)


def values(text: str, label: str) -> list[str]:
    """What stands behind ``<label>: `` in the lines that begin with it."""
    prefix = f"{label}: "
    return [line[len(prefix) :].strip() for line in _lines(text) if line.startswith(prefix)]


def numbers(text: str, label: str) -> list[float]:
    """Those of :func:`values` that are finite decimal numbers."""
    return [float(word) for word in values(text, label) if _NUMBER.fullmatch(word) and math.isfinite(float(word))]


def check_verdict(text: str, path: PurePosixPath, audit: AuditRules) -> Iterator[Finding]:
    """What is wrong with the text of a verdict that is there and readable."""
    lines = set(_lines(text))
    if audit.pass_text.value not in lines:
        yield R.VERDICT.broken(path, f"no line {audit.pass_text.value}", source=audit.pass_text.source)
    elif FAIL in lines:
        yield R.VERDICT.broken(path, f"lines {audit.pass_text.value} and {FAIL}")
    if audit.score is not None:
        yield from _score(text, path, audit.score)
    if audit.mean_output_tokens is not None:
        yield from _length(text, path, audit.mean_output_tokens)
    yield from _counts(text, path, audit)
    yield from _origin(text, path, audit)


def _score(text: str, path: PurePosixPath, ruled: Ruled[Target]) -> Iterator[Finding]:
    least, key = ruled.value.at_least, ruled.value.key
    scores = numbers(text, "Accuracy score")
    if not scores:
        yield R.SCORE.broken(path, "no line Accuracy score: <number>", severity=Severity.REVIEW)
    elif not min(scores) >= least:
        yield R.SCORE.broken(path, f"accuracy score {min(scores)}", f"at least {least}", source=ruled.source)
    yield from _bound(R.SCORE, text, path, "Accuracy", least, ruled.source)
    evaluated = [float(word) for word in re.findall(rf"'{re.escape(key)}':\s([\d.]+)", text) if _NUMBER.fullmatch(word)]
    if scores and evaluated and not abs(evaluated[-1] - scores[-1]) <= _PRINTED_DIGITS:
        yield R.SCORE.broken(path, f"accuracy score {scores[-1]}", f"the evaluator's {key} {evaluated[-1]}")


def _length(text: str, path: PurePosixPath, ruled: Ruled[Range]) -> Iterator[Finding]:
    window, means = ruled.value, numbers(text, MEAN)
    if not means:
        yield R.LENGTH.broken(path, f"no line {MEAN}: <number>", severity=Severity.REVIEW)
    for mean in dict.fromkeys(means):
        if not window.at_least <= mean <= window.at_most:
            expected = f"{window.at_least} to {window.at_most}"
            yield R.LENGTH.broken(path, f"mean output tokens {mean}", expected, source=ruled.source)
    for end, bound in (("Min", window.at_least), ("Max", window.at_most)):
        yield from _bound(R.LENGTH, text, path, end, bound, ruled.source)


def _bound(rule: Rule, text: str, path: PurePosixPath, subject: str, ruled: float, source: str) -> Iterator[Finding]:
    """The threshold that the script was given, and whether it says that it was kept."""
    for said in values(text, f"{subject} threshold"):
        if not (_NUMBER.fullmatch(said) and float(said) == ruled):
            yield rule.broken(path, f"{subject.lower()} threshold {said}", f"{ruled}", source=source)
    for said in values(text, f"{subject} check pass"):
        if said != "True":
            yield rule.broken(path, f"{subject} check pass: {said}", "True")


def _counts(text: str, path: PurePosixPath, audit: AuditRules) -> Iterator[Finding]:
    rows = audit.rows
    said = [*values(text, "Total samples evaluated"), *values(text, "Total samples"), *_LOADED.findall(text)]
    for count in dict.fromkeys(said):
        if count != str(rows.value):
            yield R.COUNT.broken(path, f"a verdict on {count} samples", f"{rows.value}", source=rows.source)


def _origin(text: str, path: PurePosixPath, audit: AuditRules) -> Iterator[Finding]:
    title = _SCORE_TITLE if audit.score is not None else _LENGTH_TITLE
    if title not in text:
        yield R.OURS.broken(path, f"no title with the words {title}")
    elif NOT_THE_REFERENCES in text:
        yield R.OURS.broken(path, "a text that the harness wrote")


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines()]
