"""What each system would start, word for word where it decides a result."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import pytest
import yaml

from harness.cli.main import main
from harness.config import Project
from harness.config.models import HttpEngine
from tests.harness_process import ROOT

BENCHMARK = "gpt-oss-120b"
GB300, B200, H200 = "GB300-NVL4_GB300-288GB_aarch64x4_TRT", "B200-SXM-180GBx8_TRT", "H200-SXM-141GBx8_TRT"
REPLICAS = {GB300: 4, B200: 8, H200: 8, "CPU-http": 2}
LEGS = [(name, scenario) for name in REPLICAS for scenario in ("Offline", "Server")]


@dataclass(frozen=True)
class Started:
    """One server of a dry run: its environment, its command, and the options it is given in a file."""

    environment: dict[str, str]
    command: list[str]
    options: dict[str, Any]


DryRun: TypeAlias = Callable[..., list[Started]]


@pytest.fixture
def dry_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> DryRun:
    monkeypatch.chdir(ROOT)

    def run(system: str, scenario: str, *more: str, benchmark: str = BENCHMARK) -> list[Started]:
        argv = [f"--systems={system}", f"--benchmarks={benchmark}", f"--scenarios={scenario}", *more]
        assert main(["run_llm_server", *argv, f"--results_dir={tmp_path / 'results'}", "--dry-run"]) == 0
        out = capsys.readouterr().out
        assert not (tmp_path / "results").exists()
        return [started(block) for block in re.split(r"^# replica ", out, flags=re.MULTILINE)[1:]]

    return run


def started(block: str) -> Started:
    content = re.search(r"<<'(\w+)'\n(.*?)^\1$", block, re.MULTILINE | re.DOTALL)
    words = shlex.split(block[block.index("\nenv ") :].replace("\\\n", " "))
    words = words[words.index("-i") + 1 :]  # env -C FOLDER -i NAME=VALUE … COMMAND
    first = next(i for i, word in enumerate(words) if not re.match(r"\w+=", word))
    environment = dict(word.split("=", 1) for word in words[:first])
    return Started(environment, words[first:], yaml.safe_load(content[2]) if content else {})


def engine_of(system: str, scenario: str) -> HttpEngine:
    engine = Project(ROOT).benchmark(system, BENCHMARK).engine_of(scenario)
    assert isinstance(engine, HttpEngine)
    return engine


@pytest.mark.parametrize(("system", "scenario"), LEGS)
def test_one_server_a_replica_each_with_its_port_and_accelerator(dry_run: DryRun, system: str, scenario: str) -> None:
    servers = dry_run(system, scenario)
    assert len(servers) == REPLICAS[system] == engine_of(system, scenario).replicas
    ports = [server.command[server.command.index("--port") + 1] for server in servers]
    assert ports == [str(30000 + replica) for replica in range(len(servers))]
    devices = [server.environment["CUDA_VISIBLE_DEVICES"] for server in servers]
    assert devices == ([""] * 2 if system == "CPU-http" else [str(replica) for replica in range(len(servers))])


@pytest.mark.parametrize(("system", "scenario"), [leg for leg in LEGS if leg[0] != "CPU-http"])
def test_trtllm_serve_is_given_what_is_configured(dry_run: DryRun, system: str, scenario: str) -> None:
    engine = engine_of(system, scenario)
    for server in dry_run(system, scenario):
        assert server.command[:2] == ["trtllm-serve", "/models/gpt-oss-120b"]
        assert server.options == engine.options
        assert server.options["kv_cache_config"]["enable_block_reuse"] is False
        assert server.options["max_seq_len"] >= 32768
        assert "speculative_config" not in server.options
        assert server.environment.items() >= engine.launch.env.items()
        assert not [name for name in server.environment if name.startswith("SLURM_")]


def test_answers_stream_twenty_tokens_at_a_time_where_they_stream(dry_run: DryRun) -> None:
    assert "stream_interval" not in dry_run(GB300, "Offline")[0].options
    for system in (GB300, B200, H200):
        assert dry_run(system, "Server")[0].options["stream_interval"] == 20


def test_eight_gpus_keep_their_servers_from_one_scenario_to_the_next() -> None:
    for system in (B200, H200):
        assert engine_of(system, "Offline") == engine_of(system, "Server")


def test_precision_is_that_of_the_accelerator(dry_run: DryRun) -> None:
    for system, moe, kv in ((GB300, "TRTLLM", "fp8"), (B200, "TRTLLM", "fp8"), (H200, "TRITON", "auto")):
        options = dry_run(system, "Offline")[0].options
        assert (options["moe_config"]["backend"], options["kv_cache_config"]["dtype"]) == (moe, kv)


def test_the_cpus_servers_are_our_own(dry_run: DryRun) -> None:
    for server in dry_run("CPU-http", "Offline"):
        assert server.command[1:6] == ["-m", "harness", "serve", "--engine", "torch"]
        assert server.command[server.command.index("--slots") + 1] == "32"


VLM = "qwen3-vl-235b-a22b"
VLLM_FLAGS = {
    "--tensor-parallel-size": "1",
    "--max-model-len": "32768",
    "--mm-processor-cache-gb": "0",
    "--kv-cache-dtype": "fp8",
    "--mm-encoder-attn-backend": "FLASHINFER",
}
VLLM_OF = {
    B200: {"--max-num-seqs": "1024", "--max-num-batched-tokens": "4864"},
    GB300: {"--max-num-seqs": "2048", "--max-num-batched-tokens": "21504"},
}


def value(command: list[str], flag: str) -> str:
    """The word after a flag."""
    return command[command.index(flag) + 1]


@pytest.mark.parametrize("system", VLLM_OF)
@pytest.mark.parametrize("scenario", ["Offline", "Server"])
def test_vllm_is_started_as_it_was_published(dry_run: DryRun, system: str, scenario: str) -> None:
    servers = dry_run(system, scenario, benchmark=VLM)
    assert [server.environment["CUDA_VISIBLE_DEVICES"] for server in servers] == [
        str(gpu) for gpu in range(REPLICAS[system])
    ]
    for server in servers:
        assert server.command[:3] == ["python3", "-m", "vllm.entrypoints.openai.api_server"]
        for flag, wanted in {**VLLM_FLAGS, **VLLM_OF[system]}.items():
            assert value(server.command, flag) == wanted
        assert {"--no-enable-prefix-caching", "--async-scheduling"} <= set(server.command)
        assert not [word for word in server.command if "max_pixels" in word or word == "--mm-processor-kwargs"]
        assert value(server.command, "--limit-mm-per-prompt") == '{"video": 0}'


def test_interactive_is_one_server_on_all_four_gpus(dry_run: DryRun) -> None:
    (server,) = dry_run(GB300, "Interactive", benchmark=VLM)
    assert value(server.command, "--tensor-parallel-size") == "4"
    assert server.environment["CUDA_VISIBLE_DEVICES"] == "0,1,2,3"


@pytest.mark.parametrize("system", VLLM_OF)
def test_the_variant_is_another_engine_with_the_same_checkpoint(dry_run: DryRun, system: str) -> None:
    servers = dry_run(system, "Server", "--variant=trtllm", benchmark=VLM)
    assert len(servers) == REPLICAS[system]
    for server in servers:
        assert server.command[:2] == ["trtllm-serve", "/models/Qwen3-VL-235B-A22B-Instruct-NVFP4"]
        assert server.options["kv_cache_config"] == {
            "dtype": "fp8",
            "enable_block_reuse": False,
            "free_gpu_memory_fraction": 0.8,
        }
    own, other = (Project(ROOT).benchmark(system, VLM, variant).engine for variant in (None, "trtllm"))
    assert isinstance(own, HttpEngine)
    assert isinstance(other, HttpEngine)
    assert own.checkpoint == other.checkpoint
