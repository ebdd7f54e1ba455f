"""transformers' modelling code behind one call: N tokens of many requests in, N hidden states out.

What differs from model to model is in :data:`FAMILIES`: which class of transformers serves an architecture, and how
its body is called so that it makes no masks of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol

import torch
import transformers
from torch import Tensor
from transformers import AttentionInterface

from harness.engines import torch_attention
from harness.engines.checkpoint import read_config
from harness.engines.slot_plans import Plan
from harness.engines.slot_prompts import Reader, TokenIds
from harness.engines.torch_attention import Ragged, SlotCache
from harness.engines.torch_deepseek import DeepseekV3
from harness.engines.torch_head import Head
from harness.engines.torch_vision import Qwen3Vl
from harness.errors import ConfigError, UnknownName


class Body(Reader, Protocol):
    """What lies between ids and the head: one architecture, and how its prompts are read."""

    takes_chats: ClassVar[bool]

    def hidden(self, plan: Plan, ragged: Ragged) -> Tensor:
        """The hidden states (N, width) of a plan's tokens; writes the cache that ``ragged`` has."""


class GptOss(TokenIds):
    """GPT-OSS: prompts of token ids, full layers and layers of a sliding window in turn."""

    takes_chats: ClassVar[bool] = False

    def __init__(self, model: Any, folder: Path, slots: int) -> None:  # noqa: ANN401 - transformers has no types
        self._model = model.model

    def hidden(self, plan: Plan, ragged: Ragged) -> Tensor:
        """The hidden states (N, width) of a plan's tokens."""
        output = self._model(
            input_ids=torch.from_numpy(plan.tokens)[None],
            position_ids=torch.from_numpy(plan.positions)[None],
            attention_mask={"full_attention": None, "sliding_attention": None},
            use_cache=False,
            ragged=ragged,
        )
        hidden: Tensor = output.last_hidden_state[0]
        return hidden


@dataclass(frozen=True, slots=True)
class Family:
    """How one architecture is served: its class in transformers, the attention of its parts, and its body."""

    model_class: str
    attention: str | Mapping[str, str]
    body: Callable[[Any, Path, int], Body]


FAMILIES: Mapping[str, Family] = {
    "GptOssForCausalLM": Family("GptOssForCausalLM", torch_attention.NAME, GptOss),
    "Qwen3VLMoeForConditionalGeneration": Family(
        "Qwen3VLMoeForConditionalGeneration",
        {"text_config": torch_attention.NAME, "vision_config": "sdpa"},
        Qwen3Vl,
    ),
    "DeepseekV3ForCausalLM": Family("DeepseekV3ForCausalLM", torch_attention.NAME, DeepseekV3),
}


class TorchModel:
    """A model and its key-value cache; its hidden states become logits by ``head``, prompts are read by ``body``."""

    def __init__(self, folder: Path, dtype: torch.dtype, slots: int, max_total_tokens: int) -> None:
        family = _family(folder)
        AttentionInterface.register(torch_attention.NAME, torch_attention.attend)
        model = _load(folder, family, dtype)
        config = model.config.get_text_config()
        self._cache = SlotCache(slots, max_total_tokens)
        self.body = family.body(model, folder, slots)
        self.vocab_size = int(config.vocab_size)
        self.positions = int(config.max_position_embeddings)
        self.head = Head(model.lm_head.weight.detach())

    def forward(self, plan: Plan) -> Tensor:
        """The hidden states (len(plan.chosen_at), width) after which tokens are chosen. Writes the cache."""
        return self.body.hidden(plan, Ragged(plan, self._cache))[torch.from_numpy(plan.chosen_at)]


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
            attn_implementation=family.attention,
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
