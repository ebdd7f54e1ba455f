"""What would be started, word for word."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from harness.config.engines import HttpEngine
from harness.engines.launch import commands
from harness.engines.launch.plan import ServerPlan
from harness.engines.launch.planning import Surroundings, plan_servers
from harness.engines.launch.prefix import filled
from harness.errors import ConfigError, UnknownName
from harness.rules.engine_keys import load

OURS = {"PATH": "/usr/bin:/bin", "HOME": "/home/me", "HF_TOKEN": "hf_secret", "SLURM_JOB_ID": "1"}
FOLDER = Path("/results/S/gpt-oss-120b")
OPTIONS = {"tensor_parallel_size": 2, "kv_cache_config": {"enable_block_reuse": False}, "max_batch_size": 896}


def engine(**changes: Any) -> HttpEngine:
    content: dict[str, Any] = {
        "kind": "http",
        "server": "trtllm-serve",
        "version": "1.2",
        "checkpoint": {"name": "openai/gpt-oss-120b", "path": "/models/gpt-oss-120b", "weight_data_type": "mxfp4"},
        "replicas": 2,
        "options": OPTIONS,
    }
    return HttpEngine.model_validate(content | changes)


def plans(config: HttpEngine, **changes: Any) -> list[ServerPlan]:
    values: dict[str, Any] = {
        "gpus_each": 2,
        "checkpoint": Path("/models/gpt-oss-120b"),
        "folder": FOLDER,
        "caches": Path("/cache/servers"),
        "vocabulary": Path("/cache/vocab"),
        "environ": OURS,
    }
    return plan_servers(config, Surroundings(**values | changes))


def test_trtllm_serve_in_full() -> None:
    first, second = plans(engine())
    assert second.text() == (
        """\
# replica 1: http://127.0.0.1:30001, model gpt-oss-120b, log /results/S/gpt-oss-120b/server-1.log
cat > /results/S/gpt-oss-120b/server-1.yaml <<'YAML'
tensor_parallel_size: 2
kv_cache_config:
  enable_block_reuse: false
max_batch_size: 896
YAML
env -C /results/S/gpt-oss-120b -i \\
  CUDA_CACHE_PATH=/cache/servers/cuda \\
  CUDA_VISIBLE_DEVICES=2,3 \\
  FLASHINFER_WORKSPACE_BASE=/cache/servers/flashinfer \\
  HF_HOME=/cache/servers/huggingface \\
  HF_TOKEN='***' \\
  HOME=/home/me \\
  PATH=/usr/bin:/bin \\
  TIKTOKEN_ENCODINGS_BASE=/cache/vocab \\
  TLLM_LLMAPI_BUILD_CACHE_ROOT=/cache/servers/tllm \\
  TORCHINDUCTOR_CACHE_DIR=/cache/servers/inductor \\
  TRITON_CACHE_DIR=/cache/servers/triton \\
  XDG_CACHE_HOME=/cache/servers/xdg \\
  trtllm-serve /models/gpt-oss-120b --host 127.0.0.1 --port 30001 --tokenizer /models/gpt-oss-120b"""
        """ --extra_llm_api_options /results/S/gpt-oss-120b/server-1.yaml
"""
    )
    assert first.environment["CUDA_VISIBLE_DEVICES"] == "0,1"
    assert first.environment["HF_TOKEN"] == "hf_secret"
    assert yaml.safe_load(first.files[FOLDER / "server-0.yaml"]) == OPTIONS


def test_what_trtllm_serve_takes_on_its_command_line_alone_is_not_in_its_file() -> None:
    (plan,) = plans(engine(replicas=1, options={**OPTIONS, "tool_parser": "kimi_k2", "chat_template": None}))
    assert plan.command[-2:] == ("--tool_parser", "kimi_k2")
    assert yaml.safe_load(plan.files[FOLDER / "server-0.yaml"]) == OPTIONS
    (alone,) = plans(engine(replicas=1, options={"chat_template": "/t.jinja"}))
    assert alone.command[-2:] == ("--chat_template", "/t.jinja")
    assert alone.files[FOLDER / "server-0.yaml"] == "{}\n"


@pytest.mark.parametrize("version", ["1.2", "1.3"])
def test_the_key_lists_name_the_same_flags(version: str) -> None:
    assert tuple(load("trtllm-serve", version).flags) == commands.FLAGS_OF_TRTLLM_SERVE


def test_the_text_is_a_script_that_does_the_same(tmp_path: Path) -> None:
    """A fake trtllm-serve on the PATH prints what it is given."""
    program = tmp_path / "trtllm-serve"
    program.write_text('#!/bin/sh\necho "$PWD|$CUDA_VISIBLE_DEVICES|$A_WORD|$*"\nshift 8\ncat "$1"\n')
    program.chmod(0o755)
    config = engine(launch={"env": {"A_WORD": "it's $HOME"}}, replicas=1, options={"max_batch_size": 1})
    (plan,) = plans(config, folder=tmp_path, environ={"PATH": f"{tmp_path}:/usr/bin:/bin"})
    done = subprocess.run(["sh", "-c", plan.text()], capture_output=True, text=True, check=True, env={"PATH": "/bin"})
    first, second = done.stdout.splitlines()
    assert first == f"{tmp_path}|0,1|it's $HOME|{' '.join(plan.command[1:])}"
    assert second == "max_batch_size: 1"


def test_no_options_are_an_empty_mapping() -> None:
    (plan,) = plans(engine(options={}, replicas=1))
    assert list(plan.files.values()) == ["{}\n"]


def test_options_of_null_stay() -> None:
    (plan,) = plans(engine(options={"speculative_config": None}, replicas=1))
    assert list(plan.files.values()) == ["speculative_config: null\n"]


def test_vllm() -> None:
    options = {
        "max_model_len": 4096,
        "enable-prefix-caching": False,
        "enforce_eager": True,
        "disable_log_stats": False,
        "speculative_config": {"method": "eagle3", "num_speculative_tokens": 3},
        "allowed_origins": ["a", "b"],
        "seed": None,
        "gpu_memory_utilization": 0.95,
    }
    (plan,) = plans(engine(server="vllm", version="0.32", options=options, replicas=1))
    assert shlex.join(plan.command) == (
        "python3 -m vllm.entrypoints.openai.api_server --model /models/gpt-oss-120b"
        " --served-model-name openai/gpt-oss-120b --host 127.0.0.1 --port 30000 --max-model-len 4096"
        " --no-enable-prefix-caching --enforce-eager"
        """ --speculative-config '{"method": "eagle3", "num_speculative_tokens": 3}'"""
        " --allowed-origins a b --gpu-memory-utilization 0.95"
    )
    assert plan.model == "openai/gpt-oss-120b"
    assert not plan.files


def test_sglang() -> None:
    options = {"tp_size": 2, "disable_radix_cache": True, "enable_metrics": False}
    (plan,) = plans(engine(server="sglang", version="0.5", options=options, replicas=1))
    assert shlex.join(plan.command) == (
        "python3 -m sglang.launch_server --model-path /models/gpt-oss-120b --served-model-name openai/gpt-oss-120b"
        " --host 127.0.0.1 --port 30000 --tp-size 2 --disable-radix-cache"
    )


def test_torch() -> None:
    config = engine(server="torch", version=None, checkpoint={"make": "tiny-gpt-oss"}, options={"slots": 4}, replicas=1)
    (plan,) = plans(config, gpus_each=0, checkpoint=Path("/cache/checkpoints/tiny"))
    assert plan.command == (
        sys.executable, "-m", "harness", "serve", "--engine", "torch", "--checkpoint", "/cache/checkpoints/tiny",
        "--host", "127.0.0.1", "--port", "30000", "--slots", "4",
    )  # fmt: skip
    assert plan.environment["CUDA_VISIBLE_DEVICES"] == ""
    assert (Path(plan.environment["PYTHONPATH"]) / "harness" / "__main__.py").is_file()
    assert plan.model == "tiny"


def test_an_option_that_is_no_flag() -> None:
    with pytest.raises(ConfigError, match="the option seed is"):
        plans(engine(server="vllm", version="0.32", options={"seed": {1, 2}}))


class TestGpus:
    def test_of_those_that_are_visible(self) -> None:
        found = plans(engine(), environ={**OURS, "CUDA_VISIBLE_DEVICES": "GPU-a, GPU-b,6,7,8"})
        assert [plan.environment["CUDA_VISIBLE_DEVICES"] for plan in found] == ["GPU-a,GPU-b", "6,7"]

    def test_too_few_are_visible(self) -> None:
        with pytest.raises(ConfigError, match="the replicas take 4 GPUs, CUDA_VISIBLE_DEVICES names 3"):
            plans(engine(), environ={**OURS, "CUDA_VISIBLE_DEVICES": "0,1,2"})

    def test_none_are_needed(self) -> None:
        assert plans(engine(), gpus_each=0, environ={**OURS, "CUDA_VISIBLE_DEVICES": ""})


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("127.0.0.1", "http://127.0.0.1:30000"),
        ("0.0.0.0", "http://127.0.0.1:30000"),  # noqa: S104 - nothing listens
        ("node7", "http://node7:30000"),
        ("::1", "http://[::1]:30000"),
        ("::", "http://127.0.0.1:30000"),
    ],
)
def test_where_a_server_is_asked(host: str, url: str) -> None:
    (plan,) = plans(engine(launch={"host": host}, replicas=1))
    assert plan.url == url
    assert plan.command[plan.command.index("--host") + 1] == host


DOCKER = ["docker", "run", "--rm", "--network=host", "--gpus", '"device={gpus}"', "-v", "/models:/models:ro", "img"]


class TestPrefix:
    def test_words_are_filled_in(self) -> None:
        prefix = ["taskset", "-c", "{replica}", "env", "X={folder}/{gpus}"]
        _, plan = plans(engine(launch={"prefix": prefix}))
        assert plan.command[:5] == ("taskset", "-c", "1", "env", f"X={FOLDER}/2,3")
        assert plan.command[5] == "trtllm-serve"
        assert plan.container is None

    def test_the_port(self) -> None:
        assert filled(["-p", "{port}:{port}"], {"port": "30001"}) == ("-p", "30001:30001")

    def test_an_unknown_placeholder(self) -> None:
        with pytest.raises(UnknownName, match="unknown placeholder 'gpu'") as caught:
            filled(["--gpus={gpu}"], {"gpus": "0", "port": "1"})
        assert "did you mean 'gpus'" in str(caught.value)

    def test_docker(self) -> None:
        config = engine(launch={"prefix": DOCKER, "env": {"TRTLLM_ENABLE_PDL": "1"}})
        _, plan = plans(config, environ={**OURS, "DOCKER_HOST": "unix:///x", "NCCL_DEBUG": "WARN"})
        words = list(plan.command)
        end = words.index("--rm")
        told = list(zip(words[2:end:2], words[3:end:2], strict=True))
        assert [value for option, value in told if option == "--volume"] == [
            f"{FOLDER}:{FOLDER}", "/cache/servers:/cache/servers", "/cache/vocab:/cache/vocab",
        ]  # fmt: skip
        assert [value for option, value in told if option == "--env"] == [
            "CUDA_CACHE_PATH", "FLASHINFER_WORKSPACE_BASE", "HF_HOME", "HF_TOKEN", "NCCL_DEBUG",
            "TIKTOKEN_ENCODINGS_BASE", "TLLM_LLMAPI_BUILD_CACHE_ROOT", "TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR",
            "TRTLLM_ENABLE_PDL", "XDG_CACHE_HOME",
        ]  # fmt: skip
        assert told[-1] == ("--cidfile", str(FOLDER / "server-1.cid"))
        assert words[end : words.index("trtllm-serve")] == [*DOCKER[2:5], '"device=2,3"', *DOCKER[6:]]
        assert plan.container is not None
        assert (plan.container.program, plan.container.id_file) == ("docker", FOLDER / "server-1.cid")
        assert plan.environment["DOCKER_HOST"] == "unix:///x"  # for the client
        assert "hf_secret" not in " ".join(plan.command)

    def test_a_container_with_all_gpus_is_told_which(self) -> None:
        (plan,) = plans(engine(launch={"prefix": ["podman", "run", "img"]}, replicas=1))
        assert "CUDA_VISIBLE_DEVICES" in plan.command

    def test_a_vocabulary_of_the_image(self) -> None:
        launch = {"prefix": ["docker", "run", "img"], "env": {"TIKTOKEN_ENCODINGS_BASE": "/opt/vocabulary"}}
        (plan,) = plans(engine(launch=launch, replicas=1))
        assert "/opt/vocabulary:/opt/vocabulary" not in plan.command
        assert "/cache/vocab:/cache/vocab" not in plan.command

    def test_enroot(self) -> None:
        (plan,) = plans(engine(launch={"prefix": ["enroot", "start", "-m", "/models:/models", "trt"]}, replicas=1))
        assert plan.command[:4] == ("enroot", "start", "--mount", f"{FOLDER}:{FOLDER}")
        assert plan.container is None

    def test_srun_with_an_mpi_launcher(self) -> None:
        prefix = ["srun", "--mpi=pmix", "-n", "8", "trtllm-llmapi-launch"]
        (plan,) = plans(engine(launch={"prefix": prefix}, replicas=1))
        assert plan.command[:6] == (*prefix, "trtllm-serve")
        assert plan.environment["SLURM_JOB_ID"] == "1"

    def test_no_slurm_without(self) -> None:
        (plan,) = plans(engine(replicas=1))
        assert "SLURM_JOB_ID" not in plan.environment

    @pytest.mark.parametrize("word", ["-d", "--detach", "-itd", "--detach=true"])
    def test_a_container_in_the_background(self, word: str) -> None:
        with pytest.raises(ConfigError, match=f"launch.prefix detaches its container: {word}"):
            plans(engine(launch={"prefix": ["docker", "run", word, "img"]}))

    def test_a_container_that_is_not_run(self) -> None:
        with pytest.raises(ConfigError, match=r"launch.prefix calls docker without run"):
            plans(engine(launch={"prefix": ["docker", "exec", "trt"]}))


def test_the_environment_is_the_process_own_where_none_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NCCL_DEBUG", "TRACE")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    (plan,) = plans(engine(replicas=1), environ=None)
    assert plan.environment["NCCL_DEBUG"] == "TRACE"
    assert plan.environment["PATH"] == os.environ["PATH"]
