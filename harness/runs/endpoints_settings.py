"""What one run of the endpoints client is to do: who answers, how much, how fast, and in what it leaves the rules."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from harness.benchmarks.base import Dataset
from harness.clients.endpoints.config import LEG, Choices, layout_and_client
from harness.clients.endpoints.sizing import samples_to_issue
from harness.config.engines import HttpEngine
from harness.engines.base import EngineInfo
from harness.engines.launch import weights
from harness.errors import ConfigError, MissingError
from harness.gate.run_facts import ACCURACY, PERFORMANCE
from harness.ledger import Fingerprint, ResultsStore
from harness.ledger.record import Rate, Warmup
from harness.runs.endpoints_expected import Departure
from harness.runs.leg_settings import deviations as leg_deviations
from harness.runs.leg_settings import output_cap
from harness.runs.plan import PlannedLeg
from harness.runs.rates import target_qps

_OFFLINE: Final = "Offline"
_TOKENIZER_FILES: Final = ("tokenizer.json", "tokenizer_config.json")
_AS_THE_CHECKPOINT: Final = frozenset(("vllm", "sglang", "torch"))
"""Servers that sample by the checkpoint's generation_config.json where a request does not say how."""
_OTHERWISE: Final = frozenset(("generation_config", "override_generation_config", "sampling_defaults"))
"""Options by which they may do otherwise."""


@dataclass(frozen=True, slots=True)
class Asked:
    """How much of which data set a run asks. ``rows`` are the first ones, ``cut`` whether there are more.

    ``dataset`` is None where the client has data sets of its own, which the harness does not read.
    """

    dataset: Dataset | None
    rows: int
    cut: bool


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


def asked_of(leg: PlannedLeg, dataset: Dataset | None) -> Asked:
    """All rows; of a short run the first ones, where the client reads our data set."""
    if dataset is None:
        return Asked(None, leg.rules.rows(PERFORMANCE, leg.scenario), cut=False)
    rows = min(dataset.rows, leg.config.test_run.accuracy_samples) if leg.test_run else dataset.rows
    return Asked(dataset.head(rows) if rows < dataset.rows else dataset, rows, cut=rows < dataset.rows)


def choices(leg: PlannedLeg, endpoints: Sequence[str], model: str, rate: Rate, asked: Asked) -> Choices:
    """What the client is told beyond the rules."""
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
    return Departure(
        rows=None if whole or asked.dataset is None else asked.rows,
        min_duration_ms=min_duration_ms(leg) if leg.test_run else None,
        caps=(caps[0], caps[1]),
        model=model if stands_in and reasons else None,
        may_be_filed=not reasons,
    )


def deviations(leg: PlannedLeg) -> list[str]:
    """In what both phases depart from the round's rules by configuration."""
    return [text for name in (PERFORMANCE, ACCURACY) for text in leg_deviations(as_leg(leg, name))]


def client_rate(leg: PlannedLeg, warmup: Warmup | None, store: ResultsStore, fingerprint: Fingerprint) -> Rate:
    """The rate of a run, and where it came from: as LoadGen's, but that a share is of an Offline run of this client."""
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
