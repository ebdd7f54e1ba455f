"""The answers of a leg's log, scored by its benchmark, and what the ledger keeps of the score."""

from __future__ import annotations

from collections.abc import Iterator

from harness.benchmarks.base import Answer, Benchmark, Dataset, Score
from harness.benchmarks.base import SubsetScore as BenchmarkSubset
from harness.clients.loadgen.job import FAILED_DATA
from harness.events import Observer, counted, ignore
from harness.gate.run_facts import Coverage
from harness.ledger.record import AccuracyEcho, Counts, SubsetScore
from harness.logs import AccuracyLog
from harness.runs.audit_leg import covers_each_row_once
from harness.runs.plan import PlannedLeg


def score_log(
    leg: PlannedLeg,
    log: AccuracyLog,
    coverage: Coverage,
    dataset: Dataset,
    benchmark: Benchmark,
    observer: Observer = ignore,
) -> Score | None:
    """The score of an accuracy leg, or of an audit that has one to reach; None where an audit's log has other rows.

    The gate tells of those. An accuracy log that misses rows is of a run that broke.
    """
    audit = leg.audit_rules
    if audit is not None and (audit.score is None or not covers_each_row_once(coverage, dataset.rows)):
        return None
    failed: set[int] = set()
    answers = counted(_answers(log, failed), observer, f"{leg.name}: scoring", dataset.rows, "answers")
    return benchmark.score(answers, dataset, failed=failed, where=log.path)


def score_echo(score: Score, counts: Counts | None = None) -> AccuracyEcho:
    """A score as the ledger has it.

    A log of chats does not tell how many tokens an answer has; ``counts`` do, of all of them together.
    """
    untold = len(score.subsets) == 1 and not score.subsets[0].output_tokens
    mean = counts.output_tokens / counts.answered if untold and counts is not None and counts.answered else None
    return AccuracyEcho(
        key=score.key,
        value=score.value,
        subsets={subset.name: _echo(subset, mean) for subset in score.subsets},
        evaluator=score.evaluator,
        also=dict(score.also),
    )


def _answers(log: AccuracyLog, failed: set[int]) -> Iterator[Answer]:
    """The log's answers; rows that hold the marker of a failed sample are added to ``failed`` as they pass."""
    for entry in log:
        if entry.data == FAILED_DATA:
            failed.add(entry.sample)
        yield entry.sample, entry.data


def _echo(subset: BenchmarkSubset, mean: float | None) -> SubsetScore:
    return SubsetScore(
        samples=subset.samples,
        correct=subset.correct,
        wrong=subset.wrong,
        failed=subset.failed,
        unscored=subset.unscored,
        mean_output_tokens=subset.mean_output_tokens if mean is None else mean,
    )
