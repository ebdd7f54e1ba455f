"""What is checked, and with which options engines are started for it."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from harness.config.engines import HttpEngine, Launch, ServedCheckpoint, TinyCheckpoint, TorchEngine, TrtllmEngine
from harness.config.merge import merged
from harness.engines.checkpoint import weight_data_type
from harness.engines.launch import probe
from harness.engines.launch.weights import made
from harness.errors import ConfigError
from harness.runs.gpu_check.legs import LegSize

SERVERS: Final = ("trtllm-serve", "torch")
PARTS: Final = ("server", "in_process")

_COMMON: Final[Mapping[str, Any]] = {
    "max_batch_size": 64,
    "max_num_tokens": 8192,
    "max_seq_len": 4096,
    "enable_chunked_prefill": True,
    "stream_interval": 20,
    "kv_cache_config": {"enable_block_reuse": False, "free_gpu_memory_fraction": 0.8},
}
_SERVER_ONLY: Final[Mapping[str, Any]] = {"num_postprocess_workers": 4}
_TORCH: Final[Mapping[str, Any]] = {"slots": 32, "max_total_tokens": 512}
_TORCH_SERVER: Final[Mapping[str, Any]] = {"stream_interval": 20}
_TORCH_SIZE: Final = LegSize(output_cap=8, samples=64, min_duration_ms=3000, warmup=32)
_READY_S: Final = 400.0


@dataclass(frozen=True, slots=True)
class CheckSettings:
    """One check. ``endpoint`` is of a server that runs already, "" to start one; ``options`` go over our own.

    ``prefix`` are words before the command of a server that is started, a container's for one. ``version`` is the
    server's, "" to find it out. What would not end within ``budget_s`` is not begun.
    """

    server: str
    checkpoint: Path | None
    out: Path
    data_dir: Path
    endpoint: str = ""
    version: str = ""
    gpus: int = 1
    port: int = 30000
    options: Mapping[str, Any] = field(default_factory=dict)
    prefix: tuple[str, ...] = ()
    parts: tuple[str, ...] = PARTS
    budget_s: float = 600.0
    size: LegSize | None = None

    def __post_init__(self) -> None:
        if self.server != "torch" and self.checkpoint is None:
            raise ConfigError(f"{self.server} needs a checkpoint", mend="--checkpoint=DIR, a folder of Hugging Face's")
        for part in self.parts:
            if part not in PARTS:
                raise ConfigError(f"{part!r} is no part of the check", expected=" or ".join(PARTS))

    @property
    def legs(self) -> LegSize:
        """How long the legs are."""
        return self.size or (_TORCH_SIZE if self.server == "torch" else LegSize())

    @property
    def started_with(self) -> Mapping[str, Any] | None:
        """A server's options; None where somebody else started it and did not say."""
        if self.endpoint and not self.options:
            return None
        if self.endpoint:
            return self.options
        own = (
            merged(_TORCH, _TORCH_SERVER)
            if self.server == "torch"
            else merged(_COMMON, _SERVER_ONLY) | self._parallel()
        )
        return merged(own, self.options)

    def http_engine(self) -> HttpEngine:
        """The server as a configuration has it."""
        endpoints = [self.endpoint] if self.endpoint else []
        return HttpEngine(
            kind="http",
            server="torch" if self.server == "torch" else "trtllm-serve",
            version=None if self.server == "torch" else self._version(),
            checkpoint=self._served(),
            options=dict(self.started_with or {}),
            endpoints=endpoints,
            launch=Launch(port=self.port, prefix=list(self.prefix), ready_s=_READY_S),
        )

    def own_engine(self) -> TrtllmEngine | TorchEngine:
        """The engine in process as a configuration has it."""
        checkpoint = self._served()
        if self.server == "torch" or isinstance(checkpoint, TinyCheckpoint):
            options = merged(_TORCH, self.options)
            made = checkpoint if isinstance(checkpoint, TinyCheckpoint) else checkpoint.path
            return TorchEngine(
                kind="torch", checkpoint=made, slots=options["slots"], max_total_tokens=options["max_total_tokens"]
            )
        return TrtllmEngine(kind="trtllm", version=self._version(), checkpoint=checkpoint, options=self.own_options())

    def own_options(self) -> dict[str, Any]:
        """Options of TensorRT-LLM in process: those of the server, but for what only servers have."""
        given = {key: value for key, value in self.options.items() if key not in _SERVER_ONLY}
        return merged(dict(_COMMON) | self._parallel(), given)

    def folder(self) -> Path:
        """Where the weights lie; a stand-in is made where it is not there yet."""
        return made(self._served())

    def _served(self) -> ServedCheckpoint | TinyCheckpoint:
        if self.checkpoint is None:
            return TinyCheckpoint(make="tiny-gpt-oss")
        folder = self.checkpoint.expanduser().absolute()
        return ServedCheckpoint(name=folder.name, path=folder, weight_data_type=weight_data_type(folder))

    def _parallel(self) -> dict[str, Any]:
        return {"tensor_parallel_size": self.gpus}

    def _version(self) -> str:
        found = self.version
        if not found and self.endpoint:
            found = probe.ask(self.server, self.endpoint).version or ""
        if not found:
            try:
                found = importlib.metadata.version("tensorrt_llm")
            except importlib.metadata.PackageNotFoundError:
                raise ConfigError(
                    "nobody says which TensorRT-LLM this is: it is not installed here", mend="--version=1.2, for one"
                ) from None
        return found
