"""What one run of the endpoints client is to do: who answers, how much, how fast, and in what it leaves the rules."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from harness.benchmarks.base import Dataset
from harness.clients.endpoints import agentic
from harness.clients.endpoints.config import LEG, Choices, layout_and_client
from harness.clients.endpoints.sizing import samples_to_issue
from harness.config.engines import HttpEngine
from harness.engines.base import EngineInfo
from harness.engines.launch import weights
from harness.errors import ConfigError, MissingError
from harness.gate.run_facts import ACCURACY, PERFORMANCE
from harness.ledger import Fingerprint, ResultsStore
from harness.ledger.record import Rate, Warmup
from harness.rules import TrajectoryRules
from harness.runs.endpoints_expected import Departure
from harness.runs.endpoints_replay import Replay, replay_of
from harness.runs.leg_settings import deviations as leg_deviations
from harness.runs.leg_settings import output_cap
from harness.runs.plan import PlannedLeg
from harness.runs.rates import target_qps
from harness.runs.trajectories import asking_of

_OFFLINE: Final = "Offline"
_TOKENIZER_FILES: Final = ("tokenizer.json", "tokenizer_config.json")
_AS_THE_CHECKPOINT: Final = frozenset(("vllm", "sglang", "torch"))
"""Servers that sample by the checkpoint's generation_config.json where a request does not say how."""
_OTHERWISE: Final = frozenset(("generation_config", "override_generation_config", "sampling_defaults"))
"""Options by which they may do otherwise."""


@dataclass(frozen=True, slots=True)
class Asked:
    """How much of which data set a run asks. ``rows`` are the first ones, ``cut`` whether there are more.

    ``dataset`` is None where the client has data sets of its own, which the harness does not read. ``replay`` is what
    the measured phase asks where that is another data set, of trajectories.
    """

    dataset: Dataset | None
    rows: int
    cut: bool
    replay: Replay | None = None


def as_leg(leg: PlannedLeg, name: str) -> PlannedLeg:
    """The same leg as one of LoadGen's: caps, tables and deviations are told by those."""
    return dataclasses.replace(leg, leg=name)


def http_engine(leg: PlannedLeg) -> HttpEngine:
    """The engine that the client asks. ConfigError for one that is no server."""
    engine = leg.engine
    if not isinstance(engine, HttpEngine):
        raise ConfigError(
            f"the endpoints client asks servers, and an engine of kind {engine.kind} is none",
            where=f"systems/{leg.system}/{leg.benchmark}.yaml: engine",
            expected="an engine of kind http, with servers to start or endpoints that answer",
            mend="measure it with LoadGen: --client=loadgen",
        )
    return engine


def check_row(leg: PlannedLeg) -> None:
    """ConfigError where the round has no row of the leg's scenario: the client measures nothing but rows."""
    if leg.scenario not in leg.rules.scenarios:
        raise ConfigError(
            f"{leg.pack.round} has no row of {leg.benchmark} in {leg.scenario}",
            where="--client=endpoints",
            expected="one of " + ", ".join(leg.rules.scenarios),
            mend=f"name it with --scenarios; for analysis alone, {leg.scenario} is measured with --client=loadgen",
        )


def asked_of(leg: PlannedLeg, dataset: Dataset | None, measured: Dataset | None = None) -> Asked:
    """All rows; of a short run the first ones, where the client reads our data set. ``measured`` are the trajectories
    that the measured phase replays, of which a short run has the first.
    """
    if dataset is None:
        return Asked(None, leg.rules.rows(PERFORMANCE, leg.scenario), cut=False)
    short = leg.config.test_run
    rows = min(dataset.rows, short.accuracy_samples) if leg.test_run else dataset.rows
    asked = dataset.head(rows) if rows < dataset.rows else dataset
    replay = replay_of(leg.rules, measured, asked, short.performance_samples if leg.test_run else None)
    return Asked(asked, rows, cut=rows < dataset.rows, replay=replay)


def choices(leg: PlannedLeg, endpoints: Sequence[str], model: str, rate: Rate | None, asked: Asked) -> Choices:
    """What the client is told beyond the rules."""
    if isinstance(leg.rules, TrajectoryRules):
        return _of_trajectories(leg, leg.rules, endpoints, model, asked)
    if rate is None:
        raise ValueError(f"{leg.name} needs a rate")
    engine = http_engine(leg)
    replicas = len(endpoints)
    return Choices(
        name=f"{leg.system}-{leg.benchmark}-{leg.scenario}",
        scenario=leg.scenario,
        model=model,
        endpoints=tuple(endpoints),
        caps={name: output_cap(as_leg(leg, name)) for name in (PERFORMANCE, ACCURACY)},
        samples=samples(leg, rate, asked.rows),
        rate=rate.target_qps,
        min_duration_ms=min_duration_ms(leg),
        workers=math.ceil(engine.clients.processes / replicas) * replicas,
        connections=engine.clients.connections * replicas,
        has_tokenizer=tokenizer_of(leg) is not None,
        says_sampling=not _samples_as_the_checkpoint(engine),
    )


def _of_trajectories(
    leg: PlannedLeg, rules: TrajectoryRules, endpoints: Sequence[str], model: str, asked: Asked
) -> Choices:
    """One request at a time, of one server: nothing is to be chosen but how many, and what goes with each."""
    if len(endpoints) != 1:
        raise ConfigError(
            f"the client asks over one connection, and there are {len(endpoints)} servers",
            where=f"systems/{leg.system}/{leg.benchmark}.yaml: scenarios.{leg.scenario}.replicas",
            expected="one server in this scenario",
            mend=f"give scenarios.{leg.scenario} replicas: 1",
        )
    replay = asked.replay
    return Choices(
        name=f"{leg.system}-{leg.benchmark}-{leg.scenario}",
        scenario=leg.scenario,
        model=model,
        endpoints=tuple(endpoints),
        caps={name: output_cap(as_leg(leg, name)) for name in (PERFORMANCE, ACCURACY)},
        samples=None,
        rate=None,
        min_duration_ms=min_duration_ms(leg),
        workers=1,
        connections=1,
        has_tokenizer=tokenizer_of(leg) is not None,
        trajectories=None if replay is None or replay.whole else replay.trajectories,
        sampling=None if replay is None or replay.whole_questions else agentic.all_of_them(rules),
        chat_template_kwargs=asking_of(leg).chat_template_kwargs,
    )


def _samples_as_the_checkpoint(engine: HttpEngine) -> bool:
    """Whether requests may leave sampling to the servers; of those that somebody else started nobody knows how."""
    options = {name.replace("-", "_") for name in engine.options}
    return engine.server in _AS_THE_CHECKPOINT and not engine.endpoints and not options & _OTHERWISE


def tokenizer_of(leg: PlannedLeg) -> Path | None:
    """The folder of the tokenizer beside the weights; None where they lie elsewhere, or without one."""
    folder = weights.folder_of(http_engine(leg).checkpoint)
    return folder.absolute() if any((folder / name).is_file() for name in _TOKENIZER_FILES) else None


def min_duration_ms(leg: PlannedLeg) -> int:
    """How long the measured phase is to last: the round's time, a longer one that is configured, or a short run's."""
    if leg.test_run:
        return leg.config.test_run.min_duration_ms
    return max(leg.pack.measured_duration_ms.value, leg.config.scenarios[leg.scenario].min_duration_ms or 0)


def samples(leg: PlannedLeg, rate: Rate, rows: int) -> int:
    """How many samples the measured phase issues; enough for an early-stopping estimate where latency is limited."""
    online = leg.scenario != _OFFLINE
    least = samples_to_issue(rate.target_qps, rows, min_duration_ms(leg), scheduled=online)
    layout, _ = layout_and_client(leg.pack, leg.benchmark)
    wanted = leg.config.scenarios[leg.scenario].min_query_count or 0
    if online:
        wanted = max(wanted, layout.early_stopping_min_samples.value)
    if leg.test_run:
        short = leg.config.test_run
        wanted = max(wanted, short.server_queries if online else short.performance_samples)
    return max(least, math.ceil(wanted / rows) * rows)


def departure(leg: PlannedLeg, engine: EngineInfo, model: str, asked: Asked, reasons: Sequence[str]) -> Departure:
    """In what the run departs from the round's rules on purpose; ``reasons`` are why it can never be filed."""
    caps = tuple(output_cap(as_leg(leg, name)) for name in (PERFORMANCE, ACCURACY))
    stands_in = engine.checkpoint is None or engine.checkpoint.stand_in
    whole = asked.rows == leg.rules.rows(ACCURACY, leg.scenario)
    replay = asked.replay
    return Departure(
        rows=None if whole or asked.dataset is None else asked.rows,
        min_duration_ms=min_duration_ms(leg) if leg.test_run else None,
        caps=(caps[0], caps[1]),
        model=model if stands_in and reasons else None,
        may_be_filed=not reasons,
        trajectories=None if replay is None or replay.whole else (replay.trajectories, replay.turns),
        all_questions=replay is not None and not replay.whole_questions,
    )


def deviations(leg: PlannedLeg) -> list[str]:
    """In what both phases depart from the round's rules by configuration."""
    return [text for name in (PERFORMANCE, ACCURACY) for text in leg_deviations(as_leg(leg, name))]


def client_rate(leg: PlannedLeg, warmup: Warmup | None, store: ResultsStore, fingerprint: Fingerprint) -> Rate | None:
    """The rate of a run, and where it came from: as LoadGen's, but that a share is of an Offline run of this client.

    None where the servers' answers alone say when the next request goes out.
    """
    if leg.of_trajectories:
        return None
    own = leg.config.scenarios[leg.scenario].target_qps
    share = getattr(own, "offline_share", None)
    if share is None:
        return target_qps(as_leg(leg, PERFORMANCE), warmup, store, fingerprint)
    run = store.latest_finished(leg.system, leg.benchmark, _OFFLINE, LEG)
    command = f"--client={LEG} --systems={leg.system} --benchmarks={leg.benchmark} --scenarios={_OFFLINE}"
    differing = [] if run is None else run.record.fingerprint.differs_from(fingerprint)
    others = [key for key in differing if not key.startswith("scenario")]
    if run is None or run.record.result is None or others:
        why = f"the newest was made with other settings: {', '.join(others)}" if others else "none has finished"
        raise MissingError(
            f"target_qps of {leg.scenario} is a share of the {_OFFLINE} rate of this client, and of such runs {why}",
            where=store.root / leg.system / leg.benchmark,
            mend=f'run it first: make run_harness RUN_ARGS="{command}"',
        )
    return Rate(target_qps=run.record.result.value * share, origin=f"{run.record.id} x {share}")
