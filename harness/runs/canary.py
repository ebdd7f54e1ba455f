"""Asks an engine a few real requests before a long leg: what would spoil hours shows in seconds."""

from __future__ import annotations

from pathlib import Path

from harness.benchmarks.base import Benchmark, Canary
from harness.engines.base import Sampling
from harness.engines.group import EngineGroup
from harness.errors import RunBroke
from harness.runs.engine_up import asked
from harness.runs.plan import PlannedLeg
from harness.runs.warmup import ask

_PATIENCE_S = 120.0


def sing(engine: EngineGroup, benchmark: Benchmark, leg: PlannedLeg, work: Path) -> list[str]:
    """Sends the benchmark's canaries to a running engine; one line for each that came back well. ``work`` is a folder
    that the engine can read.

    RunBroke names what was wrong with an answer. Of a stand-in checkpoint no sense is expected, only whole tokens
    or text.
    """
    lines = []
    checkpoint = engine.info.checkpoint
    stand_in = checkpoint is None or checkpoint.stand_in
    with asked(engine) as client:
        for canary in benchmark.canaries(stand_in_checkpoint=stand_in):
            sampling = _sampling(leg, benchmark, canary)
            answered = ask(client, canary.prompts, sampling, dataset="canary", patience_s=_PATIENCE_S, work=work)
            findings = canary.check([answered.data[i] for i in range(len(canary.prompts))])
            if findings:
                raise RunBroke(
                    f"canary {canary.name}: {findings[0].what}", expected=findings[0].expected, where=leg.name
                )
            lines.append(f"canary {canary.name}: well")
    return lines


def _sampling(leg: PlannedLeg, benchmark: Benchmark, canary: Canary) -> Sampling:
    return benchmark.sampling(leg.which, seed=leg.config.seed, max_new_tokens=canary.max_new_tokens)
