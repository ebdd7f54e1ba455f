"""Runs planned legs: one engine for as many of them as its settings allow, one LoadGen process each."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from harness import benchmarks
from harness.benchmarks.base import Benchmark, Dataset, Which
from harness.engines.start import EngineProcess, start_engine
from harness.events import Note, Observer
from harness.ledger import ResultsStore, RunRecord
from harness.runs.canary import sing
from harness.runs.endings import end_dead_runs
from harness.runs.engine_spec import engine_spec
from harness.runs.leg import ENGINE_LOG, Group, run_leg
from harness.runs.plan import PlannedLeg

_START_S = 600.0


def run_legs(
    legs: Sequence[PlannedLeg], *, store: ResultsStore, data_dir: Path, command: list[str], observer: Observer
) -> list[RunRecord]:
    """Runs the legs in order and returns their records. The results folder is held meanwhile.

    The first leg that breaks ends the session (RunBroke, EngineDied, Interrupted); those finished before it stay.
    """
    records = []
    with store.lock():
        end_dead_runs(store, observer)
        for (_, name), members in itertools.groupby(legs, key=lambda leg: (leg.system, leg.benchmark)):
            group_legs = list(members)
            benchmark = benchmarks.get(name, group_legs[0].pack)
            datasets = _datasets(benchmark, data_dir)
            with _engine(group_legs[0], benchmark, datasets, store, observer) as engine:
                group = Group(benchmark, datasets, data_dir, engine, store, command, observer)
                records += [run_leg(leg, group) for leg in group_legs]
    return records


def _datasets(benchmark: Benchmark, data_dir: Path) -> dict[Which, Dataset]:
    """Both tables, whichever the legs ask: their hashes are part of every fingerprint."""
    tables: tuple[Which, ...] = ("performance", "accuracy")
    return {which: benchmark.dataset(data_dir, which) for which in tables}


@contextmanager
def _engine(
    leg: PlannedLeg,
    benchmark: Benchmark,
    datasets: dict[Which, Dataset],
    store: ResultsStore,
    observer: Observer,
) -> Iterator[EngineProcess]:
    """The engine of one system and benchmark, alive for all of its legs; its canaries have been asked."""
    work = store.root / leg.system / leg.benchmark
    work.mkdir(parents=True, exist_ok=True)
    spec = engine_spec(leg.config.engine, benchmark, datasets, work)
    log = work / ENGINE_LOG
    observer(Note(f"starting the {spec.kind} engine of {leg.system} (its log: {log})"))
    with start_engine(spec, log=log, timeout_s=_START_S) as engine:
        for line in sing(engine, benchmark, leg):
            observer(Note(line))
        yield engine
