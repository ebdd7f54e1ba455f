"""The embedded engine: real inference with transformers' modelling code on a CPU, batched continuously.

:mod:`~harness.engines.slots` says what the next step is over, :mod:`~harness.engines.torch_model` computes it and
:mod:`~harness.engines.sampler` chooses the tokens. torch is imported when a core is made, not when this module is.
"""

from __future__ import annotations

import time
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.engines.base import EngineInfo, Event, Requests
from harness.engines.checkpoint import describe
from harness.engines.slots import SlotTable
from harness.errors import ConfigError, MissingError, RunBroke
from harness.events import Occupancy

_DTYPES = ("float32", "bfloat16")


@dataclass(frozen=True, slots=True)
class TorchSettings:
    """How a :class:`TorchCore` is made.

    ``slots`` requests are worked on at once; prompt plus output cap of each is at most ``max_total_tokens``; a step
    reads at most ``prefill_chunk`` tokens of prompts, which bounds how long the answers under way wait for it.
    One thread is the default because LoadGen and the harness need the others.
    """

    checkpoint: Path
    slots: int = 32
    max_total_tokens: int = 512
    prefill_chunk: int = 512
    threads: int = 1
    dtype: str = "float32"

    def __post_init__(self) -> None:
        for name in ("slots", "max_total_tokens", "prefill_chunk", "threads"):
            if getattr(self, name) < 1:
                raise ConfigError(f"the torch engine's {name} is {getattr(self, name)}", expected="at least 1")
        if self.dtype not in _DTYPES:
            raise ConfigError(f"the torch engine's dtype is {self.dtype!r}", expected=" or ".join(_DTYPES))


class TorchCore:
    """An :class:`~harness.engines.base.EngineCore` over a checkpoint of transformers.

    Raises MissingError (torch, transformers or the checkpoint is not there), ConfigError (the folder is no checkpoint
    of a known architecture, or its positions end before ``max_total_tokens``).
    """

    def __init__(self, settings: TorchSettings) -> None:
        checkpoint = describe(settings.checkpoint)
        torch, transformers = _libraries()
        from harness.engines.sampler import Sampler
        from harness.engines.torch_model import TorchModel

        torch.set_num_threads(settings.threads)
        self._torch = torch
        self._model = TorchModel(
            settings.checkpoint, getattr(torch, settings.dtype), settings.slots, settings.max_total_tokens
        )
        if settings.max_total_tokens > self._model.positions:
            raise ConfigError(
                f"max_total_tokens is {settings.max_total_tokens}",
                where=settings.checkpoint,
                expected=f"at most {self._model.positions}, the positions of this model",
            )
        self._sampler = Sampler(self._model.head)
        self._table = SlotTable(
            settings.slots,
            settings.max_total_tokens,
            self._model.vocab_size,
            settings.prefill_chunk,
            self._model.body,
        )
        self._info = EngineInfo(
            kind="torch",
            vocab_size=self._model.vocab_size,
            max_total_tokens=settings.max_total_tokens,
            slots=settings.slots,
            checkpoint=checkpoint,
            versions={"torch": str(torch.__version__), "transformers": str(transformers.__version__)},
            settings={
                "threads": settings.threads,
                "dtype": settings.dtype,
                "prefill_chunk": settings.prefill_chunk,
            },
            not_submittable=("stand-in checkpoint",) if checkpoint.stand_in else (),
        )

    def info(self) -> EngineInfo:
        """What it is; valid before the first request."""
        return self._info

    def submit(self, requests: Requests) -> None:
        """Takes requests, any number; those beyond its slots wait inside.

        RunBroke for chats where the model takes none, ConfigError for a sampling that this engine does not do.
        """
        workload = requests.workload
        if (workload.bodies or workload.chat_prompts) and not self._model.body.takes_chats:
            raise RunBroke("the torch engine answers prompts of token ids, not chats")
        if more := workload.sampling.more():
            stated = ", ".join(f"{name} {value:g}" for name, value in more.items())
            raise ConfigError(
                f"the torch engine does not sample with {stated}",
                expected="min_p 0, repetition_penalty 1, presence_penalty 0, frequency_penalty 0",
            )
        self._table.submit(requests)

    def step(self) -> list[Event]:
        """One forward pass: a token each of the answers under way, and the next pieces of prompts."""
        events = self._table.admit()
        plan = self._table.plan()
        if plan is None:
            return events
        with self._torch.inference_mode():
            hidden = self._model.forward(plan)
            tokens = self._sampler.choose(hidden, plan.samplings).numpy()
        return events + self._table.settle(plan, tokens, time.monotonic_ns())

    def wait_s(self) -> float | None:
        """0 while there is work, else None."""
        return None if self._table.idle else 0.0

    def descriptor(self) -> None:
        """Nothing comes from elsewhere."""

    def counters(self) -> dict[str, int]:
        """Tokens of prompts, and those among them that a slot still held of their session."""
        return {"prompt_tokens": self._table.prompt_tokens, "cached_tokens": self._table.cached_tokens}

    def gauges(self) -> Occupancy:
        """Of the slots, whose positions are the KV cache."""
        return self._table.occupancy()

    def drop(self, numbers: Collection[int]) -> None:
        """Frees the slots of these requests, and forgets those of them that wait."""
        self._table.drop(numbers)

    def cancel(self) -> None:
        """Forgets all requests and what is held of sessions, and starts the random streams anew."""
        self._table.clear()
        self._sampler.restart()


def _libraries() -> tuple[Any, Any]:
    try:
        import torch
        import transformers
    except ImportError as error:
        raise MissingError(
            f"{error.name} is not installed",
            expected="the packages of the torch engine",
            mend="pip install 'mlperf-inference-harness[torch]'",
        ) from error
    return torch, transformers
