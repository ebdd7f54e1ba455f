"""From the answers of an accuracy log to a score, the reasons of what is wrong, and what accuracy.txt says of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from harness.benchmarks.base import Answer as LoggedAnswer
from harness.benchmarks.base import Score, SubsetScore
from harness.benchmarks.qwen3_6_27b.bfcl.answers import Answer, read_answer
from harness.benchmarks.qwen3_6_27b.bfcl.environment import Environment
from harness.benchmarks.qwen3_6_27b.bfcl.figures import NORMALISED, Figures
from harness.benchmarks.qwen3_6_27b.bfcl.grading import Verdict, grade
from harness.benchmarks.qwen3_6_27b.bfcl.selftest import self_test
from harness.benchmarks.qwen3_6_27b.bfcl.subsets import CATEGORIES, CATEGORY_OF
from harness.benchmarks.qwen3_6_27b.bfcl.table import Row, Table
from harness.benchmarks.scores import EVALUATOR, each_row_once, heading, table
from harness.rules.benchmark import TrajectoryRules

_SHOWN = 200
"""Characters of a reason in a note."""
_METRIC = "'Total':"
"""What the official checker looks for before the accuracy of this benchmark (the pack's ``accuracy_pattern``)."""

State: TypeAlias = Literal["correct", "wrong", "failed"]


@dataclass(frozen=True, slots=True)
class Graded:
    """The score, the figures that it is one of (None where a row failed), and the verdict on each answered row."""

    score: Score
    figures: Figures | None
    verdicts: dict[int, Verdict]


@dataclass(frozen=True, slots=True)
class Reached:
    """One of the round's targets, in percent, what was reached, and whether that is enough."""

    key: str
    at_least: float
    value: float

    @property
    def enough(self) -> bool:
        """Whether the target is reached; the bound itself is enough."""
        return self.value >= self.at_least


def score(
    answers: Iterable[LoggedAnswer],
    asked: Table,
    rules: TrajectoryRules,
    environment: Environment,
    *,
    failed: AbstractSet[int] = frozenset(),
    where: object = None,
) -> Graded:
    """Grades every row of a table exactly once; ``failed`` rows are failed whatever was logged for them.

    So is a row whose data are no reply, or one that says nothing at all. Raises RunBroke where the answers miss rows,
    have one twice, or have one that the table has not. Raises MissingError where the checker is not to be had, or fails
    its self test: then there is no score.
    """
    replies: dict[int, Answer] = {}
    for number, data in each_row_once(answers, len(asked), where):
        reply = None if number in failed else _reply(data)
        if reply is not None:
            replies[number] = reply
    rows = dict(enumerate(asked.rows))
    self_test(environment)
    verdicts = grade(rows, replies, environment)
    figures = (
        Figures.of((row.subset, verdicts[number].right) for number, row in rows.items())
        if len(replies) == len(asked) > 0
        else None
    )
    return Graded(_score(rows, asked, rules, environment, verdicts, figures), figures, verdicts)


def targets(score: Score, rules: TrajectoryRules) -> tuple[Reached, ...]:
    """How far a score reaches what the round asks of closed; elsewhere nothing depends on it. () without a value."""
    if score.value is None:
        return ()
    values = {score.key: score.value, **score.also}
    asked = [rules.accuracy_target.value, *(more.value for more in rules.accuracy_more_targets)]
    return tuple(Reached(target.key, target.at_least, values[target.key]) for target in asked)


def accuracy_text(score: Score, rules: TrajectoryRules) -> str:
    """The lines of accuracy.txt, each ended: no number stands there for a part of the rows.

    The last is the metric in the form that the official checker looks for in the LoadGen layout, and is there only
    where the score has a value.
    """
    lines = [*heading(score), *table(score), *score.notes]
    lines += [f"failed: {score.failed}", f"unscored: {score.unscored}"]
    lines += [f"{name}: {score.also[name]:.2f} %" for name in sorted(CATEGORY_OF) if name in score.also]
    lines += [f"category {name}: {score.also[name]:.2f} %" for name in CATEGORIES if name in score.also]
    for each in targets(score, rules):
        verdict = "reached" if each.enough else "not reached"
        lines.append(f"{each.key}: {each.value:.2f} %, of closed {each.at_least:.2f} % are asked: {verdict}")
    if score.value is not None:
        lines.append(f"{score.key}, {_METRIC} {np.format_float_positional(score.value, trim='0')}")
    return "".join(f"{line}\n" for line in lines)


def _score(
    rows: dict[int, Row],
    asked: Table,
    rules: TrajectoryRules,
    environment: Environment,
    verdicts: dict[int, Verdict],
    figures: Figures | None,
) -> Score:
    states: dict[str, Counter[State]] = {name: Counter() for name in CATEGORIES}
    for number, row in rows.items():
        states[row.category][_state(verdicts.get(number))] += 1
    key = rules.accuracy_target.value.key
    return Score(
        key,
        figures.by_key()[key] if figures is not None and asked.whole else None,
        tuple(_subset(name, counts) for name, counts in states.items() if counts),
        f"{EVALUATOR} with {environment.data.package} {environment.data.version}",
        asked.stand_in,
        asked.whole,
        _notes(rows, verdicts),
        {} if figures is None else {NORMALISED: figures.normalised, **figures.categories, **figures.subsets},
    )


def _state(verdict: Verdict | None) -> State:
    if verdict is None:
        return "failed"
    return "correct" if verdict.right else "wrong"


def _notes(rows: dict[int, Row], verdicts: dict[int, Verdict]) -> tuple[str, ...]:
    """The kinds of reasons with how often each was one, and the first of each."""
    counts: Counter[str] = Counter()
    first: dict[str, str] = {}
    for number in sorted(verdicts):
        if verdicts[number].right:
            continue
        kind = verdicts[number].why.partition(": ")[0]
        counts[kind] += 1
        first.setdefault(kind, f"{rows[number].id}: {verdicts[number].why[:_SHOWN]!a}")
    return tuple(f"wrong {count} times: {kind}; the first, {first[kind]}" for kind, count in counts.most_common())


def _reply(data: bytes) -> Answer | None:
    try:
        answer = read_answer(data)
    except ValueError:
        return None
    return None if answer.empty else answer


def _subset(name: str, counts: Counter[State]) -> SubsetScore:
    return SubsetScore(
        name=name,
        repeats=1,
        correct=counts["correct"],
        wrong=counts["wrong"],
        failed=counts["failed"],
        unscored=0,
        output_tokens=None,
    )
