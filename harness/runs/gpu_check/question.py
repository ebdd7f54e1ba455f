"""One question of the check, to whoever can answer it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from harness.runs.gpu_check.asker import Unanswered
from harness.runs.gpu_check.report import Finding, Outcome, failed

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Question(Generic[T]):
    """What is asked of an engine or a server."""

    name: str
    text: str
    ask: Callable[[T], Outcome]


def findings_of(where: str, asked: T, questions: Sequence[Question[T]]) -> list[Finding]:
    """All questions; one that is not answered has failed. Whatever else an asking raises comes out."""
    findings = []
    for question in questions:
        try:
            outcome = question.ask(asked)
        except Unanswered as error:
            outcome = failed(str(error))
        findings.append(Finding(where, question.name, question.text, outcome))
    return findings
