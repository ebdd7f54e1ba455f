"""From a system's configuration to an engine that can be started: makes what has to be made first."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from harness.benchmarks.base import Benchmark
from harness.config.models import Engine, ScriptedEngine, ServiceTime, TinyCheckpoint, TorchEngine, TrtllmEngine
from harness.engines.gpus import GPUS, visible_gpus
from harness.engines.group import Member
from harness.engines.launch.weights import made
from harness.engines.start import EngineSpec
from harness.rules import engine_keys
from harness.runs.tables import Asked

_PARALLEL: Final[tuple[engine_keys.MeaningName, ...]] = ("tensor", "pipeline", "context")
"""The ways in which one process is on several GPUs."""


def engine_spec(config: Engine, benchmark: Benchmark, tables: Sequence[Asked], work: Path) -> EngineSpec:
    """What to start. A stand-in checkpoint is made in the cache, scripted answers are written to ``work``."""
    if isinstance(config, ScriptedEngine):
        return _scripted(config, benchmark, tables, work)
    if isinstance(config, TorchEngine):
        return _torch(config)
    raise ValueError(f"an engine of the kind {config.kind} is not one process alone")


def trtllm_members(config: TrtllmEngine) -> list[Member]:
    """One process a replica, each with GPUs of its own. ConfigError where CUDA_VISIBLE_DEVICES names too few."""
    keys = engine_keys.load_or_older("trtllm", config.version)
    each = math.prod(_number(keys.meaning(config.options, name)) for name in _PARALLEL)
    gpus = visible_gpus(config.replicas * each, os.environ)
    checkpoint = config.checkpoint
    spec = EngineSpec(
        kind="trtllm",
        settings={
            "checkpoint": str(checkpoint.path),
            "options": config.options,
            "name": checkpoint.name,
            "weight_data_type": checkpoint.weight_data_type,
        },
    )
    return [Member(spec, {GPUS: ",".join(gpus[i * each : (i + 1) * each])}) for i in range(config.replicas)]


def _number(said: object) -> int:
    return said if isinstance(said, int) and not isinstance(said, bool) else 1


def _torch(config: TorchEngine) -> EngineSpec:
    checkpoint = config.checkpoint
    folder = made(checkpoint) if isinstance(checkpoint, TinyCheckpoint) else checkpoint.absolute()
    return EngineSpec(
        kind="torch",
        settings={
            "checkpoint": str(folder),
            "slots": config.slots,
            "threads": config.threads,
            "max_total_tokens": config.max_total_tokens,
            "prefill_chunk": config.prefill_chunk,
        },
    )


def _scripted(config: ScriptedEngine, benchmark: Benchmark, tables: Sequence[Asked], work: Path) -> EngineSpec:
    answers: dict[str, str] = {}
    written: dict[str, str] = {}
    # Performance comes last: a table that accuracy legs ask too is answered as those want it.
    for asked in sorted(tables, key=lambda table: table.which == "performance"):
        chats = asked.dataset.chats is not None or asked.dataset.trajectories
        if chats or (asked.which != "performance" and config.right):
            table = asked.dataset.table
            shares = _shares(config, asked, tables)
            written[table] = written.get(table) or _write(config, benchmark, asked, shares, work)
            answers[asked.name] = written[table]
    return EngineSpec(
        kind="scripted",
        settings={
            "answers": answers,
            "length": config.answer_tokens,
            "slots": config.slots,
            "seed": config.seed,
            "first_token": _service(config.service, config.service.ttft_ms),
            "per_token": _service(config.service, config.service.per_token_ms),
            "faults": {asked.name: config.faults[asked.which] for asked in tables if asked.which in config.faults},
        },
    )


def _write(config: ScriptedEngine, benchmark: Benchmark, asked: Asked, shares: dict[str, float], work: Path) -> str:
    path = work / f"answers-{asked.dataset.table}.npz"
    benchmark.scripted_answers(asked.dataset, shares, seed=config.seed, answer_tokens=config.answer_tokens).write(path)
    return str(path.absolute())


def _shares(config: ScriptedEngine, asked: Asked, tables: Sequence[Asked]) -> dict[str, float]:
    """The shares of a table's own subsets; of what no table has, the accuracy table tells."""
    if not config.right:
        return {}
    own = set(asked.dataset.subsets)
    if asked.which == "accuracy":
        own |= config.right.keys() - {subset for each in tables for subset in each.dataset.subsets}
    return {subset: share for subset, share in config.right.items() if subset in own}


def _service(service: ServiceTime, mean_ms: float) -> dict[str, object]:
    if service.spread == 0:
        return {"mean_s": mean_ms / 1e3}
    return {"mean_s": mean_ms / 1e3, "law": "lognormal", "sigma": service.spread}
