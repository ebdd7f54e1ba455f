"""What a server finds in its environment: allow-listed from ours, caches it may write to, what the user sets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from harness.engines.gpus import GPUS

HOST_NAMES: Final = frozenset(
    {"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR", "LD_LIBRARY_PATH"}
    | {"XDG_RUNTIME_DIR", "SSL_CERT_FILE", "CUDA_HOME", "CUDA_PATH", GPUS}
    | {"CC", "CXX", "CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH", "LIBRARY_PATH"}
    | {"TRITON_PTXAS_PATH", "TRITON_PTXAS_BLACKWELL_PATH", "TRITON_CUOBJDUMP_PATH", "TRITON_NVDISASM_PATH"}
    | {"TRITON_CUDACRT_PATH", "TRITON_CUDART_PATH", "TRITON_CUPTI_PATH", "TRITON_LIBCUDA_PATH"}
    | {"OPAL_PREFIX", "PMIX_INSTALL_PREFIX", "PRTE_PREFIX"}
)
"""Of this machine, or of the image that the harness itself runs in: where its compilers, kernels and MPI lie.

A container that is started from here has its own.
"""
HOST_FAMILIES: Final = ("LC_", "DOCKER_", "ENROOT_", "OMPI_ALLOW_", *(f"OMPI_MCA_{x}" for x in ("btl", "coll", "pml")))
NAMES: Final = frozenset(
    {"HF_HUB_OFFLINE", "HF_HOME", "HF_TOKEN", "TRANSFORMERS_OFFLINE", "TRITON_CACHE_DIR", "XDG_CACHE_HOME"}
    | {"DO_NOT_TRACK"}
)
FAMILIES: Final = (
    *("CUDA_", "NVIDIA_", "NCCL_", "NVSHMEM_", "UCX_", "UCC_", "HCOLL_", "SHARP_", "NIXL_"),
    *("TRTLLM_", "TLLM_", "TORCH_", "TORCHINDUCTOR_", "FLASHINFER_", "DG_", "TIKTOKEN_"),
)
FAMILIES_OF: Final[Mapping[str, tuple[str, ...]]] = {
    "vllm": ("VLLM_",),
    "sglang": ("SGLANG_", "SGL_"),
    "torch": ("HARNESS_", "OMP_", "MKL_"),
}
SCHEDULER_FAMILIES: Final = ("SLURM_", "PMI", "OMPI_", "PRTE_", "OPAL_")
"""What a scheduler told *this* process; what is listed above says how an image's MPI is installed and passes.

A server that finds it takes itself for one rank of a larger job and waits for the others.
"""
SCHEDULERS: Final = frozenset({"srun", "mpirun", "mpiexec", "trtllm-llmapi-launch"})
"""Words of a prefix that need it."""

CACHES: Final[Mapping[str, str]] = {"HF_HOME": "huggingface", "XDG_CACHE_HOME": "xdg"}
_KERNELS: Final[Mapping[str, str]] = {
    "CUDA_CACHE_PATH": "cuda",
    "TRITON_CACHE_DIR": "triton",
    "TORCHINDUCTOR_CACHE_DIR": "inductor",
    "FLASHINFER_WORKSPACE_BASE": "flashinfer",
}
CACHES_OF: Final[Mapping[str, Mapping[str, str]]] = {
    "trtllm-serve": {**_KERNELS, "TLLM_LLMAPI_BUILD_CACHE_ROOT": "tllm"},
    "vllm": {**_KERNELS, "VLLM_CACHE_ROOT": "vllm"},
    "sglang": _KERNELS,
}
"""Where compiled kernels and downloads go, below one folder: in an image the defaults are often read-only."""
VOCABULARY: Final = "TIKTOKEN_ENCODINGS_BASE"


def asks_a_scheduler(prefix: Iterable[str]) -> bool:
    """Whether a prefix starts the server as a rank of a job, by the names of its programs."""
    return any(Path(word).name in SCHEDULERS for word in prefix)


def server_environment(
    ours: Mapping[str, str],
    *,
    server: str,
    prefix: Iterable[str],
    caches: Path,
    vocabulary: Path | None,
    gpus: Iterable[str] | None,
    stated: Mapping[str, str | None],
) -> dict[str, str]:
    """The whole environment of a server; ``stated`` (``launch.env``) wins over everything, None takes away.

    ``gpus`` are the ones it may see, None leaves that unsaid. Proxies never pass: all traffic is on this machine.
    """
    families = (*HOST_FAMILIES, *FAMILIES, *FAMILIES_OF.get(server, ()))
    if asks_a_scheduler(prefix):
        families += SCHEDULER_FAMILIES
    found = {
        name: value for name, value in ours.items() if name in HOST_NAMES or name in NAMES or name.startswith(families)
    }
    own = {**CACHES, **CACHES_OF.get(server, {})}
    found |= {name: str(caches / folder) for name, folder in own.items() if name not in found}
    if vocabulary is not None:
        found[VOCABULARY] = str(vocabulary)
    found.pop(GPUS, None)
    if gpus is not None:
        found[GPUS] = ",".join(gpus)
    found |= {name: value for name, value in stated.items() if value is not None}
    return {name: value for name, value in found.items() if stated.get(name, "") is not None}


def crosses_into_a_container(environment: Mapping[str, str], *, gpus_renumbered: bool) -> list[str]:
    """The names of the variables that hold inside a container too, in order.

    A container that was given some GPUs numbers them from 0: which ones they are outside means nothing there.
    """
    kept = []
    for name in sorted(environment):
        if name == GPUS:
            if not gpus_renumbered:
                kept.append(name)
        elif name not in HOST_NAMES and not name.startswith(HOST_FAMILIES):
            kept.append(name)
    return kept
