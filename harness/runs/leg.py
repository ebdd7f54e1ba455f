"""One leg, from the attempt's folder to the finished record."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from harness.benchmarks.base import Benchmark, Dataset
from harness.clients.loadgen import user_conf
from harness.clients.loadgen.audit_conf import AuditFile
from harness.clients.loadgen.job import WORKER_LOG, ChatsFile, LegJob, Outcome
from harness.clients.loadgen.launch import Beside, run_job
from harness.clients.watching import limits_ns
from harness.engines.base import Sampling
from harness.engines.group import EngineGroup
from harness.errors import EngineDied, Interrupted, RunBroke
from harness.events import LegFinished, LegStarted, Note, Observer
from harness.gate.error_correction import told_before
from harness.gate.run_facts import ACCURACY
from harness.ledger import Fingerprint, ResultsStore, RunRecord, State, write_record
from harness.ledger.record import AuditConfigEcho, DatasetEcho, ProbeEcho, Rate, Warmup
from harness.ledger.sizes import Known
from harness.ledger.store import AUDIT_CONFIG, USER_CONF, write_atomically
from harness.machine.capture import captured
from harness.runs.echoes import engine_echo
from harness.runs.endings import end, measured
from harness.runs.engine_up import asked, ending_of
from harness.runs.identity import fingerprint, versions
from harness.runs.judging import judge
from harness.runs.known_rates import Rates
from harness.runs.leg_settings import (
    LegSettings,
    asked_rows,
    check_lengths,
    deviations,
    loadgen_settings,
    not_submittable,
    only_for_analysis,
    output_cap,
)
from harness.runs.plan import PlannedLeg
from harness.runs.rates import target_qps
from harness.runs.sizing import size_of
from harness.runs.space import check_disk, logged_bytes
from harness.runs.tables import Asked, table_of, tables_of
from harness.runs.trajectories import own_chats, replay_of, turns_of
from harness.runs.warmup import warm_up

_HTTP = "http"
_PATIENCE_S = 300.0


@dataclass(frozen=True, slots=True)
class Group:
    """What the legs of one system and benchmark share while they run."""

    benchmark: Benchmark
    datasets: Mapping[str, Dataset]
    data_dir: Path
    engine: EngineGroup
    store: ResultsStore
    command: list[str]
    observer: Observer
    whole_rows: Mapping[str, int] = field(default_factory=dict)
    """Rows of those tables of which a part alone was made ready."""
    chats: Mapping[str, ChatsFile] = field(init=False)
    """The chats of each table that has any, as they were before the first leg: they may be made anew meanwhile."""

    def __post_init__(self) -> None:
        found = {name: ChatsFile.of(table.chats) for name, table in self.datasets.items() if table.chats is not None}
        object.__setattr__(self, "chats", found)

    def rows(self, table: Dataset) -> int:
        """Rows of a whole table."""
        return self.whole_rows.get(table.table, table.rows)

    def chats_of(self, dataset: Dataset) -> ChatsFile | None:
        """What is asked of a data set: of a run's own chats as they are now, of others as they were."""
        shared = self.chats.get(dataset.table)
        if dataset.chats is None or (shared is not None and shared.path == str(dataset.chats.absolute())):
            return shared
        return ChatsFile.of(dataset.chats)

    def tell(self, line: str) -> None:
        """A line for people."""
        self.observer(Note(line))


Noted: TypeAlias = Callable[[Path, RunRecord], RunRecord]


def as_it_is(folder: Path, record: RunRecord) -> RunRecord:
    """Notes nothing more of a run that was measured."""
    return record


def run_leg(leg: PlannedLeg, group: Group, noted: Noted = as_it_is) -> RunRecord:
    """Runs one leg to its end and returns its record. ``noted`` adds to that of a run that was measured, before it is
    judged; what it raises leaves the run measured.

    Raises RunBroke, EngineDied or Interrupted where it did not end as legs end; its folder then says so.
    """
    dataset = _dataset(leg, group)
    check_lengths(leg, dataset.prompt_tokens, group.engine.info)
    check_disk(group.store.root, _logged_bytes(leg, dataset))
    sampling = group.benchmark.sampling(leg.which, seed=leg.config.seed, max_new_tokens=output_cap(leg))
    warmup = _warm_up(leg, group, sampling)
    folder, record, settings = _begin(leg, group, dataset, warmup)
    try:
        group.observer(LegStarted(leg.name, str(folder), _expected_s(leg, group, dataset, record.rate)))
        with own_chats(group.benchmark, dataset, folder, record, group.tell) as (asked, record):
            job = _job(leg, group, folder, sampling, asked, settings.rows)
            outcome = run_job(job, leg.name, group.observer, _beside(leg, group))
        _raise_if_broken(outcome, folder, group.engine)
    except BaseException as error:
        ended = end(folder, record, error, group.observer)
        group.observer(LegFinished(leg.name, ended.state.value, ended.note or ""))
        raise
    # A disk that is full just now leaves it running; the next harness in the folder sees that it was measured.
    record = noted(folder, measured(folder, record, outcome))
    return judge(leg, folder, record, outcome, dataset, group.benchmark, group.observer)


def expected_rate(leg: PlannedLeg, group: Group) -> Rate:
    """The rate that a leg would ask at, after a warm-up; see :func:`~harness.runs.rates.target_qps`."""
    dataset = _dataset(leg, group)
    check_lengths(leg, dataset.prompt_tokens, group.engine.info)
    sampling = group.benchmark.sampling(leg.which, seed=leg.config.seed, max_new_tokens=output_cap(leg))
    warmup = _warm_up(leg, group, sampling)
    return target_qps(leg, warmup, group.store, fingerprint_of(leg, group), _turns_a_row(leg, dataset))


def fingerprint_of(leg: PlannedLeg, group: Group) -> Fingerprint:
    """What a run of the leg would have in common with others, as the machine and the engine are now."""
    return fingerprint(leg, group.engine.info, _hashes(leg, group), captured(group.engine.info.versions).machine)


def _hashes(leg: PlannedLeg, group: Group) -> dict[str, str]:
    tables = tables_of(leg, group.benchmark)
    return {name: table.sha256 for name, table in group.datasets.items() if name in tables}


def _dataset(leg: PlannedLeg, group: Group) -> Dataset:
    return group.datasets[table_of(leg, group.benchmark)]


def _warm_up(leg: PlannedLeg, group: Group, sampling: Sampling) -> Warmup:
    requests = 0 if leg.probe is not None and leg.probe.warm else leg.config.warmup.requests
    questions = group.benchmark.warmup_prompts(requests, like=_dataset(leg, group), seed=leg.config.seed)
    patience_s = min(_PATIENCE_S, leg.config.watchdog_s)
    work = group.store.root / leg.system / leg.benchmark
    work.mkdir(parents=True, exist_ok=True)
    with asked(group.engine) as engine:
        return warm_up(engine, questions, sampling, patience_s=patience_s, work=work, logged=group.benchmark.logged)


def _begin(leg: PlannedLeg, group: Group, dataset: Dataset, warmup: Warmup) -> tuple[Path, RunRecord, LegSettings]:
    """Makes the attempt's folder with its user.conf and the record of a run that is running."""
    info = group.engine.info
    found = captured(info.versions)
    machine = found.machine
    print_ = fingerprint(leg, info, _hashes(leg, group), machine)
    rate = target_qps(leg, warmup, group.store, print_, _turns_a_row(leg, dataset))
    settings = loadgen_settings(leg, rate, dataset.rows, whole=dataset.whole, trajectories=dataset.trajectories)
    echo = DatasetEcho(name=dataset.name, rows=group.rows(dataset), sha256=dataset.sha256, stand_in=dataset.stand_in)
    run_id, folder = group.store.new_attempt(leg.system, leg.benchmark, leg.scenario, leg.kept_as)
    write_atomically(folder / USER_CONF, settings.conf)
    if leg.audit is not None:
        write_atomically(folder / AUDIT_CONFIG, leg.audit.content.decode())
    record = RunRecord(
        id=run_id,
        round=leg.pack.round,
        state=State.RUNNING,
        test_run=leg.test_run,
        started_at=_now(),
        command=group.command,
        config=leg.config.model_dump(mode="json"),
        fingerprint=print_,
        machine=machine,
        ecc=found.ecc,
        engine=engine_echo(info),
        dataset=echo,
        versions=dict(versions()),
        loadgen_settings={str(s).split(" = ")[0]: s.value for s in user_conf.parse(settings.conf)},
        rate=rate,
        warmup=warmup,
        probe=_probe_echo(leg, rate),
        not_submittable=[*not_submittable(leg, info, echo), *only_for_analysis(leg)],
        deviations=[*deviations(leg), *group.benchmark.deviations(leg.which)],
        audit_config=_audit_echo(leg.audit),
    )
    write_record(folder, record)
    for line in told_before(record, leg.pack):
        group.tell(line)
    return folder, record, settings


def _probe_echo(leg: PlannedLeg, rate: Rate) -> ProbeEcho | None:
    of = leg.probe
    if of is None:
        return None
    return ProbeEcho(search=of.search, number=of.number, rate=rate.target_qps, purpose=of.purpose)


def _beside(leg: PlannedLeg, group: Group) -> Beside:
    """What progress is shown with. What an accuracy leg answers has no time to keep to."""
    limits = limits_ns(leg.scenario_rules) if leg.leg != ACCURACY else {}
    return Beside(limits, group.engine.occupancy)


def _audit_echo(audit: AuditFile | None) -> AuditConfigEcho | None:
    if audit is None:
        return None
    return AuditConfigEcho(name=audit.name, sha256=audit.sha256, approved_sha256=audit.approved_sha256)


def _job(leg: PlannedLeg, group: Group, folder: Path, sampling: Sampling, dataset: Dataset, rows: int) -> LegJob:
    rules = leg.scenario_rules
    return LegJob(
        folder=str(folder.absolute()),
        data_dir=str(group.data_dir.absolute()),
        dataset_sha256=dataset.sha256,
        round=leg.pack.round,
        benchmark=leg.benchmark,
        table=dataset.table,
        dataset=Asked(leg.which, dataset).name,
        chats=group.chats_of(dataset),
        rows=rows,
        model=rules.loadgen_model.value,
        scenario=rules.loadgen_scenario.value,
        mode=leg.mode,
        audit="" if leg.audit is None else str((folder / AUDIT_CONFIG).absolute()),
        engine=group.engine.address,
        sampling=sampling,
        min_answer_tokens=leg.rules.min_answer_tokens.value,
        watchdog_s=leg.config.watchdog_s,
        logged=group.benchmark.logged,
        replay=replay_of(leg, dataset),
        inside=_inside(group.engine, dataset),
    )


def _inside(engine: EngineGroup, dataset: Dataset) -> dict[str, object] | None:
    """The client of a single server, for the worker to have in its own process: of a trajectory each turn waits for the
    one before, and each would cross to another process and back.
    """
    alone = engine.spec.kind == _HTTP and engine.address.simple
    return engine.spec.to_json() if dataset.trajectories and alone else None


def _raise_if_it_ended(folder: Path, engine: EngineGroup) -> None:
    """EngineDied where all was answered and yet a part of the engine is gone: by whom is not known then."""
    how = engine.ending()
    if how is not None:
        raise EngineDied(
            f"the run broke: {how}\n  the worker saw nothing of it: who answered is not known",
            where=folder,
            mend=f"see {', '.join(map(str, engine.logs))}, and whether another listens in its place",
        )


def _raise_if_broken(outcome: Outcome, folder: Path, engine: EngineGroup) -> None:
    if outcome.error is None:
        _raise_if_it_ended(folder, engine)
        return
    if outcome.exit_code == Interrupted.exit_code:
        raise Interrupted(outcome.error, where=folder)
    mend = f"see {WORKER_LOG} there, and {', '.join(map(str, engine.logs))}"
    how = ending_of(engine) if outcome.engine_died else engine.ending()
    if how is not None:
        raise EngineDied(f"the run broke: {how}\n  the worker saw: {outcome.error}", where=folder, mend=mend)
    raise RunBroke(f"the run broke: {outcome.error}", where=folder, mend=mend)


def _turns_a_row(leg: PlannedLeg, dataset: Dataset) -> float | None:
    rows = asked_rows(leg, dataset.rows)
    turns = turns_of(leg, dataset, rows)
    return None if turns is None else turns / rows


def _logged_bytes(leg: PlannedLeg, dataset: Dataset) -> int:
    turns = turns_of(leg, dataset, asked_rows(leg, dataset.rows))
    return logged_bytes(leg, dataset.rows, turns, of_text=dataset.chats is not None)


def _expected_s(leg: PlannedLeg, group: Group, dataset: Dataset, rate: Rate | None) -> float | None:
    """How long the leg should take at its rate, as far as the ledger tells."""
    known = None if rate is None else Known(rate.target_qps, rate.origin)
    turns = turns_of(leg, dataset, asked_rows(leg, dataset.rows))
    return size_of(leg, Rates(group.store), rows=dataset.rows, turns=turns, rate=known).expected_s


def _now() -> str:
    return datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
