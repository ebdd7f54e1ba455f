"""The verdict on an audit's answers, at the very bounds, and the text that says so."""

from __future__ import annotations

import statistics
from pathlib import PurePosixPath
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.benchmarks.base import Score, SubsetScore
from harness.gate.audit_verdict import check_verdict
from harness.gate.findings import Severity
from harness.runs.audit import AuditVerdict, Lengths, judge_lengths, judge_score
from tests.runs.made_legs import PACK

TEST07, TEST09 = (PACK.benchmark("gpt-oss-120b").audit_rules[name] for name in ("TEST07", "TEST09"))
ROWS = {"TEST07": 990, "TEST09": 6396}


class Words:
    """A benchmark that says of a score what an accuracy.txt says."""

    def accuracy_text(self, score: Score) -> str:
        value = "" if score.value is None else f"'{score.key}': {score.value:.3f}\n"
        return f"Scored by tests, not by the reference's evaluator.\n{value}"


def score(correct: int, *, failed: int = 0, unscored: int = 0, rows: int = 990) -> Score:
    subset = SubsetScore("gpqa_diamond", 5, correct, rows - correct - failed - unscored, failed, unscored, 10)
    value = None if failed or unscored else correct / rows * 100
    return Score("exact_match", value, (subset,), "tests", stand_in=False)


def judged(of: Score | None) -> AuditVerdict:
    words: Any = Words()
    return judge_score(of, words, TEST07)


def rejects(verdict: AuditVerdict, audit: Any) -> set[str]:
    found = check_verdict(verdict.text, PurePosixPath("verify.txt"), audit)
    return {finding.rule for finding in found if finding.severity is Severity.REJECT}


@pytest.mark.parametrize(("correct", "passed"), [(601, True), (600, False), (990, True), (0, False)])
def test_an_accuracy_at_the_threshold(correct: int, passed: bool) -> None:
    """601 of 990 are 60.707 %, 600 are 60.606 %; 60.698 lies between them."""
    verdict = judged(score(correct))
    assert verdict.echo.passed is passed
    assert verdict.echo.value == pytest.approx(correct / 9.9)
    assert ("TEST PASS" in verdict.text.splitlines()) is passed
    assert ("TEST FAIL" in verdict.text.splitlines()) is not passed
    assert (not rejects(verdict, TEST07)) is passed


def test_an_accuracy_of_just_the_threshold_passes() -> None:
    exact = Score("exact_match", 60.698, score(601).subsets, "tests", stand_in=False)
    below = Score("exact_match", 60.69799, score(601).subsets, "tests", stand_in=False)
    assert judged(exact).echo.passed
    assert not judged(below).echo.passed


@pytest.mark.parametrize("of", [score(700, failed=1), score(700, unscored=1), None])
def test_what_has_no_score_does_not_pass(of: Score | None) -> None:
    verdict = judged(of)
    assert verdict.echo.value is None
    assert not verdict.echo.passed
    assert "TEST PASS" not in verdict.text
    assert "not by the reference's evaluator" in verdict.text
    assert "AUDIT-VERDICT" in rejects(verdict, TEST07)


LOW, HIGH = TEST09.mean_output_tokens.value.at_least, TEST09.mean_output_tokens.value.at_most


@pytest.mark.parametrize(
    ("total", "passed"),
    [
        (7_357_831, True),  # 1150.38008 tokens in the mean
        (7_357_830, False),  # 1150.37993, which is printed as 1150.38
        (8_992_903, True),  # 1406.01986
        (8_992_904, False),  # 1406.02001, which is printed as 1406.02
        (1278 * 6396, True),
        (32 * 6396, False),
    ],
)
def test_a_mean_at_the_bounds(total: int, passed: bool) -> None:
    verdict = judge_lengths(Lengths.of(spread(total, 6396)), TEST09)
    assert verdict.echo.passed is passed
    assert verdict.echo.passed is (LOW <= total / 6396 <= HIGH)
    assert ("TEST PASS" in verdict.text.splitlines()) is passed
    assert (not rejects(verdict, TEST09)) is passed


def spread(total: int, count: int) -> list[int]:
    """``count`` lengths with that sum, as equal as can be."""
    least, more = divmod(total, count)
    return [least + (i < more) for i in range(count)]


def test_no_answers_are_no_pass() -> None:
    verdict = judge_lengths(Lengths.of([]), TEST09)
    assert not verdict.echo.passed
    assert verdict.echo.value is None
    assert "TEST PASS" not in verdict.text
    assert rejects(verdict, TEST09)


@given(st.lists(st.integers(0, 40_000), min_size=1))
def test_lengths_are_those_of_the_textbook(lengths: list[int]) -> None:
    found = Lengths.of(iter(lengths))
    assert found.mean == pytest.approx(statistics.fmean(lengths))
    assert found.deviation == pytest.approx(statistics.pstdev(lengths), abs=1e-6)
    assert (found.count, found.shortest, found.longest) == (len(lengths), min(lengths), max(lengths))


@given(st.integers(0, 990))
def test_the_official_reader_finds_a_pass_only_where_there_is_one(correct: int) -> None:
    """It looks for the words anywhere in the text, so a text that fails must not have them at all."""
    verdict = judged(score(correct))
    assert ("TEST PASS" in verdict.text) is verdict.echo.passed
    assert verdict.echo.passed is (correct / 990 * 100 >= TEST07.score.value.at_least)
