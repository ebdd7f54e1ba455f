"""Answers made up for a data set, of which a stated share is right to the row: they prove a scorer exactly."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping

import numpy as np

from harness.benchmarks.base import Dataset
from harness.benchmarks.gpt_oss_120b import vocab
from harness.benchmarks.gpt_oss_120b.code_questions import solution, wrong_solution
from harness.benchmarks.gpt_oss_120b.graders import Verdict, grade, grader, is_code
from harness.benchmarks.gpt_oss_120b.questions import LETTERS
from harness.benchmarks.scripts import ScriptedAnswers
from harness.benchmarks.shares import right_rows
from harness.engines.base import Int32Array
from harness.errors import ConfigError, DatasetError

_REASONING = "<|channel|>analysis<|message|>{thought}<|end|><|start|>assistant<|channel|>final<|message|>{final}"
_THOUGHT = "We work out case {case}."
_FILLER = "In the study that was read, the effect could be seen early on and stayed until the end. "


def scripted_answers(
    dataset: Dataset, shares: Mapping[str, float], *, seed: int, answer_tokens: int
) -> ScriptedAnswers:
    """An answer for every row: of a subset's n rows ``round(share * n)`` are right, drawn by the seed, the rest wrong.

    Rows of subsets that ``shares`` does not name get ``answer_tokens`` tokens of text.
    Raises UnknownName for a share of no subset, ConfigError for one that nobody could grade or that is no share,
    DatasetError for a row whose ground truth is no answer of its kind, MissingError without the tokenizer.
    """
    right = _right_rows(dataset, shares, seed)
    filler = _filler(answer_tokens)
    answers = [
        _answer(dataset, row, row in right) if subset in shares else filler
        for row, subset in enumerate(dataset.subsets)
    ]
    ends = np.fromiter(itertools.accumulate(map(len, answers)), np.int64, len(answers))
    return ScriptedAnswers(np.concatenate([np.empty(0, np.int32), *answers]), ends)


def _right_rows(dataset: Dataset, shares: Mapping[str, float], seed: int) -> set[int]:
    right = right_rows(dataset.subsets, shares, seed)
    for subset in shares:
        if grader(subset) is None and not is_code(subset):
            raise ConfigError(
                f"no answer of {subset} can be right: nobody grades it", where="the shares of right answers"
            )
    return right


def _answer(dataset: Dataset, row: int, right: bool) -> Int32Array:
    subset, truth = dataset.subsets[row], dataset.ground_truth[row]
    if is_code(subset):
        code = solution(truth or "") if right else wrong_solution(truth or "")
        if code is not None:
            final = f"It runs as follows.\n\n```python\n{code}\n```"
            return np.array(
                vocab.encode(_REASONING.format(thought=_THOUGHT.format(case=row + 1), final=final)), np.int32
            )
        raise _no_answer(dataset, row)
    wanted = Verdict.CORRECT if right else Verdict.WRONG
    for final in _finals(subset, truth or "", right, row):
        text = _REASONING.format(thought=_THOUGHT.format(case=row + 1), final=final)
        if grade(subset, text, truth) is wanted:
            return np.array(vocab.encode(text), np.int32)
    raise _no_answer(dataset, row)


def _no_answer(dataset: Dataset, row: int) -> DatasetError:
    return DatasetError(
        f"row {row} of {dataset.name} has the ground truth {dataset.ground_truth[row]!r}",
        where=dataset.files[0].path if dataset.files else None,
        expected=f"an answer as {dataset.subsets[row]} asks for",
    )


def _finals(subset: str, truth: str, right: bool, row: int) -> Iterator[str]:
    """Ways to put an answer; which comes first depends on the row, so that all are met with."""
    if "gpqa" in subset.lower():
        others = [letter for letter in LETTERS if letter != truth]
        letter = truth if right else others[row % len(others)]
        forms = (f"Answer: {letter}", f"**{letter}**", f"It follows from the units.\n\nAnswer: **{letter}**")
    else:
        number = truth if right else str((int(truth) + 1 + row) % 1000) if truth.isdecimal() else ""
        forms = (f"The result is \\boxed{{{number}}}.", f"Answer: {number}", f"$$\\boxed{{ {number} }}$$")
    yield from forms[row % len(forms) :]
    yield from forms[: row % len(forms)]


def _filler(tokens: int) -> Int32Array:
    if tokens < 0:
        raise ConfigError(f"answers of {tokens} tokens", expected="0 or more")
    header = vocab.encode("<|channel|>final<|message|>")
    body = vocab.encode(_FILLER)
    ids = [*header, *itertools.islice(itertools.cycle(body), tokens)][:tokens]
    return np.array(ids, np.int32)
