"""A configuration with CPU servers in place of its accelerators: the same mechanism, short, and never submittable."""

from __future__ import annotations

from harness.config.engines import Engine, HttpEngine, TinyCheckpoint, TorchEngine, TrtllmEngine
from harness.config.models import (
    BenchmarkFile,
    MeasuredRate,
    OfflineShare,
    OutputCaps,
    Scenario,
    TargetQps,
    TestRun,
    WarmupSettings,
)

_SLOTS = 8
_TOKENS = 512
_LONG_TOKENS = 32_768
"""As many as the published servers of Qwen3-VL take, where an image and a long description are thousands; and the
context of trajectories.
"""
_CONNECTIONS = 64
_READY_S = 600.0
_CAPS = OutputCaps(performance=32, accuracy=32)
_WARMUP = WarmupSettings(requests=32)
# 460 queries, five passes of 92, are the fewest with which early stopping believes a 99th percentile.
_TEST_RUN = TestRun(performance_samples=92, accuracy_samples=32, min_duration_ms=2000, server_queries=460)
_TRAJECTORIES = TestRun(
    performance_samples=3, accuracy_samples=32, min_duration_ms=2000, server_queries=24, stream_queries=3
)
"""A trajectory is some fifty requests: fewer than early stopping wants."""
_OFFLINE = MeasuredRate(warmup_share=1.25)
_OF_OFFLINE = OfflineShare(offline_share=0.3)
_OF_WARMUP = MeasuredRate(warmup_share=0.3)


def stand_in(file: BenchmarkFile) -> BenchmarkFile:
    """The same file for a machine without accelerators.

    Servers over HTTP become as many servers ``torch``, reached through as many client processes; TensorRT-LLM in
    process becomes the embedded engine; both with random weights. An engine that runs on a CPU anyway stays. Answers
    are short, rates come from the warm-up and the Offline run. Containers and their environment are left out.
    """
    offline = "Offline" in file.scenarios
    stays = {name: stands_in_for(file.engine_of(name)) is None for name in file.scenarios}
    return file.model_copy(
        update={
            "engine": _engine(file.engine),
            "output_caps": _CAPS,
            "scenarios": {
                name: _scenario(
                    name,
                    own,
                    offline=offline,
                    stays=stays[name],
                    served=isinstance(file.engine_of(name), HttpEngine),
                )
                for name, own in file.scenarios.items()
            },
            "warmup": _WARMUP,
            "test_run": _TRAJECTORIES if _replays(file) else _TEST_RUN,
        }
    )


def stands_in_for(engine: Engine) -> str | None:
    """What a stand-in of this engine stands for; None for an engine that stays, since it runs on a CPU anyway."""
    if isinstance(engine, HttpEngine):
        return None if engine.server == "torch" else engine.server
    return engine.kind if isinstance(engine, TrtllmEngine) else None


def _engine(engine: Engine) -> Engine:
    if not isinstance(engine, HttpEngine | TrtllmEngine) or isinstance(engine.checkpoint, TinyCheckpoint):
        return engine
    checkpoint, tokens = _of_its_architecture(engine.checkpoint.name)
    if isinstance(engine, TrtllmEngine):
        return TorchEngine(kind="torch", checkpoint=checkpoint, slots=_SLOTS, max_total_tokens=tokens)
    if engine.server == "torch":
        return engine
    return HttpEngine(
        kind="http",
        server="torch",
        checkpoint=checkpoint,
        replicas=engine.replicas,
        options={"slots": _SLOTS, "threads": 1, "max_total_tokens": tokens},
        launch=engine.launch.model_copy(update={"prefix": [], "env": {}, "ready_s": _READY_S}),
        clients=engine.clients.model_copy(update={"connections": min(engine.clients.connections, _CONNECTIONS)}),
    )


def _replays(file: BenchmarkFile) -> bool:
    """Whether the file is of a benchmark of trajectories: it says how they are asked, or has the scenario of those."""
    return file.agentic is not None or "SingleStream" in file.scenarios


def _of_its_architecture(name: str) -> tuple[TinyCheckpoint, int]:
    """The stand-in for the weights of that published name, and how many tokens its prompts and answers may have."""
    if "qwen3-vl" in name.lower():
        return TinyCheckpoint(make="tiny-qwen3-vl"), _LONG_TOKENS
    if "kimi-k2" in name.lower():
        return TinyCheckpoint(make="tiny-deepseek-v3"), _LONG_TOKENS
    return TinyCheckpoint(make="tiny-gpt-oss"), _TOKENS


def _scenario(name: str, own: Scenario, *, offline: bool, stays: bool, served: bool) -> Scenario:
    # Of Offline and SingleStream a rate that is too low would end the run before its time.
    rate: TargetQps = _OFFLINE if name in ("Offline", "SingleStream") else _OF_OFFLINE if offline else _OF_WARMUP
    return Scenario(
        target_qps=rate,
        target_latency_ms=own.target_latency_ms,
        engine=None if own.engine is None else _engine(own.engine),
        replicas=own.replicas if served else None,
        engine_options=own.engine_options if stays else {},
        audit_shares=own.audit_shares,
    )
