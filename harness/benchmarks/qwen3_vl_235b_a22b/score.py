"""From the answers of an accuracy log to the hierarchical F1 of their categories, and what accuracy.txt says of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import numpy as np

from harness.benchmarks.base import Answer, Dataset, Score, SubsetScore
from harness.benchmarks.qwen3_vl_235b_a22b.answers import levels, levels_in_common, parse, same_brand
from harness.benchmarks.qwen3_vl_235b_a22b.dataset import Truths
from harness.benchmarks.qwen3_vl_235b_a22b.prompts import Version
from harness.benchmarks.scores import EVALUATOR, each_row_once, heading, table

BRAND = "brand_share"
"""The share of the answers whose brand is right, or nearly."""
SECONDHAND = "secondhand_f1"
"""F1 of being second-hand; 0 where nothing is, or is said to be."""

_SHOWN = 120
"""Characters of an answer in a note."""


State: TypeAlias = Literal["correct", "wrong", "failed", "unscored"]
"""What became of a row; correct is one all of whose category's levels are right, with no more of them said."""


def score(
    answers: Iterable[Answer],
    dataset: Dataset,
    truths: Truths,
    *,
    key: str,
    version: Version = "v6.1",
    failed: AbstractSet[int] = frozenset(),
    where: object = None,
) -> Score:
    """Grades every row of a data set exactly once; ``failed`` rows are failed whatever was logged for them.

    So is a row whose data are empty or no UTF-8: it has no answer. An answer that does not keep to the schema is one,
    and wrong: it counts with as many levels as the truth has, none of them right. ``key`` is the metric's name,
    ``version`` says whose scorer is followed, that of v6.0 or the later ones'. Raises RunBroke where the answers miss
    rows, have one twice, or have one that the data set has not.
    """
    states: dict[str, Counter[State]] = {name: Counter() for name in sorted(set(dataset.subsets))}
    grader = Grader(truths, version)
    for row, data in each_row_once(answers, dataset.rows, where):
        text = None if row in failed else _text(data)
        states[dataset.subsets[row]][grader.grade(row, text, dataset.ground_truth[row])] += 1
    graded_all = grader.answers == dataset.rows > 0
    return Score(
        key,
        grader.pooled.f1 if graded_all and dataset.whole else None,
        tuple(_subset(name, counts) for name, counts in states.items()),
        EVALUATOR,
        dataset.stand_in,
        dataset.whole,
        grader.notes(),
        grader.also() if graded_all else {},
    )


def accuracy_text(score: Score) -> str:
    """The lines of accuracy.txt, each ended.

    The metric's line has the form that the submission checker looks for, a JSON object at a line's beginning, and is
    there only where the score has a value; nothing else in the text has that form. The number has all its digits and
    no exponent, which that checker would not read.
    """
    lines = [*heading(score), *table(score), *score.notes]
    lines += [f"{name}: {figure:.6f}; nothing is judged by it" for name, figure in score.also.items()]
    lines += [f"failed: {score.failed}", f"unscored: {score.unscored}"]
    if score.value is not None:
        lines.append(f'{{"{score.key}": {np.format_float_positional(score.value, trim="0")}}}')
    return "".join(f"{line}\n" for line in lines)


@dataclass(slots=True)
class PooledLevels:
    """Levels of categories, summed over all answers: that are right, that were said, that there are."""

    right: int = 0
    said: int = 0
    true: int = 0

    @property
    def f1(self) -> float:
        """The hierarchical F1, 0 to 1, calculated in the reference's order so that the digits agree."""
        precision = self.right / self.said if self.said else 0.0
        recall = self.right / self.true if self.true else 0.0
        return 2 * (precision * recall) / (precision + recall) if precision + recall else 0.0


@dataclass(slots=True)
class Grader:
    """Grades answers one by one, and sums up what their scores are made of."""

    truths: Truths
    version: Version
    pooled: PooledLevels = field(default_factory=PooledLevels)
    answers: int = 0
    brands: int = 0
    secondhand: Counter[tuple[bool, bool]] = field(default_factory=Counter)
    unparsable: int = 0
    first_unparsable: str = ""

    def grade(self, row: int, text: str | None, truth: str | None) -> State:
        """Grades the answer to a row, where there is one, against its true category, where that is known."""
        if text is None or truth is None:
            return "failed" if text is None else "unscored"
        self.answers += 1
        parsed = parse(text)
        true = levels(truth, self.version)
        self.pooled.true += len(true)
        if parsed is None:
            self.pooled.said += len(true)
            self.secondhand[False, self.truths.is_secondhand[row]] += 1
            self.unparsable += 1
            self.first_unparsable = self.first_unparsable or f"the first, to row {row}: {text[:_SHOWN]!a}"
            return "wrong"
        said = levels(parsed.category, self.version)
        right = levels_in_common(said, true)
        self.pooled.said += len(said)
        self.pooled.right += right
        self.brands += same_brand(parsed.brand, self.truths.brand[row])
        self.secondhand[parsed.is_secondhand, self.truths.is_secondhand[row]] += 1
        return "correct" if right == len(said) == len(true) else "wrong"

    def notes(self) -> tuple[str, ...]:
        """What the score is made of, and how many answers are wrong for their form alone."""
        pooled = self.pooled
        counts = f"levels of categories: {pooled.right} right of {pooled.said} said and {pooled.true} true"
        bad = f"{self.unparsable} of {self.answers} answers do not keep to the schema"
        return f"{counts}, F1 {pooled.f1:.6f}", f"{bad}; {self.first_unparsable}" if self.unparsable else bad

    def also(self) -> dict[str, float]:
        """The figures beside the metric. Of an answer without the form, the brand is wrong and nothing second-hand.

        (The reference draws lots for the latter.)
        """
        hits = self.secondhand[True, True]
        misses = self.secondhand[True, False] + self.secondhand[False, True]
        return {
            BRAND: self.brands / self.answers,
            SECONDHAND: 2 * hits / (2 * hits + misses) if hits else 0.0,
        }


def _text(data: bytes) -> str | None:
    try:
        return data.decode("utf-8") or None
    except UnicodeDecodeError:
        return None


def _subset(name: str, counts: Counter[State]) -> SubsetScore:
    return SubsetScore(
        name=name,
        repeats=1,
        correct=counts["correct"],
        wrong=counts["wrong"],
        failed=counts["failed"],
        unscored=counts["unscored"],
        output_tokens=None,
    )
