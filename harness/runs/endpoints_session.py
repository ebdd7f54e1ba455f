"""Runs the endpoints client for planned legs: servers for as many of them as share an engine, one client each."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from harness import benchmarks
from harness.benchmarks.base import Benchmark, Dataset
from harness.clients.endpoints.agentic import disagreement
from harness.clients.endpoints.config import CONFIG, config_text, layout_and_client
from harness.clients.endpoints.program import ClientProgram, find_program
from harness.engines.address import lanes_before
from harness.engines.group import EngineGroup, start_group
from harness.events import Note, Observer
from harness.gate.run_facts import ACCURACY, PERFORMANCE
from harness.ledger import ResultsStore, RunRecord
from harness.ledger.record import Rate, Warmup
from harness.runs.canary import sing
from harness.runs.endings import end_dead_runs
from harness.runs.endpoints_leg import CLOSED, ClientGroup, run_endpoints_leg
from harness.runs.endpoints_record import Tables, check_scoring
from harness.runs.endpoints_settings import as_leg, check_row, choices, http_engine
from harness.runs.engine_up import ENGINE_LOG, asked, http_members
from harness.runs.leg_settings import output_cap
from harness.runs.plan import PlannedLeg
from harness.runs.servers import Serving, http_settings, serving
from harness.runs.tables import read_tables, table_of
from harness.runs.warmup import warm_up

_START_S: Final = 600.0
_PATIENCE_S: Final = 300.0
_SOMEWHERE: Final = "http://127.0.0.1:1"
"""Stands for servers in a configuration that is only read, before there are any."""


@dataclass(frozen=True, slots=True)
class ClientSession:
    """One command's runs of the client. ``divisions`` says in which each system and benchmark is entered."""

    store: ResultsStore
    data_dir: Path
    command: list[str]
    observer: Observer
    divisions: Mapping[tuple[str, str], str | None]

    def run(self, legs: Sequence[PlannedLeg]) -> list[RunRecord]:
        """Runs the client for each scenario and returns the records. The results folder is held meanwhile.

        What is missing is told before servers are started: the client itself, a configuration that it refuses, a data
        set. The first run that breaks ends the session (RunBroke, EngineDied, Interrupted).
        """
        scenarios = scenarios_of(legs)
        for leg in scenarios:
            check_row(leg)
            if leg.of_trajectories:
                self.observer(Note(disagreement(leg.pack)))
        programs = {leg.pack.round: self._program(leg) for leg in scenarios}
        with self.store.lock():
            end_dead_runs(self.store, self.observer)
            return [
                record
                for _, members in itertools.groupby(scenarios, key=lambda leg: (leg.system, leg.benchmark, leg.engine))
                for record in self._run_group(list(members), programs)
            ]

    def _program(self, leg: PlannedLeg) -> ClientProgram:
        layout, _ = layout_and_client(leg.pack, leg.benchmark)
        program = find_program(layout)
        commit = program.commit or f"not told, source sha256 {program.sha256[:12]}"
        self.observer(Note(f"the endpoints client {program.version} (commit {commit}) at {program.path}"))
        return program

    def _run_group(self, legs: list[PlannedLeg], programs: Mapping[str, ClientProgram]) -> Iterator[RunRecord]:
        first = legs[0]
        benchmark = benchmarks.get(first.benchmark, first.pack, first.config.agentic)
        engine = http_engine(first)
        datasets = read_tables([as_leg(leg, ACCURACY) for leg in legs], benchmark, self.data_dir)
        self._check(legs, benchmark, datasets, programs[first.pack.round])
        name, work = f"{first.system}/{first.benchmark}", self.store.root / first.system / first.benchmark
        work.mkdir(parents=True, exist_ok=True)
        with serving(engine, name=name, folder=work, observer=self.observer) as servers:
            group = ClientGroup(
                benchmark=benchmark,
                datasets=datasets,
                data_dir=self.data_dir,
                division=self.divisions.get((first.system, first.benchmark)) or CLOSED,
                program=programs[first.pack.round],
                serving=servers,
                store=self.store,
                command=self.command,
                observer=self.observer,
            )
            for leg in legs:
                yield run_endpoints_leg(leg, group, self._prepared(leg, group, work))

    def _check(
        self,
        legs: Sequence[PlannedLeg],
        benchmark: Benchmark,
        datasets: Mapping[str, Dataset],
        program: ClientProgram,
    ) -> None:
        """The client reads each configuration, with addresses and rates that only stand for those to come."""
        with tempfile.TemporaryDirectory() as folder:
            for leg in legs:
                tables = Tables(leg, benchmark, datasets)
                check_scoring(tables, self.observer)
                layout, client = layout_and_client(leg.pack, leg.benchmark)
                if client.extra is not None:
                    self.observer(Note(program.check_extra(client.extra, layout)))
                stands_for = Rate(target_qps=1.0, origin="none yet")
                urls = [_SOMEWHERE] * http_engine(leg).replicas
                chosen = choices(leg, urls, leg.rules.model.value, stands_for, tables.asked)
                path = Path(folder) / CONFIG
                path.write_text(config_text(leg.pack, leg.benchmark, chosen), encoding="utf-8")
                program.check(path, layout)

    def _prepared(self, leg: PlannedLeg, group: ClientGroup, work: Path) -> Warmup | None:
        """Canaries and a warm-up by the harness's own client, from outside the data set; it is gone before the run."""
        asking = as_leg(leg, PERFORMANCE)
        with _own_client(leg, group.serving, work) as engine:
            for line in sing(engine, group.benchmark, asking, work):
                self.observer(Note(line))
            if leg.config.warmup.requests == 0:
                return None
            like = group.datasets[table_of(asking, group.benchmark)]
            questions = group.benchmark.warmup_prompts(leg.config.warmup.requests, like=like, seed=leg.config.seed)
            sampling = group.benchmark.sampling(asking.which, seed=leg.config.seed, max_new_tokens=output_cap(asking))
            patience_s = min(_PATIENCE_S, leg.config.watchdog_s)
            with asked(engine) as own:
                return warm_up(own, questions, sampling, patience_s=patience_s, work=work)


def scenarios_of(legs: Sequence[PlannedLeg]) -> list[PlannedLeg]:
    """One of each row's legs: the client does both phases in one run."""
    rows: dict[tuple[str, str, str], PlannedLeg] = {}
    for leg in legs:
        rows.setdefault((leg.system, leg.benchmark, leg.scenario), leg)
    return list(rows.values())


@contextmanager
def _own_client(leg: PlannedLeg, servers: Serving, work: Path) -> Iterator[EngineGroup]:
    """The harness's client processes before servers that run."""
    config = http_engine(leg)
    lanes = lanes_before(len(servers.endpoints), config.clients.processes)
    members = http_members(http_settings(servers, config), lanes)
    with start_group(members, log=work / ENGINE_LOG, timeout_s=_START_S, lanes=lanes, behind=servers.ending) as group:
        yield group
