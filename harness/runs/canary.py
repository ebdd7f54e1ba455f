"""Asks an engine a few real requests before a long leg: what would spoil hours shows in seconds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from harness.benchmarks.base import Benchmark, Canary, Logged
from harness.engines.base import Engine, Sampling
from harness.engines.group import EngineGroup
from harness.errors import RunBroke
from harness.runs.engine_up import asked
from harness.runs.plan import PlannedLeg
from harness.runs.warmup import ask

_PATIENCE_S = 120.0


def sing(engine: EngineGroup, benchmark: Benchmark, leg: PlannedLeg, work: Path) -> list[str]:
    """Sends the benchmark's canaries to every replica of a running engine; one line for each that came back well.
    ``work`` is a folder that the engine can read.

    RunBroke names what was wrong with an answer. Of a stand-in checkpoint no sense is expected, only whole tokens
    or text.
    """
    lines = []
    checkpoint = engine.info.checkpoint
    stand_in = checkpoint is None or checkpoint.stand_in
    with asked(engine) as client:
        for canary in benchmark.canaries(stand_in_checkpoint=stand_in):
            for who, said in _said(client, canary, _sampling(leg, benchmark, canary), work, benchmark.logged):
                for finding in canary.check(said):
                    raise RunBroke(f"canary {who}: {finding.what}", expected=finding.expected, where=leg.name)
            lines.append(f"canary {canary.name}: well")
    return lines


def _said(
    engine: Engine, canary: Canary, sampling: Sampling, work: Path, logged: Logged
) -> Iterator[tuple[str, list[bytes]]]:
    """Which canary this is, in words, and what each replica answers, in order of the prompts: one that is not as the
    others are must not hide among them.

    Each prompt is asked as often as there are replicas, all at once, so that it goes to each of them. Where it did not,
    answers are looked at in the order they were asked.
    """
    names, prompts = engine.info().replicas, len(canary.prompts)
    copies = len(names)
    answered = ask(
        engine,
        canary.prompts,
        sampling,
        dataset="canary",
        patience_s=_PATIENCE_S,
        work=work,
        copies=copies,
        logged=logged,
    )
    numbers = np.arange(prompts * copies).reshape(prompts, copies)
    replicas = engine.replicas_of(numbers.reshape(-1)).reshape(numbers.shape)
    by_replica = bool((np.sort(replicas, axis=1) == np.arange(copies)).all())
    if by_replica:
        numbers = np.take_along_axis(numbers, np.argsort(replicas, axis=1), axis=1)
    for name, own in zip(names, numbers.T.tolist(), strict=True):
        replica = f", replica {name}" if by_replica and copies > 1 else ""
        yield canary.name + replica, [answered.data[number] for number in own]


def _sampling(leg: PlannedLeg, benchmark: Benchmark, canary: Canary) -> Sampling:
    return benchmark.sampling(leg.which, seed=leg.config.seed, max_new_tokens=canary.max_new_tokens)
