"""From the answers of an accuracy log to a score, and to what accuracy.txt says of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import TypeAlias

from harness.benchmarks.base import Dataset, Score, SubsetScore
from harness.benchmarks.gpt_oss_120b import vocab
from harness.benchmarks.gpt_oss_120b.answers import program
from harness.benchmarks.gpt_oss_120b.graders import Verdict, grade, grader, is_code
from harness.benchmarks.gpt_oss_120b.judge import Ending, Judge, Submission
from harness.benchmarks.scores import EVALUATOR, NAMED, each_row_once, heading, table
from harness.engines.base import Int32Array

Answer: TypeAlias = tuple[int, Int32Array]
"""The data set's row, and the answer's token ids as they were logged."""

NO_JUDGE = "there is no judge"


def score(
    answers: Iterable[Answer],
    dataset: Dataset,
    *,
    key: str,
    repeats: Mapping[str, int],
    failed: AbstractSet[int] = frozenset(),
    where: object = None,
    judge: Judge | str = NO_JUDGE,
) -> Score:
    """Grades every row of a data set exactly once; ``failed`` rows are failed whatever was logged for them.

    ``key`` is the metric's name; ``repeats`` says how often the questions of a subset are asked (once where it does
    not say). ``judge`` tries programs once all answers are read; text says why there is none, and leaves them
    unscored. Raises RunBroke where the answers miss rows, have one twice, or have one that the data set has not.
    """
    tallies = {name: _Tally() for name in sorted(set(dataset.subsets))}
    programs = _Programs(None if isinstance(judge, str) else judge)
    no_text, first = 0, ""
    for row, ids in each_row_once(answers, dataset.rows, where):
        name, truth = dataset.subsets[row], dataset.ground_truth[row]
        if row in failed:
            verdict: Verdict | Submission = Verdict.FAILED
        else:
            verdict = programs.verdict(ids, truth) if is_code(name) else _verdict(name, ids, truth)
            if verdict is Verdict.FAILED and len(ids):
                no_text, first = no_text + 1, first or f"to row {row}: {vocab.decode(ids)}"
        if isinstance(verdict, Submission):
            programs.keep(verdict, tallies[name], len(ids))
        else:
            tallies[name].add(verdict, len(ids))
    notes = programs.finish()
    if isinstance(judge, str) and any(map(is_code, tallies)):
        notes = (f"LiveCodeBench is unscored: {judge}",)
    if no_text:
        notes = (*notes, f"{no_text} answers are no text; the first, {first}")
    subsets = tuple(tally.result(name, repeats.get(name, 1)) for name, tally in tallies.items())
    value = _value(subsets) if dataset.whole else None
    return Score(key, value, subsets, EVALUATOR, dataset.stand_in, dataset.whole, notes)


def accuracy_text(score: Score) -> str:
    """The lines of accuracy.txt, each ended.

    The metric's line has the form that the submission checker looks for, and is there only where the score has a
    value; nothing else in the text has that form.
    """
    lines = [*heading(score), *table(score), *score.notes]
    lines += [f"failed: {score.failed}", f"unscored: {score.unscored}"]
    if score.value is not None:
        lines.append(f"'{score.key}': {score.value:.3f}")
    return "".join(f"{line}\n" for line in lines)


@dataclass(slots=True)
class _Tally:
    counts: Counter[Verdict] = field(default_factory=Counter)
    output_tokens: int = 0

    def add(self, verdict: Verdict, tokens: int) -> None:
        self.counts[verdict] += 1
        if verdict is not Verdict.FAILED:
            self.output_tokens += tokens

    def result(self, name: str, repeats: int) -> SubsetScore:
        return SubsetScore(
            name=name,
            repeats=repeats,
            correct=self.counts[Verdict.CORRECT],
            wrong=self.counts[Verdict.WRONG],
            failed=self.counts[Verdict.FAILED],
            unscored=self.counts[Verdict.UNSCORED],
            output_tokens=self.output_tokens,
        )


@dataclass(slots=True)
class _Programs:
    """Programs that wait for the judge, each with the tallies it counts in and its answer's tokens."""

    judge: Judge | None
    waiting: dict[Submission, list[tuple[_Tally, int]]] = field(default_factory=dict)

    def verdict(self, ids: Int32Array, truth: str | None) -> Verdict | Submission:
        """What is known of an answer before it is run: that there is none, or no program in it."""
        if not len(ids) or not _is_text(ids):
            return Verdict.FAILED
        if self.judge is None or truth is None:
            return Verdict.UNSCORED  # Decoding is most of the work, and nobody would read it.
        text = vocab.decode(ids)
        if isinstance(text, vocab.BadIds):
            return Verdict.FAILED
        code = program(text)
        return Submission(truth, code) if code else Verdict.WRONG

    def keep(self, submission: Submission, tally: _Tally, tokens: int) -> None:
        """Takes a program for later."""
        self.waiting.setdefault(submission, []).append((tally, tokens))

    def finish(self) -> tuple[str, ...]:
        """Has all programs judged and counted; a line for each reason why some were not judged."""
        if self.judge is None or not self.waiting:
            return ()
        reasons: Counter[str] = Counter()
        for submission, trial in self.judge.judge(self.waiting).items():
            for tally, tokens in self.waiting[submission]:
                tally.add(_VERDICTS.get(trial.ending, Verdict.WRONG), tokens)
                if trial.ending is Ending.NOT_JUDGED:
                    reasons[trial.detail] += 1
        return tuple(f"{count} programs are unscored: {reason}" for reason, count in reasons.most_common(NAMED))


_VERDICTS = {Ending.PASSED: Verdict.CORRECT, Ending.NOT_JUDGED: Verdict.UNSCORED}


def _verdict(subset: str, ids: Int32Array, truth: str | None) -> Verdict:
    if not len(ids):
        return Verdict.FAILED
    if grader(subset) is None and _is_text(ids):
        return Verdict.UNSCORED  # Decoding is most of the work, and nobody would read it.
    text = vocab.decode(ids)
    return Verdict.FAILED if isinstance(text, vocab.BadIds) else grade(subset, text, truth)


def _is_text(ids: Int32Array) -> bool:
    return int(ids.min()) >= 0 and int(ids.max()) < vocab.VOCAB_SIZE


def _value(subsets: tuple[SubsetScore, ...]) -> float | None:
    """Questions right of all questions, in percent, each subset's rows weighted by 1 / repeats.

    None while any row is failed or unscored. Summed as the reference does (eval_mlperf_accuracy.py: floats, subsets in
    order of name), so that the digits agree.
    """
    if not subsets or any(subset.failed or subset.unscored for subset in subsets):
        return None
    right = total = 0.0
    for subset in sorted(subsets, key=lambda subset: subset.name):
        right += subset.correct / subset.repeats
        total += subset.samples / subset.repeats
    return right / total * 100
