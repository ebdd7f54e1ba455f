"""From a system's configuration to an engine that can be started: makes what has to be made first."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from harness.benchmarks.base import Benchmark, Dataset, ScriptedAnswers, Which
from harness.config.models import Engine, ScriptedEngine, ServiceTime, TinyGptOss, TorchEngine
from harness.engines.checkpoint import make_tiny_gpt_oss
from harness.engines.start import EngineSpec
from harness.env import cache_dir
from harness.errors import ConfigError


def engine_spec(config: Engine, benchmark: Benchmark, datasets: Mapping[Which, Dataset], work: Path) -> EngineSpec:
    """What to start. A stand-in checkpoint is made in the cache, scripted answers are written to ``work``."""
    if isinstance(config, ScriptedEngine):
        return _scripted(config, benchmark, datasets, work)
    if isinstance(config, TorchEngine):
        return _torch(config)
    raise ConfigError(f"engines of the kind {config.kind} cannot be started yet", expected="torch or scripted")


def _torch(config: TorchEngine) -> EngineSpec:
    checkpoint = config.checkpoint
    if isinstance(checkpoint, TinyGptOss):
        name = f"tiny-gpt-oss-{checkpoint.hidden_size}x{checkpoint.layers}-{checkpoint.seed}"
        checkpoint = make_tiny_gpt_oss(
            cache_dir() / "checkpoints" / name,
            seed=checkpoint.seed,
            hidden_size=checkpoint.hidden_size,
            layers=checkpoint.layers,
        )
    return EngineSpec(
        kind="torch",
        settings={
            "checkpoint": str(checkpoint.absolute()),
            "slots": config.slots,
            "threads": config.threads,
            "max_total_tokens": config.max_total_tokens,
            "prefill_chunk": config.prefill_chunk,
        },
    )


def _scripted(
    config: ScriptedEngine, benchmark: Benchmark, datasets: Mapping[Which, Dataset], work: Path
) -> EngineSpec:
    answers = {}
    for which, dataset in datasets.items():
        if which != "performance" and config.right:
            path = work / f"answers-{which}.npz"
            _answers(config, benchmark, dataset, _shares(config, which, dataset)).write(path)
            answers[dataset.name] = str(path.absolute())
    return EngineSpec(
        kind="scripted",
        settings={
            "answers": answers,
            "length": config.answer_tokens,
            "slots": config.slots,
            "seed": config.seed,
            "first_token": _service(config.service, config.service.ttft_ms),
            "per_token": _service(config.service, config.service.per_token_ms),
            "faults": {datasets[which].name: faults for which, faults in config.faults.items()},
        },
    )


def _shares(config: ScriptedEngine, which: Which, dataset: Dataset) -> dict[str, float]:
    """The shares of a table. An audit has some of the subsets alone; what no table has, the accuracy table tells."""
    if which == "accuracy":
        return config.right
    there = set(dataset.subsets)
    return {subset: share for subset, share in config.right.items() if subset in there}


def _answers(
    config: ScriptedEngine, benchmark: Benchmark, dataset: Dataset, shares: Mapping[str, float]
) -> ScriptedAnswers:
    return benchmark.scripted_answers(dataset, shares, seed=config.seed, answer_tokens=config.answer_tokens)


def _service(service: ServiceTime, mean_ms: float) -> dict[str, object]:
    if service.spread == 0:
        return {"mean_s": mean_ms / 1e3}
    return {"mean_s": mean_ms / 1e3, "law": "lognormal", "sigma": service.spread}
