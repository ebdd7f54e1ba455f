"""The stand-in of Qwen3-VL: what it is, how its files are laid out, when it is used again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness.engines.chats import qwen3_vl
from harness.engines.chats.qwen3_vocab import END_OF_TEXT, END_OF_TURN, VOCAB_SIZE
from harness.engines.checkpoint import STAND_IN, describe, digest
from harness.engines.tiny_qwen3_vl import make_tiny_qwen3_vl
from harness.errors import ConfigError
from tests.engines.chats.pictures import picture_chat

pytestmark = [pytest.mark.torch, pytest.mark.qwen3vl, pytest.mark.usefixtures("one_thread")]


def content(folder: Path, name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / name).read_text(encoding="utf-8"))
    return found


def test_it_has_the_architecture_of_the_target(tiny_qwen3_vl: Path) -> None:
    config = content(tiny_qwen3_vl, "config.json")
    assert config["architectures"] == ["Qwen3VLMoeForConditionalGeneration"]
    assert config["text_config"]["vocab_size"] == VOCAB_SIZE
    assert sum(config["text_config"]["rope_parameters"]["mrope_section"]) * 2 == config["text_config"]["head_dim"]
    assert config["text_config"]["norm_topk_prob"] is True
    assert config["vision_config"]["deepstack_visual_indexes"] == [0, 1]
    assert content(tiny_qwen3_vl, "generation_config.json")["eos_token_id"] == [END_OF_TURN, END_OF_TEXT]
    found = describe(tiny_qwen3_vl)
    assert (found.name, found.stand_in, found.weight_data_type) == ("tiny-qwen3-vl-h64-l2-seed7", True, "bf16")
    assert content(tiny_qwen3_vl, STAND_IN)["end_token"] == "never sampled"


def test_its_experts_lie_as_the_hub_has_them(tiny_qwen3_vl: Path) -> None:
    import transformers
    from safetensors import safe_open

    text = content(tiny_qwen3_vl, "config.json")["text_config"]
    width, inner, experts = text["hidden_size"], text["moe_intermediate_size"], text["num_local_experts"]
    with safe_open(tiny_qwen3_vl / "model.safetensors", "pt") as file:
        name = "model.language_model.layers.1.mlp.experts"
        stored = file.get_tensor(f"{name}.gate_up_proj")
        assert tuple(stored.shape) == (experts, width, 2 * inner)
        assert tuple(file.get_slice(f"{name}.down_proj").get_shape()) == (experts, inner, width)
    model = transformers.Qwen3VLMoeForConditionalGeneration.from_pretrained(tiny_qwen3_vl)
    loaded = model.model.language_model.layers[1].mlp.experts.gate_up_proj
    assert loaded.detach().equal(stored.transpose(1, 2).to(loaded.dtype))


def test_its_tokenizer_and_template_give_the_ids_of_a_chat(tiny_qwen3_vl: Path) -> None:
    import transformers

    asked = picture_chat(300, 200, text="\u00c9t\u00e9 'S  <|im_end|>\n\n x\U0001f600")
    asked["messages"].append({"role": "assistant", "content": "A key."})
    asked["messages"].append({"role": "user", "content": "Which?"})
    tokenizer = transformers.AutoTokenizer.from_pretrained(tiny_qwen3_vl)
    read = qwen3_vl.read(asked)
    text = tokenizer.apply_chat_template(asked["messages"], tokenize=False, add_generation_prompt=True)
    text = text.replace("<|image_pad|>", "<|image_pad|>" * read.grid.tokens)
    assert tokenizer(text)["input_ids"] == read.ids
    assert (tokenizer.eos_token, tokenizer.pad_token, len(tokenizer)) == ("<|im_end|>", "<|endoftext|>", 151_669)


def test_tokens_that_end_or_are_no_text_are_far_from_being_sampled(tiny_qwen3_vl: Path) -> None:
    import torch
    import transformers

    model = transformers.Qwen3VLMoeForConditionalGeneration.from_pretrained(tiny_qwen3_vl, dtype=torch.float32).eval()
    ids = torch.randint(0, END_OF_TEXT, (1, 200), generator=torch.Generator().manual_seed(1))
    with torch.inference_mode():
        logits = model(input_ids=ids, use_cache=False).logits[0]
    assert bool((logits[:, END_OF_TEXT:].amax(1) < logits[:, :END_OF_TEXT].amin(1)).all())


def test_it_is_used_again_and_is_another_for_another_seed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The files of the tokenizer, which are the same in all, take most of the time.
    monkeypatch.setattr("harness.engines.tiny_qwen3_vl.save_qwen3_tokenizer", lambda folder, template: None)
    first, same, other = (
        make_tiny_qwen3_vl(tmp_path / name, seed=seed, hidden_size=32, layers=1)
        for name, seed in (("a", 1), ("b", 1), ("c", 2))
    )
    weights = [(folder / "model.safetensors").read_bytes() for folder in (first, same, other)]
    assert weights[0] == weights[1] != weights[2]
    before = digest(first), (first / STAND_IN).stat().st_ino
    make_tiny_qwen3_vl(first, seed=1, hidden_size=32, layers=1)
    assert (digest(first), (first / STAND_IN).stat().st_ino) == before


def test_a_width_that_its_heads_do_not_divide_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="a hidden_size of 40"):
        make_tiny_qwen3_vl(tmp_path / "x", seed=0, hidden_size=40)
