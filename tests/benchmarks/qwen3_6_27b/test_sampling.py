from __future__ import annotations

import pytest

from harness.benchmarks.qwen3_6_27b.files import NAME
from harness.benchmarks.qwen3_6_27b.sampling import asked_by_run, rules_of, sampling
from harness.errors import UnknownName
from harness.rules import load
from tests.benchmarks.qwen3_6_27b.made import PACK, RULES


def test_the_round_s_sampling_is_the_client_s() -> None:
    found, asked = sampling(RULES), asked_by_run(RULES, "m")
    assert (found.temperature, found.seed, found.max_new_tokens) == (
        asked["temperature"],
        asked["seed"],
        asked["max_completion_tokens"],
    )
    assert RULES.output_caps is not None
    assert found.max_new_tokens == RULES.output_caps.performance.value
    assert asked["model"] == "m"
    assert asked["stream"] is True


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
