"""The record of a run of the endpoints client while it runs: what is known before it has reported anything."""

from __future__ import annotations

import datetime
import functools
from collections.abc import Mapping
from dataclasses import dataclass

from harness.benchmarks.base import Benchmark, Dataset
from harness.clients.endpoints.config import layout_and_client
from harness.engines.base import EngineInfo
from harness.events import Note, Observer
from harness.gate.run_facts import ACCURACY, PERFORMANCE
from harness.ledger import Fingerprint, RunId, RunRecord, State
from harness.ledger.record import DatasetEcho, Machine, Rate, Warmup
from harness.machine.capture import Captured, captured
from harness.runs.echoes import engine_echo
from harness.runs.endpoints_settings import Asked, as_leg, asked_of, deviations
from harness.runs.identity import OF_THE_CLIENT, fingerprint, flat, versions
from harness.runs.leg_settings import STAND_IN, not_submittable
from harness.runs.plan import PlannedLeg
from harness.runs.tables import table_of, tables_of


@dataclass(frozen=True, slots=True)
class Tables:
    """The tables of a leg's scenario, by name, as far as they were read."""

    leg: PlannedLeg
    benchmark: Benchmark
    datasets: Mapping[str, Dataset]

    @property
    def scored(self) -> Dataset:
        """The table that the accuracy phase asks."""
        return self.datasets[table_of(as_leg(self.leg, ACCURACY), self.benchmark)]

    @property
    def clients(self) -> Dataset | None:
        """The same where the client reads it row by row as the harness does; None where it has data sets of its own."""
        _, told = layout_and_client(self.leg.pack, self.leg.benchmark)
        return None if told.data(self.leg.scenario).cache is None else self.scored

    @property
    def measured(self) -> Dataset | None:
        """The trajectories that the performance phase replays; None where both phases ask one table."""
        found = self.datasets[table_of(as_leg(self.leg, PERFORMANCE), self.benchmark)]
        return found if found.trajectories else None

    @property
    def asked(self) -> Asked:
        """How much of the tables the client asks."""
        return asked_of(self.leg, self.clients, self.measured)

    @property
    def hashes(self) -> dict[str, str]:
        """SHA-256 of all tables of the scenario, by name."""
        return {name: self.datasets[name].sha256 for name in tables_of(as_leg(self.leg, ACCURACY), self.benchmark)}


def check_scoring(tables: Tables, observer: Observer) -> None:
    """Looks whether the harness could score what the client will have asked. DatasetError and MissingError."""
    dataset = tables.clients
    if dataset is not None:
        for line in tables.benchmark.ready_to_score(dataset):
            observer(Note(line))


@dataclass(frozen=True)
class RunOf:
    """What a run is of: a leg, its data, an engine, the command that asked for it, and the client's versions."""

    leg: PlannedLeg
    tables: Tables
    engine: EngineInfo
    command: list[str]
    client: Mapping[str, str]

    @functools.cached_property
    def captured(self) -> Captured:
        """The machine that this process runs on, now."""
        return captured(self.engine.versions)

    @property
    def machine(self) -> Machine:
        """What that machine is."""
        return self.captured.machine

    @functools.cached_property
    def fingerprint(self) -> Fingerprint:
        """That of a LoadGen leg, and the client."""
        base = fingerprint(self.leg, self.engine, self.tables.hashes, self.machine)
        return Fingerprint.of({**base.keys, **flat(OF_THE_CLIENT, self.client)})

    def _never_filed(self, echo: DatasetEcho) -> list[str]:
        """As of LoadGen's legs; of two tables either may be a stand-in."""
        reasons, measured = not_submittable(as_leg(self.leg, ACCURACY), self.engine, echo), self.tables.measured
        if measured is not None and measured.stand_in and not echo.stand_in:
            reasons.append(STAND_IN)
        return reasons

    def started(
        self, run_id: RunId, *, rate: Rate | None = None, warmup: Warmup | None = None, note: str | None = None
    ) -> RunRecord:
        """The record of the run that starts now."""
        leg, data = self.leg, self.tables.scored
        echo = DatasetEcho(name=data.name, rows=data.rows, sha256=data.sha256, stand_in=data.stand_in)
        return RunRecord(
            id=run_id,
            round=leg.pack.round,
            state=State.RUNNING,
            test_run=leg.test_run,
            started_at=datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
            command=self.command,
            config=leg.config.model_dump(mode="json"),
            fingerprint=self.fingerprint,
            machine=self.machine,
            ecc=self.captured.ecc,
            engine=engine_echo(self.engine),
            dataset=echo,
            versions={**versions(), **self.client},
            loadgen_settings={},
            rate=rate,
            warmup=warmup,
            not_submittable=self._never_filed(echo),
            deviations=deviations(leg),
            note=note,
        )
