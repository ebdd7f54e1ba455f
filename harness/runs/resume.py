"""Going on where a command stopped: which legs are done with this configuration, and which runs wait for a verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from harness.benchmarks.base import Benchmark, Dataset
from harness.engines.base import EngineInfo
from harness.events import Observer
from harness.ledger import ResultsStore, RunRecord, State
from harness.ledger.standing import standing
from harness.machine.capture import capture
from harness.runs.identity import OF_THE_ENGINE, before_the_engine, changed, fingerprint
from harness.runs.judging import judge_later
from harness.runs.plan import PlannedLeg
from harness.runs.tables import tables_of


def judge_measured(legs: Sequence[PlannedLeg], store: ResultsStore, data_dir: Path, observer: Observer) -> None:
    """Judges every run of these legs that was measured and not judged, of whatever configuration: it was paid for."""
    for leg in legs:
        for run in store.attempts(leg.system, leg.benchmark, leg.scenario, leg.leg):
            if run.record.state is State.MEASURED:
                judge_later(run, data_dir, observer)


class Done:
    """Tells which legs have a finished run of the same fingerprint.

    Until ``engine`` is set, what only a running engine tells (its versions, its checkpoint's hash) is not compared.
    """

    def __init__(self, store: ResultsStore, datasets: Mapping[str, Dataset], benchmark: Benchmark) -> None:
        self.engine: EngineInfo | None = None
        self._store = store
        self._benchmark = benchmark
        self._hashes = {table: dataset.sha256 for table, dataset in datasets.items()}
        self._machine = capture({})

    def record(self, leg: PlannedLeg) -> RunRecord | None:
        """The finished run that makes the leg done; None where it is to be run."""
        attempts = [
            run
            for run in self._store.attempts(leg.system, leg.benchmark, leg.scenario, leg.leg)
            if run.record.test_run == leg.test_run
        ]
        found = standing(attempts, lambda record: self._changed(leg, record))
        return found.run.record if found.done and found.run is not None else None

    def _changed(self, leg: PlannedLeg, record: RunRecord) -> list[str]:
        hashes = {table: self._hashes[table] for table in tables_of(leg, self._benchmark)}
        if self.engine is None:
            asked = before_the_engine(leg, hashes, self._machine)
            return changed(record.fingerprint, asked, but=OF_THE_ENGINE)
        return changed(record.fingerprint, fingerprint(leg, self.engine, hashes, self._machine))
