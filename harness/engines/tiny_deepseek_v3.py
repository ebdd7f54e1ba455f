"""A stand-in of Kimi K2.6's text model: the architecture of DeepSeek-V3, far narrower, with random weights.

The folder is laid out as published ones are, so that any server can load it: an expert's weights by themselves, the
files of a tokenizer and of a template. Vocabulary (Qwen3's) and template
(:mod:`~harness.engines.chats.tool_chat`) are no more the target's than the weights. It carries
:data:`~harness.engines.checkpoint.STAND_IN`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from harness.engines.chats import qwen3_vocab
from harness.engines.chats.qwen3_vocab import END_OF_TEXT, END_OF_TURN
from harness.engines.chats.tool_chat import TEMPLATE
from harness.engines.checkpoint import library_versions, never_sampled, stand_in
from harness.engines.tiny_tokenizer import save_qwen3_tokenizer
from harness.errors import ConfigError

if TYPE_CHECKING:
    from transformers import DeepseekV3ForCausalLM
    from transformers.models.deepseek_v3.modeling_deepseek_v3 import DeepseekV3TopkRouter

_POSITIONS: Final = 262_144
_LATENT: Final = 512
_ROTATED: Final = 64
"""Of a head's key; with the latent's, the one size that compiled kernels of other servers take."""
_BIAS: Final = 0.02
"""Standard deviation of what the router adds to an expert's score to choose it: as much as the scores differ by."""
_SHARPER: Final = 50
"""Times the queries of random weights: a head then looks at few places of a prompt, not at all of them alike."""
_GENERATION: Final = {
    "bos_token_id": END_OF_TEXT,
    "pad_token_id": END_OF_TEXT,
    "eos_token_id": [END_OF_TURN, END_OF_TEXT],
    "do_sample": True,
    "temperature": 1.0,
    "top_p": 0.95,
}


def make_tiny_deepseek_v3(folder: Path, *, seed: int, hidden_size: int = 64, layers: int = 2) -> Path:
    """A DeepSeek-V3 of random weights in ``folder``, bfloat16; returns ``folder``.

    What is not width or depth is as in the target: latent attention, a dense first layer and a mixture of experts with
    a shared one in the others, chosen by groups with a bias, positions scaled by yarn. Its end tokens, and ids that no
    text has, are never sampled. What it answers hangs on all of its prompt, so that a mistake in a cache would be seen.
    A stand-in made earlier with the same arguments and library versions is used again; a folder that is no stand-in is
    left alone (ConfigError). MissingError where torch, transformers or the vocabulary is not installed.
    """
    if hidden_size % 16:
        raise ConfigError(f"a hidden_size of {hidden_size}", expected="a multiple of 16")
    config = _config(hidden_size, layers)
    asked = {
        "name": f"tiny-deepseek-v3-h{hidden_size}-l{layers}-seed{seed}",
        "what": "a stand-in of Kimi K2.6's text model: DeepSeek-V3's architecture, far narrower, with random weights",
        "architecture": "DeepseekV3ForCausalLM",
        "seed": seed,
        "end_token": "never sampled",
        "attention": f"queries {_SHARPER} times as long",
        "template": "the project's own, of no published model",
        "config": config,
        "versions": library_versions(),
    }
    return stand_in(folder, asked, lambda made: _save(made, config, seed))


def _config(hidden_size: int, layers: int) -> dict[str, Any]:
    """What is said to transformers' configuration class."""
    return {
        "vocab_size": qwen3_vocab.VOCAB_SIZE,
        "hidden_size": hidden_size,
        "intermediate_size": 2 * hidden_size,
        "moe_intermediate_size": hidden_size // 2,
        "num_hidden_layers": layers,
        # Few and short: a key and a value of every head are kept of every token of a trajectory.
        "num_attention_heads": 2,
        "num_key_value_heads": 2,
        "q_lora_rank": hidden_size // 2,
        "kv_lora_rank": _LATENT,
        "qk_rope_head_dim": _ROTATED,
        "qk_nope_head_dim": 32,
        "v_head_dim": 32,
        "first_k_dense_replace": 1,
        "n_routed_experts": 8,
        "n_shared_experts": 1,
        "num_experts_per_tok": 2,
        "n_group": 4,
        "topk_group": 2,
        "norm_topk_prob": True,
        "routed_scaling_factor": 2.5,
        # Not read by transformers; other servers choose the router by them.
        "scoring_func": "sigmoid",
        "topk_method": "noaux_tc",
        "num_nextn_predict_layers": 0,
        "max_position_embeddings": _POSITIONS,
        "rope_parameters": {
            "rope_type": "yarn",
            "rope_theta": 50_000.0,
            "factor": 64.0,
            "original_max_position_embeddings": _POSITIONS // 64,
            "beta_fast": 32.0,
            "beta_slow": 1.0,
            "mscale": 1.0,
            "mscale_all_dim": 1.0,
        },
        "tie_word_embeddings": False,
        "bos_token_id": END_OF_TEXT,
        "eos_token_id": END_OF_TURN,
        "pad_token_id": END_OF_TEXT,
    }


def _save(folder: Path, config: dict[str, Any], seed: int) -> None:
    import torch
    from transformers import DeepseekV3Config, DeepseekV3ForCausalLM, logging

    logging.disable_progress_bar()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = DeepseekV3ForCausalLM(DeepseekV3Config(**config))
        for gate in _gates(model):
            gate.e_score_correction_bias.normal_(std=_BIAS)
    _sharpen(model)
    never_sampled(model, slice(END_OF_TEXT, None))
    model.to(torch.bfloat16)
    for gate in _gates(model):
        gate.e_score_correction_bias = gate.e_score_correction_bias.float()
    model.save_pretrained(folder)
    save_qwen3_tokenizer(folder, TEMPLATE)
    (folder / "generation_config.json").write_text(json.dumps(_GENERATION, indent=2) + "\n", encoding="utf-8")


def _gates(model: DeepseekV3ForCausalLM) -> Iterator[DeepseekV3TopkRouter]:
    """The routers of a model, whose bias is stored as float32 in whatever type the weights are."""
    return (module for module in model.modules() if hasattr(module, "e_score_correction_bias"))


def _sharpen(model: DeepseekV3ForCausalLM) -> None:
    """Has attention choose: the mean over a whole prompt, which it would give, is the same for all prompts."""
    import torch

    with torch.no_grad():
        for layer in model.model.layers:
            layer.self_attn.q_b_proj.weight.mul_(_SHARPER)
            layer.self_attn.o_proj.weight[0] = 0  # the coordinate that the end tokens are set against stays as it is
