"""One run of the endpoints client, from the attempt's folder to the finished record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from harness.benchmarks.base import Benchmark, Dataset
from harness.clients.endpoints.agentic import turn_timeout_s
from harness.clients.endpoints.client import Watch, run_client
from harness.clients.endpoints.config import CONFIG, DATA, LEG, TOKENIZER, Choices, config_text, layout_and_client
from harness.clients.endpoints.data import lay_out, link
from harness.clients.endpoints.importer import import_report
from harness.clients.endpoints.program import ClientProgram
from harness.clients.endpoints.questions import lay_out_questions
from harness.clients.endpoints.room import check_room
from harness.config.engine_subject import STRICT_DIVISIONS
from harness.errors import ConfigError, DatasetError, RunBroke
from harness.events import LegFinished, LegStarted, Note, Observer
from harness.gate.endpoints_config import names_model
from harness.gate.error_correction import told_before
from harness.gate.run_facts import ACCURACY, PERFORMANCE
from harness.ledger import ResultsStore, RunRecord, write_record
from harness.ledger.record import Warmup
from harness.ledger.store import write_atomically
from harness.logs import LogError
from harness.rules import BenchmarkRules, TrajectoryRules
from harness.runs.endings import end
from harness.runs.endpoints_record import RunOf, Tables
from harness.runs.endpoints_settings import (
    Asked,
    choices,
    client_rate,
    departure,
    http_engine,
    tokenizer_of,
)
from harness.runs.endpoints_verdict import Judgement, conclude
from harness.runs.plan import PlannedLeg
from harness.runs.servers import Serving

CLOSED: Final = "closed"

_LATER_S: Final = 60.0
"""After the client has given a turn up, it goes on by itself: it is not ended in the same moment."""


@dataclass(frozen=True, slots=True)
class ClientGroup:
    """What the runs of one system and benchmark share while their servers run. ``datasets`` are by table."""

    benchmark: Benchmark
    datasets: Mapping[str, Dataset]
    data_dir: Path
    division: str
    program: ClientProgram
    serving: Serving
    store: ResultsStore
    command: list[str]
    observer: Observer

    def asked(self, leg: PlannedLeg) -> Asked:
        """How much of our data set the client is given; none of it where it has its own."""
        return Tables(leg, self.benchmark, self.datasets).asked


def run_endpoints_leg(leg: PlannedLeg, group: ClientGroup, warmup: Warmup | None) -> RunRecord:
    """Runs the client once, both phases, and returns the finished record.

    Raises RunBroke, EngineDied, MissingError or Interrupted where it did not end as runs end; its folder then says so.
    """
    asked = group.asked(leg)
    started = _begin(leg, group, asked, warmup)
    name = f"{leg.system}/{leg.benchmark}/{leg.scenario}/{LEG}"
    group.observer(LegStarted(name, str(started.folder), None))
    try:
        _check_name(leg, group, started, asked)
        replay = asked.replay
        asked_bytes = 0 if replay is None else replay.asked_bytes
        check_room(_phases(started.chosen, leg, asked), started.folder, asked_bytes=asked_bytes)
        _give(leg, group, started, asked)
        group.program.check(started.folder / CONFIG, layout_and_client(leg.pack, leg.benchmark)[0])
        run_client(group.program, started.folder, _watch(leg, group, name))
        return finish(leg, started.folder, started.record, _judgement(leg, group, started, asked), group.observer)
    except BaseException as error:
        ended = end(started.folder, started.record, error, group.observer)
        group.observer(LegFinished(name, ended.state.value, ended.note or ""))
        raise


def finish(leg: PlannedLeg, folder: Path, record: RunRecord, judgement: Judgement, observer: Observer) -> RunRecord:
    """The finished record, written. RunBroke where the client left no report that can be read."""
    try:
        finished = conclude(folder, record, import_report(folder, whole=judgement.replay is not None), judgement)
    except LogError as error:
        raise RunBroke(f"the client's report cannot be read: {error.what}", where=error.where) from None
    write_record(folder, finished)
    valid = finished.verdict is not None and finished.verdict.valid
    name = f"{leg.system}/{leg.benchmark}/{leg.scenario}/{LEG}"
    observer(LegFinished(name, "VALID" if valid else "INVALID", told(finished, leg.rules)))
    return finished


def told(record: RunRecord, rules: BenchmarkRules) -> str:
    """A finished run in a few words: the first reason against it, else its result and all that targets are about."""
    found = record.verdict.findings if record.verdict else []
    rejects = [finding for finding in found if finding.severity == "reject"]
    if rejects:
        why = f"{rejects[0].rule}: found {rejects[0].found}, expected {rejects[0].expected}"
        kinds = ", ".join(f"{kind} {count}" for kind, count in record.failure_kinds.items())
        first = f"; the first: {record.failures[0].message}" if record.failures else ""
        return why + (f"; {kinds}{first}" if kinds else "")
    parts = [f"{record.result.value:,.2f} {record.result.units}"] if record.result is not None else []
    if record.accuracy is not None and record.accuracy.value is not None:
        parts.append(f"{record.accuracy.key} {record.accuracy.value:.4f}")
        more = [target.value.key for target in rules.accuracy_more_targets]
        parts += [f"{key} {record.accuracy.also[key]:.4f}" for key in more if key in record.accuracy.also]
    if record.turn_figures is not None and record.turn_figures.inline_score is not None:
        parts.append(f"inline score {record.turn_figures.inline_score:.4f}")
    return ", ".join(parts)


@dataclass(frozen=True, slots=True)
class _Started:
    folder: Path
    record: RunRecord
    chosen: Choices


def _begin(leg: PlannedLeg, group: ClientGroup, asked: Asked, warmup: Warmup | None) -> _Started:
    """Makes the attempt's folder with the client's configuration and the record of a run that is running."""
    data = Tables(leg, group.benchmark, group.datasets)
    of = RunOf(leg, data, group.serving.info, group.command, group.program.versions)
    print_ = of.fingerprint
    rate = client_rate(leg, warmup, group.store, print_)
    urls = [url for _, url in group.serving.endpoints]
    chosen = choices(leg, urls, group.serving.model, rate, asked)
    text = config_text(leg.pack, leg.benchmark, chosen)
    run_id, folder = group.store.new_attempt(leg.system, leg.benchmark, leg.scenario, LEG)
    write_atomically(folder / CONFIG, text)
    record = of.started(run_id, rate=rate, warmup=warmup)
    write_record(folder, record)
    for line in told_before(record, leg.pack):
        group.observer(Note(line))
    return _Started(folder, record, chosen)


def _scored_rows(leg: PlannedLeg, asked: Asked) -> int:
    if asked.dataset is not None:
        return asked.rows
    return sum(subset.samples for subset in leg.rules.accuracy_subsets.value.values())


def _phases(chosen: Choices, leg: PlannedLeg, asked: Asked) -> list[tuple[int, int]]:
    """Samples and output cap of both phases; of one whose count the data decide, one pass."""
    rows = _scored_rows(leg, asked)
    measured = rows if asked.replay is None else asked.replay.turns
    return [(chosen.samples or measured, chosen.caps[PERFORMANCE]), (rows, chosen.caps[ACCURACY])]


def _give(leg: PlannedLeg, group: ClientGroup, started: _Started, asked: Asked) -> None:
    """Lays what the client reads where it looks for it: the data set, the benchmark's own files, the tokenizer."""
    _, told_ = layout_and_client(leg.pack, leg.benchmark)
    data, tokenizer = told_.data(leg.scenario), tokenizer_of(leg)
    if data.performance.file is not None:
        link(group.data_dir / leg.benchmark, started.folder, DATA)
    if tokenizer is not None:
        link(tokenizer, started.folder, TOKENIZER)
    if asked.dataset is None or data.cache is None:
        return
    if asked.replay is not None:
        if not asked.replay.whole_questions:
            lay_out_questions(asked.replay.questions, started.folder, data.cache)
        return
    tables = [file.path for file in asked.dataset.files if file.path.suffix == ".parquet"]
    if len(tables) != 1:
        raise DatasetError(
            f"the client reads one parquet file, and the data set has {len(tables)}", where=asked.dataset.name
        )
    lay_out(tables[0], started.folder, data.cache, asked.rows if asked.cut else None)


def _check_name(leg: PlannedLeg, group: ClientGroup, started: _Started, asked: Asked) -> None:
    """ConfigError where the gate will refuse the name under which the servers serve, before hours are spent on it."""
    name, judgement = group.serving.model, _judgement(leg, group, started, asked)
    stands_in = judgement.departure.model is not None
    if stands_in or group.division not in STRICT_DIVISIONS or names_model(name, leg.rules):
        return
    raise ConfigError(
        f"the servers call the model {name}, and the entry is {group.division}: its report would be refused",
        where=f"systems/{leg.system}/{leg.benchmark}.yaml: engine.checkpoint",
        expected=f"a name that has {leg.rules.model.value.rpartition('/')[2]} in it",
        mend="call the checkpoint's folder so, or serve it under that name",
    )


def _watch(leg: PlannedLeg, group: ClientGroup, name: str) -> Watch:
    timeouts_s = [leg.config.watchdog_s, http_engine(leg).clients.request_timeout_s or 0.0]
    if isinstance(leg.rules, TrajectoryRules):
        timeouts_s.append(turn_timeout_s(leg.rules) + _LATER_S)  # so long the client itself waits for a turn
    return Watch(name, group.serving.ending, max(timeouts_s), group.observer, group.serving.occupancy)


def _judgement(leg: PlannedLeg, group: ClientGroup, started: _Started, asked: Asked) -> Judgement:
    departed = departure(leg, group.serving.info, group.serving.model, asked, started.record.not_submittable)
    return Judgement(leg.pack, departed, group.division, group.benchmark, asked.dataset, replay=asked.replay)
