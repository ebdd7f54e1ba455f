from __future__ import annotations

import pytest

from harness.benchmarks.qwen3_6_27b.files import NAME
from harness.benchmarks.qwen3_6_27b.sampling import rules_of, sampling
from harness.errors import UnknownName
from harness.rules import load
from tests.benchmarks.qwen3_6_27b.made import PACK, RULES


def test_the_round_s_sampling_is_the_client_s() -> None:
    found = sampling(RULES)
    assert RULES.endpoints_model_params is not None
    assert RULES.output_caps is not None
    required = RULES.endpoints_model_params.value.required
    assert (found.temperature, found.seed) == (required["temperature"], required["seed"])
    assert found.max_new_tokens == required["max_new_tokens"] == RULES.output_caps.performance.value


def test_a_cap_of_one_s_own() -> None:
    assert sampling(RULES, max_new_tokens=32).max_new_tokens == 32
    assert sampling(RULES, max_new_tokens=32).seed == sampling(RULES).seed


def test_the_rules_of_a_round() -> None:
    assert rules_of(PACK) is RULES
    with pytest.raises(UnknownName):
        rules_of(load("v6.0"))
    other = PACK.model_copy(update={"benchmarks": {NAME: PACK.benchmarks["gpt-oss-120b"]}})
    with pytest.raises(TypeError, match="no benchmark of trajectories"):
        rules_of(other)


def test_a_round_that_does_not_say_how() -> None:
    with pytest.raises(ValueError, match="does not say how"):
        sampling(RULES.model_copy(update={"endpoints_model_params": None}))
