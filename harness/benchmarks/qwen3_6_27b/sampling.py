"""How turns of trajectories and BFCL's questions are sampled: as the round says, all of them alike."""

from __future__ import annotations

from harness.benchmarks.qwen3_6_27b.files import NAME
from harness.engines.base import Sampling
from harness.rules import RulePack, TrajectoryRules


def rules_of(pack: RulePack) -> TrajectoryRules:
    """The rules of this benchmark in a round. UnknownName where the round has none."""
    found = pack.benchmark(NAME)
    if not isinstance(found, TrajectoryRules):
        raise TypeError(f"{NAME} is no benchmark of trajectories")
    return found


def sampling(rules: TrajectoryRules, *, max_new_tokens: int | None = None) -> Sampling:
    """The round's sampling with its seed; ``max_new_tokens`` in place of its cap is a deviation to state."""
    if rules.endpoints_model_params is None:
        raise ValueError(f"the round does not say how {NAME} is sampled")
    rule, required = rules.sampling.value, rules.endpoints_model_params.value.required
    return Sampling(
        temperature=rule.temperature,
        top_p=rule.top_p,
        top_k=rule.top_k,
        max_new_tokens=required["max_new_tokens"] if max_new_tokens is None else max_new_tokens,
        stop_token_ids=(),
        seed=required["seed"],
    )
