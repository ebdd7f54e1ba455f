"""The stand-in of Kimi's text model: what it is, how its files are laid out, when it is used again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness.engines.chats.qwen3_vocab import END_OF_TEXT, END_OF_TURN, VOCAB_SIZE
from harness.engines.checkpoint import STAND_IN, describe, digest
from harness.engines.tiny_deepseek_v3 import make_tiny_deepseek_v3
from harness.errors import ConfigError

pytestmark = [pytest.mark.torch, pytest.mark.qwen3vl, pytest.mark.usefixtures("one_thread")]


def content(folder: Path, name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / name).read_text(encoding="utf-8"))
    return found


def test_it_has_the_architecture_of_the_target(tiny_deepseek_v3: Path) -> None:
    config = content(tiny_deepseek_v3, "config.json")
    assert config["architectures"] == ["DeepseekV3ForCausalLM"]
    assert config["vocab_size"] == VOCAB_SIZE
    assert (config["kv_lora_rank"], config["qk_rope_head_dim"]) == (512, 64)
    assert config["v_head_dim"] != config["qk_head_dim"]
    assert config["n_shared_experts"] == config["first_k_dense_replace"] == 1
    assert 1 < config["topk_group"] < config["n_group"]
    assert (config["topk_method"], config["scoring_func"]) == ("noaux_tc", "sigmoid")
    assert config["rope_parameters"]["rope_type"] == "yarn"
    assert content(tiny_deepseek_v3, "generation_config.json")["eos_token_id"] == [END_OF_TURN, END_OF_TEXT]
    found = describe(tiny_deepseek_v3)
    assert (found.name, found.stand_in, found.weight_data_type) == ("tiny-deepseek-v3-h64-l2-seed7", True, "bf16")
    assert content(tiny_deepseek_v3, STAND_IN)["end_token"] == "never sampled"


def test_its_weights_lie_as_the_hub_has_them(tiny_deepseek_v3: Path) -> None:
    from safetensors import safe_open

    with safe_open(tiny_deepseek_v3 / "model.safetensors", "pt") as file:
        names = set(file.keys())
        assert "model.layers.0.mlp.gate_proj.weight" in names
        layer = "model.layers.1.mlp"
        experts = {f"{layer}.experts.{n}.{part}_proj.weight" for n in range(8) for part in ("gate", "up", "down")}
        assert experts <= names
        assert f"{layer}.shared_experts.up_proj.weight" in names
        bias = file.get_tensor(f"{layer}.gate.e_score_correction_bias")
    assert str(bias.dtype) == "torch.float32"
    assert 0.005 < float(bias.std()) < 0.05


def test_tokens_that_end_or_are_no_text_are_far_from_being_sampled(tiny_deepseek_v3: Path) -> None:
    import torch
    import transformers

    model = transformers.DeepseekV3ForCausalLM.from_pretrained(tiny_deepseek_v3, dtype=torch.float32).eval()
    ids = torch.randint(0, END_OF_TEXT, (1, 200), generator=torch.Generator().manual_seed(1))
    with torch.inference_mode():
        logits = model(input_ids=ids, use_cache=False).logits[0]
    assert bool((logits[:, END_OF_TEXT:].amax(1) < logits[:, :END_OF_TEXT].amin(1)).all())


def test_what_it_answers_hangs_on_all_of_its_prompt(tiny_deepseek_v3: Path) -> None:
    """Else no test that compares answers could see a mistake in what was kept of a prompt."""
    import torch
    import transformers

    model = transformers.DeepseekV3ForCausalLM.from_pretrained(tiny_deepseek_v3, dtype=torch.float32).eval()
    drawn = torch.Generator().manual_seed(1)
    changed, distinct = 0, 0
    for length in (20, 100, 300):
        for _ in range(4):
            ids = torch.randint(0, END_OF_TEXT, (1, length), generator=drawn)
            other = ids.clone()
            other[0, 3] = torch.randint(0, END_OF_TEXT, (), generator=drawn)
            first, second = (
                model.generate(each, attention_mask=torch.ones_like(each), do_sample=False, top_p=1, max_new_tokens=6)
                for each in (ids, other)
            )
            changed += not first[0, length:].equal(second[0, length:])
            distinct += len(set(first[0, length:].tolist()))
    assert changed >= 5, "of 12, one token far back being another"
    assert distinct >= 36, "of 72 tokens"


def test_it_is_used_again_and_is_another_for_another_seed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The files of the tokenizer, which are the same in all, take most of the time.
    monkeypatch.setattr("harness.engines.tiny_deepseek_v3.save_qwen3_tokenizer", lambda folder, template: None)
    first, same, other = (
        make_tiny_deepseek_v3(tmp_path / name, seed=seed, hidden_size=32, layers=2)
        for name, seed in (("a", 1), ("b", 1), ("c", 2))
    )
    weights = [(folder / "model.safetensors").read_bytes() for folder in (first, same, other)]
    assert weights[0] == weights[1] != weights[2]
    before = digest(first), (first / STAND_IN).stat().st_ino
    make_tiny_deepseek_v3(first, seed=1, hidden_size=32, layers=2)
    assert (digest(first), (first / STAND_IN).stat().st_ino) == before


def test_an_odd_width_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="a hidden_size of 40"):
        make_tiny_deepseek_v3(tmp_path / "x", seed=0, hidden_size=40)
