"""From what LoadGen left to the record of a finished run, at once or in a later command: the logs are all it takes."""

from __future__ import annotations

import json
from pathlib import Path

from harness import benchmarks, rules
from harness.benchmarks.base import Benchmark, Dataset
from harness.clients.loadgen.audit_conf import AuditFile
from harness.clients.loadgen.job import OUTCOME, Outcome
from harness.config import BenchmarkFile
from harness.errors import MissingError, RunBroke
from harness.events import LegFinished, Note, Observer
from harness.gate import audit_rules, run_rules
from harness.gate.run_facts import ACCURACY
from harness.ledger import RunRecord, State, StoredRun, write_record
from harness.ledger.hashes import sha256
from harness.ledger.store import AUDIT_CONFIG
from harness.logs import LogError
from harness.runs.endings import end
from harness.runs.plan import PlannedLeg
from harness.runs.tables import table_of
from harness.runs.verdict import conclude

_OF_THE_NUMBER = {audit_rules.SCORE.id, audit_rules.LENGTH.id, audit_rules.VERDICT.id}
"""What an audit's own number says already."""


def judge(
    leg: PlannedLeg,
    folder: Path,
    record: RunRecord,
    outcome: Outcome,
    dataset: Dataset,
    benchmark: Benchmark,
    observer: Observer,
) -> RunRecord:
    """The finished record, written. A run whose logs are bad is broken; whatever else stops this leaves it measured."""
    try:
        finished = conclude(leg, folder, record, outcome, outcome.library_rows, dataset, benchmark, observer)
        write_record(folder, finished)
    except (LogError, RunBroke) as error:
        ended = end(folder, record, error, observer)
        observer(LegFinished(leg.name, ended.state.value, ended.note or ""))
        raise
    except BaseException:
        observer(LegFinished(leg.name, State.INTERRUPTED.value, "measured and kept, not judged: --resume judges it"))
        raise
    observer(
        LegFinished(leg.name, "VALID" if finished.verdict and finished.verdict.valid else "INVALID", _told(finished))
    )
    return finished


def judge_later(run: StoredRun, data_dir: Path, observer: Observer) -> RunRecord:
    """Judges a run that was measured, by the rules, the configuration and the data set that it was measured with.

    MissingError where its outcome or its data set is not there any more; what was measured stays as it is.
    """
    record = run.record
    observer(Note(f"{record.id} was measured and not judged: its logs are judged now"))
    path = run.folder / OUTCOME
    if not path.is_file():
        raise MissingError("the run's outcome is not there", where=path, mend="restore it, or move the run away")
    outcome = Outcome.model_validate_json(path.read_bytes())
    leg = _leg_of(run)
    benchmark = benchmarks.get(leg.benchmark, leg.pack, leg.config.agentic)
    table = table_of(leg, benchmark)
    dataset = benchmark.dataset(data_dir, table)
    if dataset.sha256 != record.dataset.sha256:
        raise MissingError(
            f"{record.id} asked another data set than the one that is here",
            where=data_dir,
            expected=f"the {table} table with sha256 {record.dataset.sha256}",
            mend="give --data_dir the one it asked, or move the run away and run the leg again",
        )
    _check_unchanged(run)
    for line in benchmark.ready_to_score(dataset.head(outcome.library_rows)) if leg.leg == ACCURACY else ():
        observer(Note(line))
    scored_as = [text for text in benchmark.deviations(leg.which) if text not in record.deviations]
    record = record.model_copy(update={"deviations": [*record.deviations, *scored_as]})
    return judge(leg, run.folder, record, outcome, dataset, benchmark, observer)


def _leg_of(run: StoredRun) -> PlannedLeg:
    """The leg as it was planned, from what its record keeps of it."""
    record = run.record
    config = BenchmarkFile.model_validate_json(json.dumps(record.config))
    audit = None
    if record.audit_config is not None:
        echo = record.audit_config
        audit = AuditFile(echo.name, (run.folder / AUDIT_CONFIG).read_bytes(), echo.approved_sha256)
    run_id = record.id
    return PlannedLeg(
        run_id.system,
        run_id.benchmark,
        run_id.scenario,
        run_id.leg,
        config,
        rules.load(record.round),
        record.test_run,
        audit,
    )


def _check_unchanged(run: StoredRun) -> None:
    """RunBroke where a file is not the one that was measured."""
    for name, told in run.record.hashes.items():
        path = run.folder / name
        if not path.is_file() or sha256(path) != told:
            raise RunBroke(
                "a file of the run was changed after it was measured",
                where=path,
                expected=f"sha256 {told}",
                mend="restore the file, or run the leg again; results are never mended by hand",
            )


def _told(record: RunRecord) -> str:
    """A finished run in a few words: an audit's number, else the first reason against it, else its result.

    What comes first where samples failed is what the engine said of it: other reasons may only follow from that.
    """
    verdict = record.verdict
    found = verdict.findings if verdict else []
    rejects = [f for f in found if f.severity == "reject" and f.rule not in _OF_THE_NUMBER]
    rejects.sort(key=lambda finding: finding.rule != run_rules.FAILED.id)
    why = f"{rejects[0].rule}: found {rejects[0].found}, expected {rejects[0].expected}" if rejects else ""
    if record.failures:
        kinds = ", ".join(f"{kind} {count}" for kind, count in record.failure_kinds.items())
        why += f"; {kinds}; the first: {record.failures[0].message}"
    if record.audit is not None:
        return "; ".join(filter(None, (str(record.audit), why)))
    if why:
        return why
    if record.result is not None:
        return f"{record.result.value:,.2f} {record.result.units}"
    return "" if record.accuracy is None else str(record.accuracy)
