"""The models' facts beside transformers' own configurations, and what a token takes in the KV cache."""

from __future__ import annotations

import importlib

import pytest
from pydantic import ValidationError

from harness import rules
from harness.rules.models import ModelFacts, find

GPT_OSS = "openai/gpt-oss-120b"


def facts(name: str) -> ModelFacts:
    found = find(name)
    assert found is not None
    return found


def test_the_benchmarks_models_have_facts() -> None:
    for benchmark in ("gpt-oss-120b", "qwen3-vl-235b-a22b"):
        assert find(rules.load("v6.1").benchmark(benchmark).model.value) is not None
    assert find("nobody/nothing") is None


def test_the_vocabulary_is_the_rule_packs() -> None:
    assert facts(GPT_OSS).vocabulary == rules.load("v6.1").token_benchmark("gpt-oss-120b").vocab_size.value


@pytest.mark.torch
def test_gpt_oss_is_as_transformers_has_it() -> None:
    config = importlib.import_module("transformers").GptOssConfig()
    ours = facts(GPT_OSS)
    assert ours.layers == config.num_hidden_layers
    assert ours.window_layers == config.layer_types.count("sliding_attention")
    assert ours.window == config.sliding_window
    assert (ours.heads, ours.kv_heads, ours.head_dim) == (
        config.num_attention_heads,
        config.num_key_value_heads,
        config.head_dim,
    )
    assert (ours.hidden, ours.experts, ours.vocabulary, ours.max_positions) == (
        config.hidden_size,
        config.num_local_experts,
        config.vocab_size,
        config.max_position_embeddings,
    )


def test_heads_are_divided_and_then_repeated() -> None:
    ours = facts(GPT_OSS)
    assert [ours.kv_elements(tensor) for tensor in (1, 2, 8, 16)] == [1024, 512, 128, 128]


def test_a_latent_vector_is_on_each_gpu() -> None:
    kimi = facts("nvidia/Kimi-K2.6-NVFP4")
    assert kimi.kv_elements(1) == kimi.kv_elements(8) == 576


@pytest.mark.parametrize("change", [{"window": None}, {"window_layers": 0}, {"window_layers": 99}, {"layers": 0}])
def test_shapes_that_are_none(change: dict[str, int | None]) -> None:
    with pytest.raises(ValidationError):
        ModelFacts.model_validate(facts(GPT_OSS).model_dump() | change)
