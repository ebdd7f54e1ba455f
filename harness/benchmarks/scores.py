"""What the scorers of all benchmarks share: each row graded once, and the lines for people that need no metric."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

from harness.benchmarks.base import Score
from harness.errors import RunBroke

T = TypeVar("T")

EVALUATOR = "mlperf-inference-harness"
NAMED = 5
"""Rows that an error names before it only counts."""


def each_row_once(answers: Iterable[tuple[int, T]], rows: int, where: object) -> Iterator[tuple[int, T]]:
    """The answers as they come. Raises RunBroke for rows that are missing, doubled or not of the data set."""
    seen = bytearray(rows)
    for row, answer in answers:
        if not 0 <= row < rows:
            raise RunBroke(f"an answer to row {row}", where=where, expected=f"rows 0..{rows - 1} of the data set")
        if seen[row]:
            raise RunBroke(f"row {row} is answered twice", where=where, expected="one answer a row")
        seen[row] = 1
        yield row, answer
    missing = [row for row in range(rows) if not seen[row]]
    if missing:
        named = ", ".join(map(str, missing[:NAMED])) + (", ..." if len(missing) > NAMED else "")
        raise RunBroke(
            f"{len(missing)} of {rows} rows have no answer: {named}",
            where=where,
            expected="one answer a row",
            mend="run the accuracy leg again; a log that was shortened for submission cannot be scored",
        )


def heading(score: Score) -> Iterator[str]:
    """Who scored, and what the score does not say."""
    yield f"Scored by {score.evaluator}, not by the reference's evaluator."
    if score.stand_in:
        yield "The data set is a stand-in: this score says nothing about a model."
    if not score.whole:
        yield f"Only {score.samples} rows of the data set were asked: this is no score of the whole."


def table(score: Score) -> list[str]:
    """How the rows of each subset came out, as a table."""
    heads = ("samples", "repeats", "correct", "wrong", "failed", "unscored", "mean tokens")
    width = max(map(len, ["subset", *(subset.name for subset in score.subsets)]))
    lines = ["subset".ljust(width) + "".join(f"  {head:>11}" for head in heads)]
    for s in score.subsets:
        mean = "-" if s.mean_output_tokens is None else f"{s.mean_output_tokens:.2f}"
        cells = (s.samples, s.repeats, s.correct, s.wrong, s.failed, s.unscored, mean)
        lines.append(s.name.ljust(width) + "".join(f"  {cell:>11}" for cell in cells))
    return lines
