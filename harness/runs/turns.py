"""What the turns of a run of trajectories came to: turns.json, what the record keeps of it, what is wrong with them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from harness.benchmarks.base import Dataset
from harness.clients.loadgen.job import OUTCOME, Outcome
from harness.config.engines import ScriptedEngine, ServedCheckpoint, TinyCheckpoint
from harness.config.models import Engine
from harness.errors import RunBroke
from harness.gate.findings import Finding
from harness.gate.ledger_rules import TURNS_COUNTED, TURNS_FAILED, TURNS_SKIPPED
from harness.ledger import RunRecord
from harness.ledger.record import TurnCounts, TurnFigures
from harness.ledger.turn_report import TurnReport
from harness.ledger.turns import TURNS
from harness.runs.plan import PlannedLeg
from harness.runs.trajectories import library_of


@dataclass(frozen=True, slots=True)
class JudgedTurns:
    """The figures that the record keeps, and what is wrong with the turns."""

    figures: TurnFigures
    findings: tuple[Finding, ...]


def judge_turns(
    leg: PlannedLeg, folder: Path, record: RunRecord, outcome: Outcome, dataset: Dataset
) -> JudgedTurns | None:
    """Judges the turns of a run and writes turns.json; None where a sample was one request.

    ``dataset`` has the rows that were asked. Raises RunBroke where turns were not counted, or do not fit what they came
    to, MissingError where they cannot be read.
    """
    if not dataset.trajectories:
        return None
    if outcome.turns is None:
        raise RunBroke("the worker counted no turns", where=folder / OUTCOME)
    report = _report(leg, folder, dataclasses.replace(dataset, salt=record.dataset.salt))
    return JudgedTurns(_kept(report), tuple(_findings(report.turns, outcome.turns)))


def _report(leg: PlannedLeg, folder: Path, dataset: Dataset) -> TurnReport:
    from harness.runs.turn_figures import write_turn_figures

    return write_turn_figures(folder, library_of(leg, dataset), tokenizer=tokenizer_of(leg.engine))


def tokenizer_of(engine: Engine) -> Path | None:
    """The checkpoint whose tokenizer counts what a server does not; None for stand-ins, which have Qwen3's."""
    if isinstance(engine, ScriptedEngine) or isinstance(engine.checkpoint, TinyCheckpoint):
        return None
    checkpoint = engine.checkpoint
    return checkpoint.path if isinstance(checkpoint, ServedCheckpoint) else checkpoint


def _kept(report: TurnReport) -> TurnFigures:
    return TurnFigures(
        mean_latency_ns=None if report.latency_ns is None else report.latency_ns.mean,
        turns_per_s=report.turns_per_s,
        inline_score=report.inline.score,
        issued=report.issued_times,
    )


def _findings(counted: TurnCounts, told: TurnCounts) -> Iterator[Finding]:
    if told.failed:
        yield TURNS_FAILED.broken(OUTCOME, f"{told.failed} of {told.issued} issued turns failed")
    if told.skipped:
        found = f"{told.skipped} of {told.turns} turns were never asked: one before them had failed"
        yield TURNS_SKIPPED.broken(OUTCOME, found)
    if counted != told:
        yield TURNS_COUNTED.broken(TURNS, _told(counted), _told(told))


def _told(counts: TurnCounts) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.model_dump().items())
