"""What is served, where and how. Loads nothing that only a server needs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from harness.engines.start import EngineSpec
from harness.errors import ConfigError, UnknownName
from harness.serve.faults import PlannedFault

CHATS: Final = ("auto", "gpt-oss", "qwen3-vl", "tool-chat", "plain")
LIKE: Final = ("trtllm-serve", "vllm")
LARGEST_PORT: Final = 65_535


@dataclass(frozen=True, slots=True)
class ServeSettings:
    """All of it.

    ``model`` is the name in ``/v1/models``; ``seed`` is for requests without one; ``port`` 0 is any that is free.
    ``chat`` is one of :data:`CHATS`: a model's own needs its vocabulary and the package that has it, and *auto* takes
    it where both are there. ``like`` is one of :data:`LIKE`: whose manners it has. ``stream_interval`` is how many
    tokens a chunk has. ``ready_s`` bounds how long the engine may take to come up. ``recorded`` are files of chats that
    a scripted engine is to answer as they were answered; see :mod:`harness.serve.recorded`.
    """

    engine: EngineSpec
    model: str
    host: str = "127.0.0.1"
    port: int = 0
    chat: str = "auto"
    like: str = LIKE[0]
    stream_interval: int = 1
    seed: int = 0
    faults: tuple[PlannedFault, ...] = ()
    ready_s: float = 600.0
    recorded: tuple[Path, ...] = ()

    def __post_init__(self) -> None:
        if self.chat not in CHATS:
            raise UnknownName("format of chats", self.chat, CHATS)
        if self.like not in LIKE:
            raise UnknownName("kind of server to be like", self.like, LIKE)
        if self.recorded and self.chat not in ("auto", "plain"):
            raise ConfigError(f"recorded chats in the format {self.chat}", expected="--chat=plain, or none")
        if not 0 <= self.port <= LARGEST_PORT or self.stream_interval < 1 or self.seed < 0 or not self.ready_s > 0:
            raise ConfigError(
                f"this cannot be served: port {self.port}, stream_interval {self.stream_interval}, seed {self.seed}, "
                f"ready_s {self.ready_s}",
                expected=f"a port up to {LARGEST_PORT}, a seed of at least 0, the others above 0",
            )
