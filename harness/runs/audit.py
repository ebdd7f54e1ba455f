"""The verdict on an audit's answers: the number, held against the round's threshold, and the text that says so.

The text has the lines that upstream's run_verification.py writes, so that one reader reads both; its own first line
says who wrote it. What passes is decided on the unrounded number.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from harness.benchmarks.base import Benchmark, Score
from harness.gate.accuracy_text import NOT_THE_REFERENCES
from harness.gate.audit_verdict import FAIL, MEAN
from harness.ledger.record import AuditEcho
from harness.rules.audits import AuditRules

VERIFIER = "mlperf-inference-harness"
MEAN_KEY = "mean_output_tokens"


@dataclass(frozen=True, slots=True)
class AuditVerdict:
    """What an audit came to, and the text of its verdict file, each line ended."""

    echo: AuditEcho
    text: str


@dataclass(frozen=True, slots=True)
class Lengths:
    """Lengths of the answers of a log, in tokens."""

    count: int
    total: int
    total_of_squares: int
    shortest: int
    longest: int

    @classmethod
    def of(cls, lengths: Iterable[int]) -> Lengths:
        """Counts them; all zero where there is none."""
        count = total = squares = longest = 0
        shortest: int | None = None
        for length in lengths:
            count += 1
            total += length
            squares += length * length
            longest = max(longest, length)
            shortest = length if shortest is None else min(shortest, length)
        return cls(count, total, squares, shortest or 0, longest)

    @property
    def mean(self) -> float | None:
        """Tokens an answer; None where there is none."""
        return self.total / self.count if self.count else None

    @property
    def deviation(self) -> float:
        """Standard deviation over all answers (they are no sample of others); 0 where there is none."""
        if not self.count:
            return 0.0
        return math.sqrt(self.count * self.total_of_squares - self.total**2) / self.count


def judge_score(score: Score | None, benchmark: Benchmark, audit: AuditRules) -> AuditVerdict:
    """TEST07's kind: the score of answers that were given while speed was measured.

    ``score`` is None where the log does not hold each row once; nothing is scored then.
    """
    if audit.score is None:
        raise ValueError("the audit has no score to reach")
    least, key = audit.score.value.at_least, audit.score.value.key
    value = None if score is None else score.value
    passed = value is not None and value >= least
    said = f"{value:.3f}" if value is not None else f"none ({_why_none(score)})"
    lines = [
        *([f"Written by {VERIFIER}, {NOT_THE_REFERENCES}."] if score is None else []),
        "",
        "TEST07 Verification Summary",
        f"Accuracy score: {said}",
        f"Accuracy threshold: {least}",
        f"Accuracy check pass: {passed}",
        audit.pass_text.value if passed else FAIL,
    ]
    scored = "" if score is None else benchmark.accuracy_text(score)
    return AuditVerdict(_echo(audit, key, value, least, None, passed), scored + _text(lines))


def judge_lengths(lengths: Lengths, audit: AuditRules) -> AuditVerdict:
    """TEST09's kind: the mean length of all answers of a performance run."""
    if audit.mean_output_tokens is None:
        raise ValueError("the audit has no window for the mean answer")
    window, mean = audit.mean_output_tokens.value, lengths.mean
    enough = mean is not None and mean >= window.at_least
    few = mean is not None and mean <= window.at_most
    lines = [
        f"Counted by {VERIFIER}, {NOT_THE_REFERENCES}.",
        "TEST09: Verify Output Token Length",
        "",
        f"Total samples: {lengths.count}",
        f"{MEAN}: {mean:.2f}" if mean is not None else f"{MEAN}: none",
        f"Min output tokens: {lengths.shortest}",
        f"Max output tokens: {lengths.longest}",
        f"Std deviation: {lengths.deviation:.2f}",
        f"Min threshold: {window.at_least}",
        f"Max threshold: {window.at_most}",
        f"Min check pass: {enough}",
        f"Max check pass: {few}",
        audit.pass_text.value if enough and few else FAIL,
    ]
    echo = _echo(audit, MEAN_KEY, mean, window.at_least, window.at_most, enough and few)
    return AuditVerdict(echo, _text(lines))


def _why_none(score: Score | None) -> str:
    if score is None:
        return "the log does not hold each row once"
    return f"{score.failed} failed, {score.unscored} unscored of {score.samples} samples"


def _echo(
    audit: AuditRules, key: str, value: float | None, at_least: float, at_most: float | None, passed: bool
) -> AuditEcho:
    return AuditEcho(
        key=key,
        value=value,
        at_least=at_least,
        at_most=at_most,
        passed=passed,
        verdict_file=audit.verdict_file.value,
        verifier=VERIFIER,
        harness_value=value,
    )


def _text(lines: list[str]) -> str:
    return "".join(f"{line}\n" for line in lines)
