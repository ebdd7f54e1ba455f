"""Runs planned legs: one engine for as many of them as its settings allow, one LoadGen process each."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from harness import benchmarks
from harness.benchmarks.base import Benchmark, Dataset
from harness.config.models import Engine
from harness.engines.group import EngineGroup
from harness.events import Note, Observer
from harness.gate.run_facts import ACCURACY
from harness.ledger import ResultsStore, RunRecord
from harness.runs.canary import sing
from harness.runs.endings import end_dead_runs
from harness.runs.engine_up import ENGINE_LOG, engine_up
from harness.runs.identity import flat
from harness.runs.leg import Group, run_leg
from harness.runs.leg_settings import asked_rows
from harness.runs.plan import PlannedLeg
from harness.runs.reference import Reference
from harness.runs.resume import Done, judge_measured
from harness.runs.tables import asked_tables, read_tables, table_of


def run_legs(
    legs: Sequence[PlannedLeg],
    *,
    store: ResultsStore,
    data_dir: Path,
    command: list[str],
    observer: Observer,
    resume: bool = False,
) -> list[RunRecord]:
    """Runs the legs in order and returns their records. The results folder is held meanwhile.

    With ``resume``, runs that were measured are judged first, and legs that are done with this configuration are left
    as they are. The first leg that breaks ends the session (RunBroke, EngineDied, Interrupted); those finished before
    it stay.
    """
    _check_reference(legs)
    session = _Session(store, data_dir, command, observer, resume)
    with store.lock():
        end_dead_runs(store, observer)
        if resume:
            judge_measured(legs, store, data_dir, observer)
        return [
            record
            for _, members in itertools.groupby(legs, key=lambda leg: (leg.system, leg.benchmark, leg.engine))
            for record in session.run(list(members))
        ]


@contextmanager
def group_up(
    legs: Sequence[PlannedLeg], *, store: ResultsStore, data_dir: Path, command: list[str], observer: Observer
) -> Iterator[Group]:
    """The engine and the data of legs that share one, for runs that are decided on while it serves. The results folder
    is held meanwhile.
    """
    session = _Session(store, data_dir, command, observer, resume=False)
    benchmark = benchmarks.get(legs[0].benchmark, legs[0].pack, legs[0].config.agentic)
    with store.lock():
        end_dead_runs(store, observer)
        with session.group(list(legs), benchmark, read_tables(legs, benchmark, data_dir)) as group:
            yield group


def _check_reference(legs: Sequence[PlannedLeg]) -> None:
    """ConfigError, before anything starts, where the clone that is named cannot verify the audits."""
    reference = Reference.from_environment()
    for leg in legs:
        if reference is not None and leg.audit_rules is not None:
            reference.check(leg.leg, leg.benchmark, leg.audit_rules)


class _Session:
    """Legs of one command: their engines one after the other, and what is left of them where it is resumed."""

    def __init__(
        self, store: ResultsStore, data_dir: Path, command: list[str], observer: Observer, resume: bool
    ) -> None:
        self._store = store
        self._data_dir = data_dir
        self._command = command
        self._observer = observer
        self._resume = resume
        self._last: PlannedLeg | None = None
        """The leg that the engine before was started for."""

    def run(self, legs: list[PlannedLeg]) -> list[RunRecord]:
        """Runs legs that share an engine. It is started only where one of them is to be run."""
        first = legs[0]
        benchmark = benchmarks.get(first.benchmark, first.pack, first.config.agentic)
        datasets = read_tables(legs, benchmark, self._data_dir)
        done = Done(self._store, datasets, benchmark) if self._resume else None
        to_run = legs if done is None else [leg for leg in legs if done.record(leg) is None]
        if done is not None and not to_run:
            return [self._kept(leg, done) for leg in legs]
        self._check_scoring(to_run, benchmark, datasets)
        with self.group(legs, benchmark, datasets) as group:
            if done is not None:
                done.engine = group.engine.info
            return [self._run(leg, group, done) for leg in legs]

    @contextmanager
    def group(self, legs: list[PlannedLeg], benchmark: Benchmark, datasets: Mapping[str, Dataset]) -> Iterator[Group]:
        """What legs share while they run: tables made ready, then an engine."""
        whole_rows = {name: table.rows for name, table in datasets.items()}
        prepared = self._prepared(legs, benchmark, datasets)
        with self._engine(legs, benchmark, prepared) as engine:
            yield Group(
                benchmark, prepared, self._data_dir, engine, self._store, self._command, self._observer, whole_rows
            )

    def _run(self, leg: PlannedLeg, group: Group, done: Done | None) -> RunRecord:
        if done is not None and done.record(leg) is not None:
            return self._kept(leg, done)
        if self._last is not leg:
            self._observer(
                Note(f"{leg.name}: the {group.engine.spec.kind} engine that runs is used, its settings are the leg's")
            )
        return run_leg(leg, group)

    def _kept(self, leg: PlannedLeg, done: Done) -> RunRecord:
        record = done.record(leg)
        if record is None:
            raise ValueError(f"{leg.name} is not done")
        valid = record.verdict is not None and record.verdict.valid
        told = "VALID" if valid else "INVALID; without --resume it is run again"
        self._observer(Note(f"{leg.name}: done already (attempt {record.id.attempt}, {told})"))
        return record

    def _prepared(
        self, legs: list[PlannedLeg], benchmark: Benchmark, datasets: Mapping[str, Dataset]
    ) -> dict[str, Dataset]:
        """The tables with all that asking them takes: it is made before an engine holds GPUs for it. All of them: a leg
        that seems to be done may not be, once the engine says what it is. Of trajectories no more than is asked.
        """

        def tell(line: str) -> None:
            self._observer(Note(line))

        def prepared(table: Dataset) -> Dataset:
            if not table.trajectories:
                return benchmark.prepare(table, self._data_dir, tell)
            asked = [asked_rows(leg, table.rows) for leg in legs if table_of(leg, benchmark) == table.table]
            return benchmark.prepare(table.head(max(asked)), self._data_dir, tell) if asked else table

        return {name: prepared(table) for name, table in datasets.items()}

    def _check_scoring(self, legs: list[PlannedLeg], benchmark: Benchmark, datasets: Mapping[str, Dataset]) -> None:
        """Says, before an engine is started, whether what the legs ask can be scored here; MissingError where not."""
        accuracy = [(leg, datasets[table_of(leg, benchmark)]) for leg in legs if leg.leg == ACCURACY]
        for name, rows in dict.fromkeys((table.table, asked_rows(leg, table.rows)) for leg, table in accuracy):
            for line in benchmark.ready_to_score(datasets[name].head(rows)):
                self._observer(Note(line))

    @contextmanager
    def _engine(
        self, legs: list[PlannedLeg], benchmark: Benchmark, datasets: Mapping[str, Dataset]
    ) -> Iterator[EngineGroup]:
        """An engine, alive for all legs, which share it; its canaries have been asked."""
        leg = legs[0]
        work = self._store.root / leg.system / leg.benchmark
        work.mkdir(parents=True, exist_ok=True)
        self._observer(Note(f"{_why_started(self._last, leg)} (its log: {work / ENGINE_LOG})"))
        self._last = leg
        name = f"{leg.system}/{leg.benchmark}"
        tables = asked_tables(legs, benchmark, datasets)
        with engine_up(leg.engine, benchmark, tables, name=name, work=work, observer=self._observer) as engine:
            for line in sing(engine, benchmark, leg, work):
                self._observer(Note(line))
            yield engine


def _why_started(last: PlannedLeg | None, leg: PlannedLeg) -> str:
    """Why an engine is started, as the log says it."""
    start = f"starting the {leg.engine.kind} engine of {leg.system}"
    if last is None:
        return start
    if (last.system, last.benchmark) != (leg.system, leg.benchmark):
        return f"{start}: {leg.benchmark} on {leg.system} comes after {last.benchmark} on {last.system}"
    changes = _changes(last.engine, leg.engine)
    return f"restarting the {leg.engine.kind} engine of {leg.system} for {leg.scenario}: {changes}"


def _changes(before: Engine, after: Engine) -> str:
    old, new = (flat("engine", engine.model_dump(mode="json")) for engine in (before, after))
    keys = [key for key in (*new, *(key for key in old if key not in new)) if old.get(key) != new.get(key)]
    return ", ".join(f"{key} {new.get(key)} in place of {old.get(key)}" for key in keys)
