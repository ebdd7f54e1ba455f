"""Takes the report of a client that somebody else started as a run of the ledger."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from harness import benchmarks
from harness.clients.endpoints.config import LEG, REPORT, layout_and_client
from harness.clients.endpoints.events import EVENTS, INDEX
from harness.clients.endpoints.importer import copy_report
from harness.clients.endpoints.report import SINGLE, ClientReport, find_report, read_report
from harness.config.engines import HttpEngine, ServedCheckpoint
from harness.engines.base import Checkpoint, EngineInfo
from harness.engines.launch import weights
from harness.errors import ConfigError, RunBroke
from harness.events import LegFinished, LegStarted, Note, Observer
from harness.gate.run_facts import ACCURACY
from harness.ledger import ResultsStore, RunRecord, write_record
from harness.ledger.hashes import sha256
from harness.logs import LogError, read_config
from harness.logs.endpoints import ACCURACY_RESULTS, CONFIGS, RESULT_SUMMARY
from harness.runs.endings import end, end_dead_runs
from harness.runs.endpoints_leg import CLOSED, finish
from harness.runs.endpoints_record import RunOf, Tables, check_scoring
from harness.runs.endpoints_settings import as_leg, check_row, departure
from harness.runs.endpoints_verdict import Judgement
from harness.runs.plan import PlannedLeg
from harness.runs.tables import read_tables

UNWITNESSED: Final = "imported: the harness saw neither servers nor run; machine: this one, engine: as configured"
"""The note of such a run."""


def import_run(
    leg: PlannedLeg,
    folder: Path,
    *,
    store: ResultsStore,
    data_dir: Path,
    command: list[str],
    division: str | None,
    observer: Observer,
) -> RunRecord:
    """Imports the report in ``folder`` as a new attempt of the leg's row, gated like a run that was made here.

    The report is copied; nothing in it is changed. ConfigError or MissingError where it is none, or that of a run that
    is kept already; DatasetError where the data set is not here, RunBroke where the report cannot be read.
    """
    layout_and_client(leg.pack, leg.benchmark)
    check_row(leg)
    source = find_report(folder)
    report = _readable(source)
    benchmark = benchmarks.get(leg.benchmark, leg.pack, leg.config.agentic)
    data = Tables(leg, benchmark, read_tables([as_leg(leg, ACCURACY)], benchmark, data_dir))
    check_scoring(data, observer)
    asked = data.asked
    info = _as_configured(leg, observer)
    told = {"endpoints": report.version or "not told"} | ({"endpoints_commit": report.commit} if report.commit else {})
    with store.lock():
        end_dead_runs(store, observer)
        _not_twice(store, source)
        run_id, run_folder = store.new_attempt(leg.system, leg.benchmark, leg.scenario, LEG)
        record = RunOf(leg, data, info, command, told).started(run_id, note=UNWITNESSED)
        record = record.model_copy(update={"ecc": None})  # the machine as it is now says nothing of how it was then
        write_record(run_folder, record)
        name = f"{leg.system}/{leg.benchmark}/{leg.scenario}/{LEG}"
        observer(LegStarted(name, str(run_folder), None))
        try:
            copy_report(source, run_folder)
            departed = departure(leg, info, leg.rules.model.value, asked, record.not_submittable)
            told_of = (division or CLOSED, benchmark, asked.dataset)
            judgement = Judgement(leg.pack, departed, *told_of, replay=asked.replay, told=False)
            return finish(leg, run_folder, record, judgement, observer)
        except BaseException as error:
            ended = end(run_folder, record, error, observer)
            observer(LegFinished(name, ended.state.value, ended.note or ""))
            raise


def one_row(legs: list[PlannedLeg]) -> PlannedLeg:
    """The leg of the one row that is imported. ConfigError where the options name several."""
    rows = list(dict.fromkeys((leg.system, leg.benchmark, leg.scenario) for leg in legs))
    if len(rows) != 1:
        raise ConfigError(
            f"a report is of one row, and these are {len(rows)}",
            where="--import",
            expected="one of " + ", ".join("/".join(row) for row in rows),
            mend="name it with --systems, --benchmarks and --scenarios",
        )
    return legs[0]


def _not_twice(store: ResultsStore, source: Path) -> None:
    """ConfigError for the report of a run that is kept already, of whatever row: one measurement is one result."""
    name = next(str(name) for name in (RESULT_SUMMARY, SINGLE) if (source / name).is_file())
    digest = sha256(source / name)
    for run in store.readable_runs()[0]:
        if run.record.hashes.get(f"{REPORT}/{name}") == digest:
            raise ConfigError(
                f"this report is that of {run.record.id} already",
                where=source,
                expected="a report that no run of the results folder has",
                mend="move that run's folder away, if it was imported as what it is not",
            )


def _readable(source: Path) -> ClientReport:
    """The report, with a configuration that can be read, before an attempt is made for it."""
    for name in (RESULT_SUMMARY, SINGLE, ACCURACY_RESULTS, *CONFIGS, EVENTS, INDEX):
        if (source / name).is_symlink():
            raise ConfigError(
                "a file of the report is a link, and links are not followed",
                where=source / name,
                mend="put the file itself in its place",
            )
    try:
        report = read_report(source)
        if any((source / name).is_file() for name in CONFIGS):
            read_config(source)
        return report
    except LogError as error:
        raise RunBroke(f"the client's report cannot be read: {error.what}", where=error.where) from None


def _as_configured(leg: PlannedLeg, observer: Observer) -> EngineInfo:
    """The engine as its configuration says it is: nobody was asked."""
    engine = leg.engine
    if not isinstance(engine, HttpEngine):
        raise ConfigError(
            f"the endpoints client asks servers, and an engine of kind {engine.kind} is none",
            where=f"systems/{leg.system}/{leg.benchmark}.yaml: engine",
            expected="an engine of kind http",
        )
    checkpoint = _checkpoint(engine, observer)
    return EngineInfo(
        kind="http",
        vocab_size=0,
        max_total_tokens=0,
        slots=engine.clients.connections * engine.replicas,
        checkpoint=checkpoint,
        versions={engine.server: engine.version or "not told"},
        settings={"server": engine.server, "replicas": engine.replicas, "options": engine.options},
        not_submittable=("stand-in checkpoint",) if checkpoint is not None and checkpoint.stand_in else (),
    )


def _checkpoint(engine: HttpEngine, observer: Observer) -> Checkpoint | None:
    """What lies at the configured path; else what the configuration says of it, without a hash."""
    found = weights.described(engine.checkpoint, observer)
    stated = engine.checkpoint
    if found is not None or not isinstance(stated, ServedCheckpoint):
        return found
    observer(Note(f"the checkpoint {stated.name} is not here: its weights have no hash in the record"))
    return None
