"""Right, wrong, or not to be said: the verdict on one answer."""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import TypeAlias

from harness.benchmarks.gpt_oss_120b.answers import aime_number, choice_letter

Grader: TypeAlias = Callable[[str, str], bool]
"""The answer's text and the ground truth, to whether it is right."""


class Verdict(enum.Enum):
    """What became of one row; each is in exactly one state."""

    CORRECT = "correct"
    WRONG = "wrong"
    FAILED = "failed"
    """The model gave no answer: the request failed, or what was logged is no text."""
    UNSCORED = "unscored"
    """There is an answer, and nobody graded it. Never counted as wrong."""


def grade_aime(text: str, truth: str) -> bool:
    """Whether the answer's integer is the true one."""
    try:
        return aime_number(text) == int(truth)
    except ValueError:
        return False


def grade_gpqa(text: str, truth: str) -> bool:
    """Whether the answer's letter is the true one."""
    return choice_letter(text) == truth.upper()


# By a part of the subset's name, as the reference chooses. LiveCodeBench is not here: the judge runs its answers.
_GRADERS: dict[str, Grader] = {"gpqa": grade_gpqa, "aime": grade_aime}


def grader(subset: str) -> Grader | None:
    """Who grades a subset; None where nobody does."""
    name = subset.lower()
    return next((found for kind, found in _GRADERS.items() if kind in name), None)


def is_code(subset: str) -> bool:
    """Whether the answers of a subset are programs, which only the judge can grade."""
    return "livecodebench" in subset.lower()


def grade(subset: str, text: str, truth: str | None) -> Verdict:
    """The verdict on an answer; UNSCORED where there is no grader or nothing to hold the answer against."""
    judge = grader(subset)
    if judge is None or truth is None:
        return Verdict.UNSCORED
    return Verdict.CORRECT if judge(text, truth) else Verdict.WRONG
