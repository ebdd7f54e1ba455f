"""From answers to verdicts: most are the checker's, and where no call is right none is to be made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from harness.benchmarks.qwen3_6_27b.bfcl.answers import Answer
from harness.benchmarks.qwen3_6_27b.bfcl.calls import Found, find
from harness.benchmarks.qwen3_6_27b.bfcl.environment import Environment
from harness.benchmarks.qwen3_6_27b.bfcl.subsets import language
from harness.benchmarks.qwen3_6_27b.bfcl.table import Json, Row


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether an answer is right; ``why`` says why it is not."""

    right: bool
    why: str = ""


def grade(asked: Mapping[int, Row], answers: Mapping[int, Answer], environment: Environment) -> dict[int, Verdict]:
    """A verdict on each answer to its row, by number. MissingError where the checker is not to be had."""
    found = {number: find(answer) for number, answer in answers.items()}
    verdicts = {number: here for number, calls in found.items() if (here := _without_checker(asked[number], calls))}
    unsettled = [number for number in found if number not in verdicts]
    told = environment.check([question(asked[number], found[number]) for number in unsettled]) if unsettled else []
    for number, said in zip(unsettled, told, strict=True):
        verdicts[number] = Verdict(said["valid"], said["why"])
    return verdicts


def question(row: Row, found: Found) -> dict[str, Json]:
    """What the checker is asked of an answer's calls."""
    return {
        "subset": row.subset,
        "language": language(row.subset),
        "functions": row.functions,
        "calls": found.calls,
        "truth": row.truth,
    }


def _without_checker(row: Row, found: Found) -> Verdict | None:
    """The verdict where it takes no comparison of calls; None where it does."""
    if not row.wants_calls:
        return Verdict(False, "it calls where no function is of use") if found.structured else Verdict(True)
    return Verdict(False, found.problem) if found.problem else None
