from __future__ import annotations

from pathlib import Path

import pytest

from harness.engines.launch.environment import (
    HOST_NAMES,
    asks_a_scheduler,
    crosses_into_a_container,
    server_environment,
)
from harness.engines.launch.secrets import is_secret, masked, masked_words

OURS = {
    "PATH": "/bin",
    "HOME": "/home/me",
    "LANG": "C.UTF-8",
    "LD_LIBRARY_PATH": "/lib",
    "LC_ALL": "C",
    "CUDA_VISIBLE_DEVICES": "4,5",
    "CUDA_MODULE_LOADING": "LAZY",
    "NCCL_DEBUG": "WARN",
    "UCX_TLS": "tcp",
    "TRTLLM_ENABLE_PDL": "1",
    "TIKTOKEN_ENCODINGS_BASE": "/vocabulary",
    "HF_HUB_OFFLINE": "1",
    "HF_TOKEN": "hf_secret",
    "VLLM_USE_V1": "1",
    "HARNESS_CACHE_DIR": "/cache",
    "http_proxy": "http://proxy",
    "HTTPS_PROXY": "http://proxy",
    "no_proxy": "*",
    "SLURM_JOB_ID": "7",
    "SLURM_NTASKS": "4",
    "PMI_RANK": "0",
    "PMIX_RANK": "0",
    "OMPI_COMM_WORLD_SIZE": "4",
    "PYTHONPATH": "/mine",
    "AWS_SECRET_ACCESS_KEY": "x",
    "PS1": "$",
}


def environment(server: str = "trtllm-serve", prefix: tuple[str, ...] = (), **changes: object) -> dict[str, str]:
    values: dict[str, object] = {"caches": Path("/c"), "vocabulary": None, "gpus": ["0"], "stated": {}}
    return server_environment(OURS, server=server, prefix=prefix, **{**values, **changes})  # type: ignore[arg-type]


def test_what_passes_is_listed() -> None:
    found = environment()
    caches = {name: value for name, value in found.items() if value.startswith("/c/")}
    assert {name: value for name, value in found.items() if name not in caches} == {
        "PATH": "/bin",
        "HOME": "/home/me",
        "LANG": "C.UTF-8",
        "LD_LIBRARY_PATH": "/lib",
        "LC_ALL": "C",
        "CUDA_VISIBLE_DEVICES": "0",
        "CUDA_MODULE_LOADING": "LAZY",
        "NCCL_DEBUG": "WARN",
        "UCX_TLS": "tcp",
        "TRTLLM_ENABLE_PDL": "1",
        "TIKTOKEN_ENCODINGS_BASE": "/vocabulary",
        "HF_HUB_OFFLINE": "1",
        "HF_TOKEN": "hf_secret",
    }
    assert caches["TRITON_CACHE_DIR"] == "/c/triton"
    assert set(caches) >= {"HF_HOME", "XDG_CACHE_HOME", "TLLM_LLMAPI_BUILD_CACHE_ROOT"}


def test_how_an_images_mpi_and_compilers_are_installed_is_not_the_schedulers_word(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In NVIDIA's images OPAL_PREFIX says where MPI lies; without it no worker of TensorRT-LLM can be started."""
    image = {"OPAL_PREFIX": "/opt/hpcx/ompi", "OMPI_MCA_coll_hcoll_enable": "0", "OMPI_ALLOW_RUN_AS_ROOT": "1"}
    image |= {"TRITON_PTXAS_PATH": "/usr/local/cuda/bin/ptxas", "TORCH_CUDA_ARCH_LIST": "10.0", "LIBRARY_PATH": "/l"}
    job = {"OMPI_COMM_WORLD_RANK": "0", "OMPI_MCA_orte_hnp_uri": "1", "PMIX_NAMESPACE": "x", "OPAL_OUTPUT": "1"}
    monkeypatch.setitem(globals(), "OURS", image | job)
    found = environment()
    assert image.items() <= found.items()
    assert not job.keys() & found.keys()
    assert set(crosses_into_a_container(found, gpus_renumbered=True)) & image.keys() == {"TORCH_CUDA_ARCH_LIST"}


def test_each_server_has_variables_of_its_own() -> None:
    assert environment("vllm")["VLLM_USE_V1"] == "1"
    assert environment("torch")["HARNESS_CACHE_DIR"] == "/cache"
    assert "VLLM_USE_V1" not in environment("sglang")
    assert "TRITON_CACHE_DIR" not in environment("torch")


@pytest.mark.parametrize("word", ["srun", "/usr/bin/mpirun", "mpiexec", "trtllm-llmapi-launch"])
def test_a_schedulers_variables_pass_where_its_program_is_asked(word: str) -> None:
    found = environment(prefix=(word, "-n", "1"))
    assert {name for name in found if name.startswith(("SLURM", "PMI", "OMPI_COMM"))} == {
        "SLURM_JOB_ID", "SLURM_NTASKS", "PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_SIZE",
    }  # fmt: skip
    assert asks_a_scheduler([word])
    assert not asks_a_scheduler(["docker", "run", "srun-image"])


def test_what_the_user_states_wins() -> None:
    stated = {"CUDA_VISIBLE_DEVICES": "7", "TRITON_CACHE_DIR": "/t", "NCCL_DEBUG": "INFO", "https_proxy": "wanted"}
    found = environment(stated=stated, vocabulary=Path("/v"))
    assert stated.items() <= found.items()
    assert found["TIKTOKEN_ENCODINGS_BASE"] == "/v"
    assert "CUDA_VISIBLE_DEVICES" not in environment(stated={"CUDA_VISIBLE_DEVICES": None, "NOT_THERE": None})


def test_gpus_are_left_unsaid_or_none() -> None:
    assert "CUDA_VISIBLE_DEVICES" not in environment(gpus=None)
    assert environment(gpus=[])["CUDA_VISIBLE_DEVICES"] == ""


@pytest.mark.parametrize("renumbered", [True, False])
def test_a_container_gets_what_is_not_of_this_machine(renumbered: bool) -> None:
    names = crosses_into_a_container(environment(), gpus_renumbered=renumbered)
    assert names == sorted(names)
    assert not {"PATH", "HOME", "LD_LIBRARY_PATH", "LC_ALL"} & set(names)
    assert {"NCCL_DEBUG", "TRTLLM_ENABLE_PDL", "TRITON_CACHE_DIR"} <= set(names)
    assert ("CUDA_VISIBLE_DEVICES" in names) is not renumbered
    assert not HOST_NAMES & (set(names) - {"CUDA_VISIBLE_DEVICES"})


@pytest.mark.parametrize(
    "name",
    ["HF_TOKEN", "OPENAI_API_KEY", "AWS_SECRET_ACCESS_KEY", "MY_SECRET", "GITHUB_TOKEN", "db_password", "api-key"],
)
def test_secrets_are_known_by_name(name: str) -> None:
    assert is_secret(name)
    assert masked({name: "v", "PATH": "/bin"}) == {name: "***", "PATH": "/bin"}


@pytest.mark.parametrize("name", ["TOKENIZERS_PARALLELISM", "TIKTOKEN_ENCODINGS_BASE", "NCCL_DEBUG", "max-num-tokens"])
def test_other_names_are_not(name: str) -> None:
    assert not is_secret(name)
    assert masked({name: "v"}) == {name: "v"}


def test_an_empty_secret_is_shown_as_it_is() -> None:
    assert masked({"HF_TOKEN": ""}) == {"HF_TOKEN": ""}


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (["--api-key", "sk-1", "--port", "1"], ["--api-key", "***", "--port", "1"]),
        (["--api-key=sk-1"], ["--api-key=***"]),
        (["--env", "HF_TOKEN=hf_1"], ["--env", "HF_TOKEN=***"]),
        (["--env=HF_TOKEN=hf_1=2"], ["--env=HF_TOKEN=***"]),
        (["-eHF_TOKEN=hf_1"], ["-eHF_TOKEN=***"]),
        (["--env", "HF_TOKEN", "image"], ["--env", "HF_TOKEN", "image"]),
        (["--api-key", "--port", "1"], ["--api-key", "--port", "1"]),
        (["--tokenizer", "/models/x"], ["--tokenizer", "/models/x"]),
        (["--gpus", '"device=0,1"'], ["--gpus", '"device=0,1"']),
    ],
)
def test_secrets_in_words(words: list[str], shown: list[str]) -> None:
    assert masked_words(words) == shown
