"""What may be written of an engine: kinds, servers, where they listen, who asks them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from harness.config import BenchmarkFile
from harness.config.engines import HttpEngine, TinyCheckpoint, TrtllmEngine
from harness.config.yaml_files import read_model
from harness.errors import ConfigError
from tests.config.test_engine_checks import ENGINE

TORCH: dict[str, Any] = {"kind": "http", "server": "torch", "checkpoint": {"make": "tiny-gpt-oss"}}


def read(tmp_path: Path, engine: dict[str, Any]) -> BenchmarkFile:
    path = tmp_path / "gpt-oss-120b.yaml"
    path.write_text(yaml.safe_dump({"engine": engine, "scenarios": {"Offline": {"target_qps": 5}}}, sort_keys=False))
    return read_model(path, BenchmarkFile)


def refused(tmp_path: Path, engine: dict[str, Any]) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        read(tmp_path, engine)
    assert "gpt-oss-120b.yaml:" in (caught.value.where or "")
    return caught.value


def test_servers_with_all_that_may_be_said(tmp_path: Path) -> None:
    written = ENGINE | {
        "replicas": 2,
        "endpoints": ["http://10.0.0.1:30000", "https://b.example"],
        "launch": {
            "host": "0.0.0.0",  # noqa: S104 - what a user may write
            "port": 31000,
            "prefix": ["docker", "run", "--gpus", "{gpus}", "-v", "{folder}:/work", "--name", "server-{replica}"],
            "env": {"TRTLLM_SERVER_DISABLE_GC": "1"},
            "ready_s": 60,
        },
        "clients": {"processes": 4, "connections": 10, "request_timeout_s": 3.5},
    }
    engine = read(tmp_path, written).engine
    assert isinstance(engine, HttpEngine)
    assert engine.launch.env == {"TRTLLM_SERVER_DISABLE_GC": "1"}
    assert engine.clients.request_timeout_s == 3.5


def test_servers_of_our_own_may_serve_a_stand_in(tmp_path: Path) -> None:
    engine = read(tmp_path, TORCH).engine
    assert isinstance(engine, HttpEngine)
    assert isinstance(engine.checkpoint, TinyCheckpoint)
    assert (engine.replicas, engine.endpoints, engine.version, engine.launch.port) == (1, [], None, 30000)
    own = {"name": "me/mine", "path": "/models/mine", "weight_data_type": "bf16"}
    assert read(tmp_path, TORCH | {"checkpoint": own}).engine.kind == "http"


def test_tensorrt_llm_in_process(tmp_path: Path) -> None:
    written = {"kind": "trtllm", **{key: ENGINE[key] for key in ("version", "checkpoint", "replicas", "options")}}
    engine = read(tmp_path, written).engine
    assert isinstance(engine, TrtllmEngine)
    assert "launch" in refused(tmp_path, written | {"launch": {}}).what


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"server": "trtllm-server"}, "'trtllm-serve', 'vllm', 'sglang' or 'torch'"),
        ({"version": None}, "server trtllm-serve needs its version"),
        ({"version": 1.2}, "valid string"),
        ({"checkpoint": {"make": "tiny-gpt-oss"}}, "is for server torch alone"),
        ({"checkpoint": {"name": "a", "path": "/m"}}, "'engine.checkpoint.weight_data_type' is missing"),
        ({"checkpoint": {"name": "", "path": "/m", "weight_data_type": "fp8"}}, "at least 1 character"),
        ({"replicas": 0}, "greater than or equal to 1"),
        ({"option": {}}, "did you mean 'options'?"),
        ({"endpoints": ["http://a:1"]}, "1 endpoints for 8 replicas"),
        ({"replicas": 2, "endpoints": ["http://a:1"] * 2}, "stands twice"),
        ({"replicas": 1, "endpoints": ["a:30000"]}, "'a:30000' is no base URL"),
        ({"replicas": 1, "endpoints": ["http://a:1/v1"]}, "is no base URL"),
        ({"replicas": 1, "endpoints": ["http://a:abc"]}, "is no base URL"),
        ({"replicas": 1, "endpoints": ["http://me:secret@a:1"]}, "is no base URL"),
        ({"launch": {"port": 65530}}, "would listen on port 65537"),
        ({"launch": {"port": 0}}, "greater than or equal to 1"),
        (
            {"launch": {"prefix": ["docker", "{gpu}"]}},
            "{gpu} in '{gpu}' is not filled in; {gpus}, {replica}, {folder}, {port} are",
        ),
        ({"launch": {"prefix": "docker run"}}, "valid list"),
        ({"launch": {"env": {"A B": "1"}}}, "match pattern"),
        ({"launch": {"env": {"A": 1}}}, "valid string"),
        ({"launch": {"env": {"HF_TOKEN": "hf_x"}}}, "HF_TOKEN: this file is published"),
        ({"launch": {"env": {"my_api_key": "x", "MAX_TOKENS": "9"}}}, "my_api_key: this file is published"),
        ({"launch": {"prefix": ["docker", "--env=HF_TOKEN=hf_x", "img"]}}, "HF_TOKEN: this file is published"),
        ({"launch": {"ready_s": 0}}, "greater than 0"),
        ({"launch": {"ready": 5}}, "did you mean 'ready_s'?"),
        ({"clients": {"processes": 12}}, "12 client processes cannot be shared evenly by 8 replicas"),
        ({"clients": {"connections": 0}}, "greater than or equal to 1"),
        ({"clients": {"proceses": 2}}, "did you mean 'processes'?"),
        ({"checkpoint": {"make": "tiny-gpt-oss", "sede": 1}}, "did you mean 'seed'?"),
    ],
)
def test_what_may_not_be_said_of_servers(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    assert said in str(refused(tmp_path, ENGINE | change))


def test_server_torch_has_no_version(tmp_path: Path) -> None:
    assert "has no version" in refused(tmp_path, TORCH | {"version": "1"}).what


@pytest.mark.parametrize("processes", [1, 2, 3, 8, 16, 24])
def test_client_processes_that_replicas_can_share(tmp_path: Path, processes: int) -> None:
    engine = read(tmp_path, ENGINE | {"clients": {"processes": processes}}).engine
    assert isinstance(engine, HttpEngine)
    assert engine.clients.processes == processes


def test_a_secret_may_be_named_where_it_is_not_told(tmp_path: Path) -> None:
    launch = {"prefix": ["docker", "run", "-e", "HF_TOKEN", "img"], "env": {"MAX_NUM_TOKENS": "9"}}
    assert read(tmp_path, ENGINE | {"launch": launch}).engine.kind == "http"


def test_the_last_port_there_is(tmp_path: Path) -> None:
    assert read(tmp_path, ENGINE | {"launch": {"port": 65528}}).engine.kind == "http"
