"""transformers' modelling code behind one call: N tokens of many requests in, N hidden states out.

What differs from model to model is in this file alone: :data:`FAMILIES` says which class of transformers serves an
architecture and with which arguments its backbone is called so that it makes no masks of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import transformers
from torch import Tensor
from transformers import AttentionInterface

from harness.engines import torch_attention
from harness.engines.checkpoint import read_config
from harness.engines.slots import Plan
from harness.engines.torch_attention import Ragged, SlotCache
from harness.engines.torch_head import Head
from harness.errors import ConfigError, UnknownName


@dataclass(frozen=True, slots=True)
class Family:
    """How one architecture is served: its class in transformers and the extra arguments of its backbone."""

    model_class: str
    backbone_arguments: Mapping[str, object]


FAMILIES = {
    "GptOssForCausalLM": Family(
        "GptOssForCausalLM",
        {"attention_mask": {"full_attention": None, "sliding_attention": None}},
    ),
}


class TorchModel:
    """A model and its key-value cache; its hidden states become logits by ``head``."""

    def __init__(self, folder: Path, dtype: torch.dtype, slots: int, max_total_tokens: int) -> None:
        self._family = _family(folder)
        AttentionInterface.register(torch_attention.NAME, torch_attention.attend)
        self._model = _load(folder, self._family, dtype)
        self._cache = SlotCache(slots, max_total_tokens)
        self.vocab_size = int(self._model.config.vocab_size)
        self.positions = int(self._model.config.max_position_embeddings)
        self.head = Head(self._model.lm_head.weight.detach())

    def forward(self, plan: Plan) -> Tensor:
        """The hidden states (len(plan.chosen_at), width) after which tokens are chosen. Writes the cache."""
        output = self._model.model(
            input_ids=torch.from_numpy(plan.tokens)[None],
            position_ids=torch.from_numpy(plan.positions)[None],
            use_cache=False,
            ragged=Ragged(plan, self._cache),
            **self._family.backbone_arguments,
        )
        hidden: Tensor = output.last_hidden_state[0]
        return hidden[torch.from_numpy(plan.chosen_at)]


def _family(folder: Path) -> Family:
    names = read_config(folder).get("architectures")
    if not isinstance(names, list) or len(names) != 1 or not isinstance(names[0], str):
        raise ConfigError("this checkpoint does not name its architecture", where=folder / "config.json")
    if names[0] not in FAMILIES:
        raise UnknownName("architecture", names[0], FAMILIES, where=folder / "config.json")
    return FAMILIES[names[0]]


def _load(folder: Path, family: Family, dtype: torch.dtype) -> Any:  # noqa: ANN401 - transformers has no types
    transformers.logging.disable_progress_bar()
    model_class = getattr(transformers, family.model_class)
    try:
        model, report = model_class.from_pretrained(
            folder,
            dtype=dtype,
            attn_implementation=torch_attention.NAME,
            local_files_only=True,
            output_loading_info=True,
        )
    except (OSError, ValueError, RuntimeError, TypeError) as error:
        raise ConfigError(
            f"transformers cannot load this checkpoint: {error}",
            where=folder,
            mend="fetch or make the checkpoint again",
        ) from error
    if report["missing_keys"]:
        raise ConfigError(
            f"this checkpoint lacks weights: {', '.join(sorted(report['missing_keys'])[:3])}, ...",
            where=folder,
            mend="fetch or make the checkpoint again",
        )
    return model.eval()
