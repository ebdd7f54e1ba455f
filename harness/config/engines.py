"""The engines that a user can write down: embedded, scripted, servers over HTTP, TensorRT-LLM in process."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator, model_validator

from harness.config.strict import Strict

FolderPath = Annotated[Path, Field(strict=False)]
ServerName = Literal["trtllm-serve", "vllm", "sglang", "torch"]
PLACEHOLDERS = ("gpus", "replica", "folder", "port")
"""What may stand in braces in ``launch.prefix``: the GPUs of a server, its number, its folder in the run's."""

_LAST_PORT = 65535
_PLACEHOLDER = re.compile(r"\{(\w*)\}")
_SECRET = re.compile(r"(^|_)(TOKEN|SECRET|PASSWORD|CREDENTIALS?|(API|ACCESS|PRIVATE)_?KEY)$", re.IGNORECASE)
_ASSIGNED = re.compile(r"(\w+)=(?=.)")
_ENDPOINT = re.compile(r"https?://(\[[0-9A-Fa-f:.]+\]|[^/?#@:\s]+)(:[0-9]{1,5})?")


class TinyCheckpoint(Strict):
    """A stand-in checkpoint: a target's architecture, far narrower, random weights from a seed. Never submittable."""

    make: Literal["tiny-gpt-oss", "tiny-qwen3-vl", "tiny-deepseek-v3"]
    seed: int = 0
    hidden_size: Annotated[int, Field(ge=16)] = 64
    layers: Annotated[int, Field(ge=1)] = 2


class TorchEngine(Strict):
    """The embedded engine: transformers' modelling code on the CPU."""

    kind: Literal["torch"]
    checkpoint: TinyCheckpoint | FolderPath
    slots: Annotated[int, Field(ge=1)] = 32
    threads: Annotated[int, Field(ge=1)] = 1
    max_total_tokens: Annotated[int, Field(ge=2)] = 512
    prefill_chunk: Annotated[int, Field(ge=1)] = 512


class ServiceTime(Strict):
    """How long the scripted engine takes over an answer: to its first token, then for each further one."""

    ttft_ms: Annotated[float, Field(ge=0)] = 0
    per_token_ms: Annotated[float, Field(ge=0)] = 0
    spread: Annotated[float, Field(ge=0)] = 0
    """Sigma of a lognormal factor on both, drawn by row; 0 is fixed."""


class ScriptedEngine(Strict):
    """The deterministic engine of tests. Never submittable."""

    kind: Literal["scripted"]
    right: dict[str, Annotated[float, Field(ge=0, le=1)]] = Field(default_factory=dict)
    """The share of each accuracy subset that is answered right."""
    answer_tokens: Annotated[int, Field(ge=0)] = 64
    """Length of answers to rows that no share speaks of."""
    service: ServiceTime = ServiceTime()
    slots: Annotated[int, Field(ge=1)] | None = None
    seed: int = 0
    faults: dict[Literal["performance", "accuracy", "TEST07"], dict[str, Any]] = Field(default_factory=dict)
    """What goes wrong, by table of the data set; as :class:`harness.engines.scripted_settings.Faults` reads it."""


class ServedCheckpoint(Strict):
    """The weights that a server is to serve: what they are, and where they lie for it (in its container, if any)."""

    name: Annotated[str, Field(min_length=1)]
    """The published name, ``openai/gpt-oss-120b``."""
    path: FolderPath
    revision: str | None = None
    """The commit of the published checkpoint; None is not said."""
    weight_data_type: Annotated[str, Field(min_length=1)]


def _refuse_secrets(names: Iterable[str]) -> None:
    secrets = sorted(name for name in names if _SECRET.search(name))
    if secrets:
        raise ValueError(f"{', '.join(secrets)}: this file is published; set it in the environment instead")


class Launch(Strict):
    """How servers are started. Replica i listens on ``port + i``.

    ``prefix`` are words before the command (a container's, a scheduler's), in which ``{gpus}``, ``{replica}``,
    ``{port}`` and ``{folder}`` (where logs and option files go) are filled in. ``env`` is the server's alone and wins
    over what it inherits; null takes a variable away. ``ready_s`` is how long a server may take until it is healthy.
    """

    host: Annotated[str, Field(min_length=1)] = "127.0.0.1"
    port: Annotated[int, Field(ge=1, le=_LAST_PORT)] = 30000
    prefix: list[str] = Field(default_factory=list)
    env: dict[Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")], str | None] = Field(default_factory=dict)
    ready_s: Annotated[float, Field(gt=0)] = 3600

    @field_validator("env")
    @classmethod
    def _no_secrets(cls, env: dict[str, str | None]) -> dict[str, str | None]:
        _refuse_secrets(env)
        return env

    @field_validator("prefix")
    @classmethod
    def _placeholders_are_known(cls, prefix: list[str]) -> list[str]:
        _refuse_secrets(name for word in prefix for name in _ASSIGNED.findall(word))
        for word in prefix:
            for name in _PLACEHOLDER.findall(word):
                if name not in PLACEHOLDERS:
                    known = ", ".join(f"{{{known}}}" for known in PLACEHOLDERS)
                    raise ValueError(f"{{{name}}} in {word!r} is not filled in; {known} are")
        return prefix


class Clients(Strict):
    """The processes that speak HTTP beside LoadGen's. ``connections`` are for each replica, over all processes.

    ``request_timeout_s`` ends a request without an answer as failed; None waits as long as the watchdog does.
    """

    processes: Annotated[int, Field(ge=1)] = 1
    connections: Annotated[int, Field(ge=1)] = 1024
    request_timeout_s: Annotated[float, Field(gt=0)] | None = None


class HttpEngine(Strict):
    """Servers that are spoken to over HTTP: started by the harness, or running already at ``endpoints``.

    ``options`` are the server's own, under its own names; ``version`` says which list of names they are held against.
    ``replicas`` is how many servers there are, each on GPUs of its own.
    """

    kind: Literal["http"]
    server: ServerName
    version: str | None = None
    checkpoint: ServedCheckpoint | TinyCheckpoint
    replicas: Annotated[int, Field(ge=1)] = 1
    options: dict[str, Any] = Field(default_factory=dict)
    endpoints: list[str] = Field(default_factory=list)
    launch: Launch = Launch()
    clients: Clients = Clients()

    @field_validator("endpoints")
    @classmethod
    def _endpoints_are_base_urls(cls, endpoints: list[str]) -> list[str]:
        for url in endpoints:
            if not _ENDPOINT.fullmatch(url):
                raise ValueError(f"{url!r} is no base URL such as http://127.0.0.1:30000 (no path, no password)")
        if len(set(endpoints)) < len(endpoints):
            raise ValueError("one URL stands twice; each replica has its own")
        return endpoints

    @model_validator(mode="after")
    def _the_server_is_whole(self) -> HttpEngine:
        if (self.version is None) != (self.server == "torch"):
            said = "is part of the harness and has no version" if self.version is not None else "needs its version"
            raise ValueError(f"server {self.server} {said}")
        if self.server != "torch" and isinstance(self.checkpoint, TinyCheckpoint):
            raise ValueError(f"a checkpoint to make is for server torch alone; {self.server} takes name and path")
        return self

    @model_validator(mode="after")
    def _the_replicas_add_up(self) -> HttpEngine:
        if self.endpoints and len(self.endpoints) != self.replicas:
            raise ValueError(f"{len(self.endpoints)} endpoints for {self.replicas} replicas: one each")
        last = self.launch.port + self.replicas - 1
        if not self.endpoints and last > _LAST_PORT:
            raise ValueError(f"the last of {self.replicas} replicas would listen on port {last}")
        processes = self.clients.processes
        if processes > self.replicas and processes % self.replicas:
            raise ValueError(f"{processes} client processes cannot be shared evenly by {self.replicas} replicas")
        return self


class TrtllmEngine(Strict):
    """TensorRT-LLM in process: one engine process a replica. ``options`` are those of its LLM API."""

    kind: Literal["trtllm"]
    version: Annotated[str, Field(min_length=1)]
    checkpoint: ServedCheckpoint
    replicas: Annotated[int, Field(ge=1)] = 1
    options: dict[str, Any] = Field(default_factory=dict)


Engine = Annotated[TorchEngine | ScriptedEngine | HttpEngine | TrtllmEngine, Field(discriminator="kind")]
