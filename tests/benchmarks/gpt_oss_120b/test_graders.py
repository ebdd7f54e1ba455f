from __future__ import annotations

import pytest

from harness.benchmarks.gpt_oss_120b.graders import Verdict, grade, grader


@pytest.mark.parametrize(
    ("subset", "text", "truth", "verdict"),
    [
        ("aime25", r"\boxed{070}", "70", Verdict.CORRECT),
        ("aime25", r"\boxed{71}", "70", Verdict.WRONG),
        ("aime25", "no number", "70", Verdict.WRONG),
        ("aime25", r"\boxed{71}", "seventy", Verdict.WRONG),
        ("gpqa_diamond", "Answer: b", "B", Verdict.CORRECT),
        ("gpqa_diamond", "Answer: B", "b", Verdict.CORRECT),
        ("gpqa_diamond", "Answer: C", "B", Verdict.WRONG),
        ("gpqa_diamond", "no letter", "B", Verdict.WRONG),
        ("GPQA", "Answer: B", "B", Verdict.CORRECT),
        ("gpqa_diamond", "Answer: B", None, Verdict.UNSCORED),
        ("livecodebench_v6", "```python\nprint(1)\n```", "abc301_a", Verdict.UNSCORED),
        ("summarization", "It was so.", "It was so.", Verdict.UNSCORED),
    ],
)
def test_verdicts(subset: str, text: str, truth: str | None, verdict: Verdict) -> None:
    assert grade(subset, text, truth) is verdict


def test_nobody_grades_code() -> None:
    assert grader("livecodebench_v6") is None
    assert grader("aime25") is not None
