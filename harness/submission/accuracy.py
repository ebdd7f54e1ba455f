"""The accuracy leg of a row as it is filed: scored and truncated by the reference where it can, by the harness else."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

from harness import benchmarks
from harness.env import MLPERF_INFERENCE_DIR, data_dir
from harness.errors import MissingError, Refused
from harness.events import Note, Observer, ignore
from harness.ledger.record import RunRecord
from harness.ledger.store import ACCURACY, ACCURACY_TXT, StoredRun
from harness.rules import RulePack
from harness.submission import official
from harness.submission.official import Clone, EvaluatorFailed
from harness.submission.texts import accuracy_line
from harness.submission.truncate import FiledAccuracy, file_accuracy


@dataclass(frozen=True, slots=True)
class FiledLeg:
    """``files`` to write, their ``origin``, one ``line`` on the accuracy, and ``notes`` on who scored and truncated."""

    files: FiledAccuracy
    text_origin: str
    line: str
    notes: tuple[str, ...]


def file_leg(
    run: StoredRun, clone: Clone | None, pack: RulePack, scratch: Path, *, observe: Observer = ignore
) -> FiledLeg:
    """What is filed of an accuracy run.

    Refused where the reference and the harness differ, in scores or in bytes.
    """
    log = run.logs / ACCURACY
    own = run.folder / ACCURACY_TXT
    text = own.read_bytes()
    origin = f"run {run.record.id} {ACCURACY_TXT}, hash added"
    line = accuracy_line(run.record.accuracy)
    if clone is None:
        note = f"{run.record.id}: scored and truncated by the harness ({MLPERF_INFERENCE_DIR.name} is not set)"
        return FiledLeg(file_accuracy(log, text, pack), origin, line, (note,))
    with tempfile.TemporaryDirectory(dir=scratch) as folder:
        try:
            evaluation = _evaluate(run, clone, pack, Path(folder), observe)
            text = evaluation.text.encode()
            origin = f"the reference evaluator on the accuracy log of run {run.record.id}, hash added"
            line = f"{evaluation.key} {evaluation.value:.3f}, by the reference evaluator"
            note = f"{run.record.id}: scored by the reference evaluator, the harness's score agrees"
        except EvaluatorFailed as error:
            note = f"{run.record.id}: scored by the harness alone, the reference evaluator did not run: {error}"
        ours = file_accuracy(log, text, pack)
        official.cross_check(ours, *official.truncate(clone, log, text, Path(folder) / "truncation"), where=log)
    return FiledLeg(
        ours,
        origin,
        line,
        (note, f"{run.record.id}: truncated by the reference at {clone.commit}, the harness's bytes agree"),
    )


def reference_file(record: RunRecord, pack: RulePack) -> Path:
    """The data set's parquet that a run was scored against. EvaluatorFailed where it is not here, or is another."""
    try:
        benchmark = benchmarks.get(record.id.benchmark, pack)
        dataset = benchmark.dataset(data_dir(), benchmark.table("accuracy", record.id.scenario))
    except MissingError as error:
        raise EvaluatorFailed(f"the data set is not here: {error.what}") from None
    if dataset.sha256 != record.dataset.sha256:
        raise EvaluatorFailed("the data set here is not the one that the run used")
    tables = [file.path for file in dataset.files if file.path.suffix == ".parquet"]
    if not tables:
        raise EvaluatorFailed("the data set has no parquet file, which the evaluator reads")
    return tables[0]


def _evaluate(run: StoredRun, clone: Clone, pack: RulePack, scratch: Path, observe: Observer) -> official.Evaluation:
    if clone.evaluator_python is None:
        raise EvaluatorFailed("MLPERF_EVALUATOR_PYTHON is not set")
    record = run.record
    log = run.logs / ACCURACY
    if record.accuracy is None:
        raise EvaluatorFailed("the run has no score of its own to check it against")
    reference = reference_file(record, pack)
    observe(Note(f"{record.id}: the reference evaluator scores it; where code is run, that takes long"))
    evaluation = official.evaluate(clone, record.id.benchmark, log, reference, scratch / "evaluation")
    if found := official.disagreements(evaluation, record.accuracy):
        raise Refused(
            "the reference evaluator and the harness score differently: " + "; ".join(found),
            where=log,
            mend="do not file this row; tell the harness's maintainers which answers are graded differently",
        )
    return evaluation
