"""What the turns of a run of trajectories came to, for its record and its verdict."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from harness.benchmarks.base import Dataset
from harness.clients.loadgen.job import OUTCOME, Outcome
from harness.errors import RunBroke
from harness.gate.findings import Finding
from harness.gate.ledger_rules import TURNS_COUNTED, TURNS_FAILED, TURNS_SKIPPED
from harness.ledger.record import TurnCounts, TurnFigures
from harness.ledger.samples import NONE, Int64
from harness.ledger.turns import TURNS, TurnState, read_turns


@dataclass(frozen=True, slots=True)
class JudgedTurns:
    """The figures that the record keeps, and what is wrong with the turns."""

    figures: TurnFigures
    findings: tuple[Finding, ...]


def judge_turns(folder: Path, outcome: Outcome, dataset: Dataset) -> JudgedTurns | None:
    """Judges the turns of a run; None where a sample was one request.

    Raises RunBroke where they were not counted, MissingError where turns.arrow cannot be read.
    """
    if not dataset.trajectories:
        return None
    if outcome.turns is None:
        raise RunBroke("the worker counted no turns", where=folder / OUTCOME)
    turns = read_turns(folder / TURNS)
    return JudgedTurns(_figures(turns, _ids(dataset)), tuple(_findings(turns, outcome.turns)))


def counted(turns: Mapping[str, Int64]) -> TurnCounts:
    """How many turns of each state there are in the columns of a turns.arrow."""
    of = np.bincount(turns["state"], minlength=len(TurnState)).tolist()
    return TurnCounts(
        issued=int((turns["issued_ns"] != NONE).sum()),
        answered=of[TurnState.ANSWERED],
        failed=of[TurnState.FAILED],
        skipped=of[TurnState.SKIPPED],
        outstanding=of[TurnState.OUTSTANDING],
    )


def _findings(turns: Mapping[str, Int64], told: TurnCounts) -> Iterator[Finding]:
    if told.failed:
        yield TURNS_FAILED.broken(OUTCOME, f"{told.failed} of {told.issued} issued turns failed")
    if told.skipped:
        found = f"{told.skipped} of {told.turns} turns were never asked: one before them had failed"
        yield TURNS_SKIPPED.broken(OUTCOME, found)
    there = counted(turns)
    if there != told:
        yield TURNS_COUNTED.broken(TURNS, _told(there), _told(told))


def _told(counts: TurnCounts) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.model_dump().items())


def _ids(dataset: Dataset) -> list[str]:
    """The ids of the trajectories, as their file has them."""
    from harness.benchmarks.qwen3_6_27b.tables import source_of

    return [trajectory.id for trajectory in source_of(dataset).trajectories]


def _figures(turns: Mapping[str, Int64], ids: Sequence[str]) -> TurnFigures:
    answered = turns["state"] == TurnState.ANSWERED
    latency = (turns["done_ns"] - turns["issued_ns"])[answered]
    seconds = _span_s(turns, answered)
    return TurnFigures(
        mean_latency_ns=float(latency.mean()) if len(latency) else None,
        turns_per_s=len(latency) / seconds if seconds else None,
        issued=_issued(turns, ids),
    )


def _issued(turns: Mapping[str, Int64], ids: Sequence[str]) -> dict[str, int]:
    """How often each was issued, its repeats together: the library has all of them once, then again."""
    rows = turns["row"][turns["turn"] == 0]
    times = np.bincount(rows % len(ids), minlength=len(ids)).tolist()
    return dict(zip(ids, times, strict=True))


def _span_s(turns: Mapping[str, Int64], answered: npt.NDArray[np.bool_]) -> float | None:
    if not answered.any():
        return None
    return float(turns["done_ns"][answered].max() - turns["issued_ns"][answered].min()) / 1e9
