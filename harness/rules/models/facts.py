"""Reader of the models' facts: what divides over GPUs, and what a token takes in the KV cache."""

from __future__ import annotations

import datetime
import functools
from collections.abc import Mapping
from typing import Annotated

from pydantic import Field, TypeAdapter, model_validator

from harness.rules import packaged
from harness.rules.values import Strict

_Count = Annotated[int, Field(ge=1)]


class PublishedCheckpoint(Strict):
    """A checkpoint: what its weights are in, and the bytes of its tensors (None where no source told)."""

    weight_data_type: str
    tensor_bytes: _Count | None
    source: str


class LatentCache(Strict):
    """Multi-head latent attention: one vector of ``rank`` and one of ``rope`` elements a token and layer."""

    rank: _Count
    rope: _Count


class ModelFacts(Strict):
    """A model's shape. ``window_layers`` of its ``layers`` see the last ``window`` tokens alone."""

    source: str
    as_of: datetime.date
    layers: _Count
    window_layers: Annotated[int, Field(ge=0)] = 0
    window: _Count | None = None
    heads: _Count
    kv_heads: _Count
    head_dim: _Count
    latent_cache: LatentCache | None = None
    hidden: _Count
    experts: _Count
    vocabulary: _Count
    max_positions: _Count
    checkpoints: dict[str, PublishedCheckpoint]

    @model_validator(mode="after")
    def _windows_have_a_width(self) -> ModelFacts:
        if (self.window is None) != (self.window_layers == 0) or self.window_layers > self.layers:
            raise ValueError(f"{self.window_layers} of {self.layers} layers with a window of {self.window}")
        return self

    def kv_elements(self, tensor: int) -> int:
        """Elements that a token takes in the KV cache of one layer on one of ``tensor`` GPUs.

        Heads are divided while there are enough, and repeated beyond; a latent vector is on each GPU.
        """
        if self.latent_cache is not None:
            return self.latent_cache.rank + self.latent_cache.rope
        return 2 * max(1, self.kv_heads // tensor) * self.head_dim


def find(checkpoint: str) -> ModelFacts | None:
    """The facts of the model that a published checkpoint is of; None where there are none."""
    return next((facts for facts in _all().values() if checkpoint in facts.checkpoints), None)


@functools.cache
def _all() -> Mapping[str, ModelFacts]:
    return TypeAdapter(dict[str, ModelFacts]).validate_python(packaged.read("harness.rules.models", "models.yaml"))
