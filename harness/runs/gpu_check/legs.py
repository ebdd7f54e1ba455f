"""A short Offline and a short Server leg through LoadGen, on an engine that runs already."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from harness import benchmarks
from harness.benchmarks.base import Benchmark, Dataset
from harness.config.models import (
    BenchmarkFile,
    Engine,
    MeasuredRate,
    OfflineShare,
    OutputCaps,
    Scenario,
    TestRun,
    WarmupSettings,
)
from harness.engines.base import EngineInfo
from harness.engines.group import EngineGroup
from harness.errors import HarnessError, Interrupted, MissingError, RunBroke
from harness.events import Note, Observer
from harness.gate.run_facts import PERFORMANCE
from harness.ledger import ResultsStore, RunRecord
from harness.rules import RulePack
from harness.runs.canary import sing
from harness.runs.gpu_check.report import Finding, Outcome, failed, judged, not_asked, passed
from harness.runs.leg import Group, run_leg
from harness.runs.plan import PlannedLeg

SYSTEM: Final = "gpu_check"
BENCHMARK: Final = "gpt-oss-120b"
SCENARIOS: Final = ("Offline", "Server")
_CANARIES: Final = "do whole tokens come back, and does a trained model end by itself?"
_QUESTION: Final = "is a short {} leg VALID?"


@dataclass(frozen=True, slots=True)
class LegSize:
    """How long the legs are: tokens an answer may have, rows of the data set, LoadGen's shortest time, queries.

    The queries of Server are what early stopping needs to believe a 99th percentile; fewer make the leg INVALID.
    """

    output_cap: int = 128
    samples: int = 512
    min_duration_ms: int = 10_000
    server_queries: int = 460
    warmup: int = 128
    server_share: float = 0.3


@dataclass(frozen=True, slots=True)
class LegPlace:
    """Where legs get their data and leave their runs."""

    results: Path
    data_dir: Path
    command: tuple[str, ...]
    pack: RulePack


def short_legs(
    engine: Engine, group: EngineGroup, where: str, size: LegSize, place: LegPlace, observer: Observer
) -> list[Finding]:
    """Both legs, Offline first: the Server rate is a share of what it reached. Their runs stay in ``place.results``."""
    findings: list[Finding] = []
    try:
        benchmark, dataset = _data(place, group.info, size, observer)
    except _Unfit as unfit:
        return [_finding(where, scenario, not_asked(str(unfit))) for scenario in SCENARIOS]
    config = _config(engine, size)
    store = ResultsStore(place.results / where.replace(" ", "_"))
    datasets = {"performance": dataset}
    own = Group(benchmark, datasets, place.data_dir, group, store, [*place.command], observer)
    with store.lock():
        for scenario in SCENARIOS:
            leg = PlannedLeg(SYSTEM, BENCHMARK, scenario, PERFORMANCE, config, place.pack, test_run=True)
            if not findings:
                findings.append(Finding(where, "canaries", _CANARIES, _sing(leg, own)))
            findings.append(_finding(where, scenario, _run(leg, own)))
    return findings


class _Unfit(Exception):
    """The data set cannot be asked of this engine."""


def _sing(leg: PlannedLeg, group: Group) -> Outcome:
    try:
        return passed("; ".join(sing(group.engine, group.benchmark, leg, group.store.root)))
    except RunBroke as error:
        return failed(error.what)


def _run(leg: PlannedLeg, group: Group) -> Outcome:
    try:
        record = run_leg(leg, group)
    except Interrupted:
        raise
    except HarnessError as error:
        return failed(f"{type(error).__name__}: {error.what}")
    return judged(record.verdict is not None and record.verdict.valid, _seen(record))


def _seen(record: RunRecord) -> str:
    """The result in LoadGen's unit, how many samples there were, and the first reasons of a verdict that is no."""
    verdict, result, counts = record.verdict, record.result, record.counts
    if verdict is None or counts is None:
        return record.note or record.state.value
    figure = "no result" if result is None else f"{result.value:,.2f} {result.units}"
    word = "VALID" if verdict.valid else "INVALID"
    reasons = [] if verdict.valid else [f"{finding.rule}: {finding.found}" for finding in verdict.findings][:3]
    return "; ".join([f"{word}, {figure}, {counts.answered} answers, {counts.failed} failed", *reasons])


def _data(place: LegPlace, info: EngineInfo, size: LegSize, observer: Observer) -> tuple[Benchmark, Dataset]:
    benchmark = benchmarks.get(BENCHMARK, place.pack)
    try:
        if not (place.data_dir / BENCHMARK).is_dir():
            observer(Note(f"making a stand-in data set in {place.data_dir}"))
            benchmark.make_dataset(place.data_dir, seed=0)
        dataset = benchmark.dataset(place.data_dir, "performance")
    except MissingError as error:
        raise _Unfit(error.what) from error
    highest = int(dataset.prompts.flat.max())
    if highest >= info.vocab_size:
        raise _Unfit(f"the data set has token {highest}, this checkpoint {info.vocab_size} tokens")
    if dataset.max_prompt_tokens + size.output_cap > info.max_total_tokens:
        raise _Unfit(
            f"a prompt has {dataset.max_prompt_tokens} tokens, the engine takes {info.max_total_tokens} in all"
        )
    return benchmark, dataset


def _config(engine: Engine, size: LegSize) -> BenchmarkFile:
    scenarios: Mapping[str, Scenario] = {
        "Offline": Scenario(target_qps=MeasuredRate(warmup_share=1.25)),
        "Server": Scenario(target_qps=OfflineShare(offline_share=size.server_share)),
    }
    return BenchmarkFile(
        engine=engine,
        output_caps=OutputCaps(performance=size.output_cap),
        scenarios=dict(scenarios),
        warmup=WarmupSettings(requests=size.warmup),
        test_run=TestRun(
            performance_samples=size.samples, min_duration_ms=size.min_duration_ms, server_queries=size.server_queries
        ),
    )


def _finding(where: str, scenario: str, outcome: Outcome) -> Finding:
    return Finding(where, f"{scenario} leg", _QUESTION.format(scenario), outcome)
