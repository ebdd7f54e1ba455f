"""A stand-in of Qwen3-VL-235B-A22B: its architecture, vision tower and all, far narrower, with random weights.

The folder is laid out as the published one, so that any server can load it: the experts' weights as the hub has them,
the files of the tokenizer, of the image processor and of the template. It carries
:data:`~harness.engines.checkpoint.STAND_IN`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from harness.engines.chats import qwen3_vocab
from harness.engines.chats.picture import MAX_PIXELS, MERGE, MIN_PIXELS, PATCH
from harness.engines.chats.qwen3_vocab import END_OF_TEXT, END_OF_TURN, IMAGE_PAD, VIDEO_PAD, VISION_END, VISION_START
from harness.engines.checkpoint import library_versions, never_sampled, stand_in
from harness.engines.tiny_tokenizer import save_qwen3_tokenizer
from harness.errors import ConfigError

if TYPE_CHECKING:
    from transformers import Qwen3VLMoeForConditionalGeneration

HEAD_DIM: Final = 32
_MROPE: Final = [6, 5, 5]
"""How many of half a head's dimensions turn with time, row and column; of the published 128: 24, 20 and 20."""
_POSITIONS: Final = 262_144
_TEMPLATE: Final = (
    "{%- for message in messages -%}"
    "{{- '<|im_start|>' + message.role + '\\n' -}}"
    "{%- if message.content is string -%}{{- message.content -}}"
    "{%- else -%}{%- for part in message.content -%}"
    "{%- if part.type == 'text' -%}{{- part.text -}}"
    "{%- else -%}{{- '<|vision_start|><|image_pad|><|vision_end|>' -}}{%- endif -%}"
    "{%- endfor -%}{%- endif -%}"
    "{{- '<|im_end|>\\n' -}}"
    "{%- endfor -%}"
    "{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\\n' -}}{%- endif -%}"
)


def make_tiny_qwen3_vl(folder: Path, *, seed: int, hidden_size: int = 64, layers: int = 2) -> Path:
    """A Qwen3-VL-MoE of random weights in ``folder``, bfloat16; returns ``folder``.

    What is not width or depth is as published: a mixture of experts in every layer, 3-D positions, states of the tower
    put into the first layers, the whole vocabulary. Its end tokens, and ids that no text has, are never sampled.
    A stand-in made earlier with the same arguments and library versions is used again; a folder that is no stand-in is
    left alone (ConfigError). MissingError where torch, transformers or the vocabulary is not installed.
    """
    if hidden_size % 16:
        raise ConfigError(f"a hidden_size of {hidden_size}", expected="a multiple of 16")
    config = _config(hidden_size, layers)
    asked = {
        "name": f"tiny-qwen3-vl-h{hidden_size}-l{layers}-seed{seed}",
        "what": "a stand-in of Qwen3-VL-235B-A22B: its architecture, far narrower, with random weights",
        "architecture": "Qwen3VLMoeForConditionalGeneration",
        "seed": seed,
        "end_token": "never sampled",
        "config": config,
        "versions": library_versions(),
    }
    return stand_in(folder, asked, lambda made: _save(made, config, seed))


def _config(hidden_size: int, layers: int) -> dict[str, Any]:
    """What is said to transformers' configuration class."""
    deep = min(3, layers)
    return {
        "text_config": {
            "vocab_size": qwen3_vocab.VOCAB_SIZE,
            "hidden_size": hidden_size,
            "intermediate_size": 2 * hidden_size,
            # Not as wide as the states: transformers tells the hub's layout of experts from its own by their shape.
            "moe_intermediate_size": 3 * hidden_size // 4,
            "num_hidden_layers": layers,
            "num_attention_heads": 8,
            "num_key_value_heads": 2,
            "head_dim": HEAD_DIM,
            "num_experts": 8,
            "num_experts_per_tok": 2,
            "norm_topk_prob": True,
            "decoder_sparse_step": 1,
            "mlp_only_layers": [],
            "max_position_embeddings": _POSITIONS,
            "rope_parameters": {
                "rope_type": "default",
                "rope_theta": 5_000_000,
                "mrope_interleaved": True,
                "mrope_section": _MROPE,
            },
            "tie_word_embeddings": False,
            "bos_token_id": END_OF_TEXT,
            "eos_token_id": END_OF_TURN,
            "pad_token_id": END_OF_TEXT,
        },
        "vision_config": {
            "depth": deep + 1,
            "hidden_size": hidden_size,
            "intermediate_size": 2 * hidden_size,
            "num_heads": 4,
            "out_hidden_size": hidden_size,
            "patch_size": PATCH,
            "spatial_merge_size": MERGE,
            "temporal_patch_size": 2,
            "num_position_embeddings": 48 * 48,
            "deepstack_visual_indexes": list(range(deep)),
        },
        "image_token_id": IMAGE_PAD,
        "video_token_id": VIDEO_PAD,
        "vision_start_token_id": VISION_START,
        "vision_end_token_id": VISION_END,
        "tie_word_embeddings": False,
    }


def _save(folder: Path, config: dict[str, Any], seed: int) -> None:
    import torch
    from transformers import Qwen3VLMoeConfig, Qwen3VLMoeForConditionalGeneration, logging

    logging.disable_progress_bar()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = Qwen3VLMoeForConditionalGeneration(Qwen3VLMoeConfig(**config))
    never_sampled(model, slice(END_OF_TEXT, None))
    model.to(torch.bfloat16).save_pretrained(folder)
    _as_the_hub(folder, model)
    save_qwen3_tokenizer(folder, _TEMPLATE)
    for name, content in _others().items():
        (folder / name).write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def _as_the_hub(folder: Path, model: Qwen3VLMoeForConditionalGeneration) -> None:
    """Stores experts transposed, (experts, in, out), which is how the published files have them."""
    from safetensors.torch import load_file, save_file

    weights = load_file(folder / "model.safetensors")
    experts = [name for name in weights if ".mlp.experts." in name]
    if len(experts) != 2 * model.config.text_config.num_hidden_layers:
        raise AssertionError(f"{len(experts)} weights of experts")
    for name in experts:
        weights[name] = weights[name].transpose(1, 2).contiguous()
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})


def _others() -> dict[str, dict[str, Any]]:
    """What processors and servers read beside the weights, with the published values."""
    image = {
        "size": {"shortest_edge": MIN_PIXELS, "longest_edge": MAX_PIXELS},
        "patch_size": PATCH,
        "temporal_patch_size": 2,
        "merge_size": MERGE,
        "image_mean": [0.5, 0.5, 0.5],
        "image_std": [0.5, 0.5, 0.5],
        "processor_class": "Qwen3VLProcessor",
    }
    return {
        "preprocessor_config.json": {**image, "image_processor_type": "Qwen2VLImageProcessorFast"},
        "video_preprocessor_config.json": {**image, "video_processor_type": "Qwen3VLVideoProcessor"},
        "generation_config.json": {
            "bos_token_id": END_OF_TEXT,
            "pad_token_id": END_OF_TEXT,
            "eos_token_id": [END_OF_TURN, END_OF_TEXT],
            "do_sample": True,
            "temperature": 0.7,
            "top_p": 0.8,
            "top_k": 20,
        },
    }
