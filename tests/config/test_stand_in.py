"""Configurations with CPU servers in place of accelerators."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from harness.config import BenchmarkFile, stand_in
from harness.config.models import Agentic, HttpEngine, MeasuredRate, OfflineShare, TinyCheckpoint, TorchEngine
from harness.config.stand_in import stands_in_for
from tests.config.test_engine_checks import ENGINE

WRITTEN: dict[str, Any] = ENGINE | {
    "replicas": 4,
    "launch": {"port": 31000, "prefix": ["docker", "run", "{gpus}"], "env": {"A": "b"}, "ready_s": 5000},
    "clients": {"processes": 2, "connections": 1536},
    "endpoints": [f"http://10.0.0.1:{port}" for port in range(30000, 30004)],
}


def file(engine: dict[str, Any] = WRITTEN, **scenarios: dict[str, Any]) -> BenchmarkFile:
    return BenchmarkFile.model_validate(
        {"engine": engine, "scenarios": scenarios or {"Offline": {"target_qps": 60, "min_duration_ms": 900000}}}
    )


def test_servers_become_as_many_servers_torch() -> None:
    engine = stand_in(file()).engine
    assert isinstance(engine, HttpEngine)
    assert (engine.server, engine.version, engine.replicas) == ("torch", None, 4)
    assert isinstance(engine.checkpoint, TinyCheckpoint)
    assert engine.options["threads"] == 1
    assert engine.endpoints == [], "servers are started, not looked for elsewhere"
    assert (engine.launch.port, engine.launch.prefix, engine.launch.env) == (31000, [], {})
    assert (engine.clients.processes, engine.clients.connections) == (2, 64)


def test_the_rest_is_short() -> None:
    short = stand_in(file(Offline={"target_qps": 60, "min_duration_ms": 900000}, Server={"target_qps": 50}))
    assert short.output_caps.performance == short.output_caps.accuracy == 32
    assert short.scenarios["Offline"].min_duration_ms is None
    assert isinstance(short.scenarios["Offline"].target_qps, MeasuredRate)
    assert isinstance(short.scenarios["Server"].target_qps, OfflineShare)
    alone = stand_in(file(Server={"target_qps": 50}))
    assert isinstance(alone.scenarios["Server"].target_qps, MeasuredRate), "there is no Offline run to take a share of"


def test_tensorrt_llm_in_process_becomes_the_embedded_engine() -> None:
    inside = {key: value for key, value in ENGINE.items() if key != "server"} | {"kind": "trtllm"}
    engine = stand_in(file(inside)).engine
    assert isinstance(engine, TorchEngine)
    assert isinstance(engine.checkpoint, TinyCheckpoint)
    assert stands_in_for(file(inside).engine) == "trtllm"


def test_the_replicas_of_a_scenario_stay_where_there_are_servers() -> None:
    own = {"target_qps": 9, "replicas": 2}
    served = file(WRITTEN | {"endpoints": []}, Server=own)
    assert getattr(stand_in(served).engine_of("Server"), "replicas", None) == 2
    inside = {key: value for key, value in WRITTEN.items() if key not in {"server", "launch", "clients", "endpoints"}}
    short = stand_in(file(inside | {"kind": "trtllm"}, Server=own))
    assert BenchmarkFile.model_validate(short.model_dump()) == short


def test_scenarios_with_engines_or_options_of_their_own() -> None:
    written = file(
        Offline={"target_qps": 9},
        Server={"target_qps": 9, "engine_options": {"stream_interval": 20}},
        Interactive={"target_qps": 9, "engine": WRITTEN | {"replicas": 2, "endpoints": []}},
    )
    short = stand_in(written)
    assert short.scenarios["Server"].engine_options == {}
    assert short.engine_of("Server") == short.engine
    own = short.engine_of("Interactive")
    assert isinstance(own, HttpEngine)
    assert (own.server, own.replicas) == ("torch", 2)


@pytest.mark.parametrize(
    "engine",
    [
        {"kind": "scripted", "slots": 3},
        {"kind": "torch", "checkpoint": "/models/m"},
        {"kind": "http", "server": "torch", "checkpoint": {"make": "tiny-gpt-oss"}, "options": {"slots": 3}},
    ],
)
def test_an_engine_that_runs_on_a_cpu_anyway_stays(engine: dict[str, Any]) -> None:
    written = file(engine)
    assert stand_in(written).engine == written.engine
    assert stands_in_for(written.engine) is None


def test_options_of_a_scenario_stay_with_an_engine_that_stays() -> None:
    engine = {"kind": "http", "server": "torch", "checkpoint": {"make": "tiny-gpt-oss"}}
    written = file(engine, Server={"target_qps": 9, "engine_options": {"slots": 4}})
    assert stand_in(written).engine_of("Server") == written.engine_of("Server")


def test_a_stand_in_is_a_whole_file_and_its_own_stand_in() -> None:
    short = stand_in(file())
    assert BenchmarkFile.model_validate(short.model_dump()) == short
    assert stand_in(short) == short


def test_a_stand_in_of_trajectories_asks_few_and_keeps_how() -> None:
    server = {"target_qps": {"offline_share": 0.7}, "target_latency_ms": 600_000}
    written = file(SingleStream={"target_qps": 0.03}, Offline={"target_qps": 0.2}, Server=server)
    written = written.model_copy(update={"agentic": Agentic(repeats=9, tool_delays=True)})
    short = stand_in(written)
    assert short.agentic == written.agentic
    assert short.test_run.performance_samples == short.test_run.stream_queries == 3
    assert short.scenarios["Server"].target_latency_ms == 600_000
    for name in ("SingleStream", "Offline"):
        rate = short.scenarios[name].target_qps
        assert isinstance(rate, MeasuredRate)
        assert rate.warmup_share > 1, "too low a rate would end the run before its time"
    assert stand_in(short) == short


@pytest.mark.parametrize("kind", ["http", "trtllm"])
@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("nvidia/Qwen3-VL-235B-A22B-Instruct-NVFP4", "tiny-qwen3-vl"),
        ("moonshotai/Kimi-K2.6", "tiny-deepseek-v3"),
        ("nvidia/Kimi-K2.6-NVFP4", "tiny-deepseek-v3"),
    ],
)
def test_a_stand_in_has_the_architecture_of_the_weights(kind: str, name: str, make: str) -> None:
    engine = copy.deepcopy(WRITTEN) | {"kind": kind}
    engine["checkpoint"]["name"] = name
    if kind == "trtllm":
        engine = {key: engine[key] for key in ("kind", "version", "checkpoint", "replicas", "options")}
    found = stand_in(file(engine)).engine
    assert isinstance(found, HttpEngine | TorchEngine)
    assert found.checkpoint == TinyCheckpoint.model_validate({"make": make})
    room = found.max_total_tokens if isinstance(found, TorchEngine) else found.options["max_total_tokens"]
    assert room == 32_768, "as many as the published servers take"
