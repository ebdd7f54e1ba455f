"""What the endpoints client is told of a benchmark of trajectories, and which script of its own then objects."""

from __future__ import annotations

from typing import Any, Final

from harness.rules import RulePack, TrajectoryRules
from harness.rules.benchmark import BfclSampling

SEEDS: Final = "ENDPOINTS-SEEDS"
"""The ruling on the seeds of such a run."""

_SCORER: Final = "eval_method"
_TRAJECTORIES: Final = "num_trajectories_to_issue"
_TIMEOUT: Final = "turn_timeout_s"
_WHOLE_PERCENT: Final = 100


def replay(rules: TrajectoryRules, trajectories: int | None) -> dict[str, Any]:
    """How the recorded trajectories are asked and scored; ``trajectories`` in place of the round's number."""
    told = _ruled(rules)
    scorer = told.pop(_SCORER)
    if trajectories is not None:
        told[_TRAJECTORIES] = trajectories
    return {"accuracy_config": {_SCORER: scorer}, "agentic_inference": told}


def questions(rules: TrajectoryRules, sampling: BfclSampling | None) -> dict[str, Any]:
    """Which questions of BFCL are asked; ``sampling`` in place of the round's."""
    chosen = rules.accuracy_sampling.value if sampling is None else sampling
    return {"categories": list(rules.accuracy_subsets.value), **chosen.model_dump()}


def all_of_them(rules: TrajectoryRules) -> BfclSampling:
    """The sampling of a table that holds what is asked and no more: all of each category."""
    ruled = rules.accuracy_sampling.value
    return ruled.model_copy(update={"category_sample_pct": dict.fromkeys(ruled.category_sample_pct, _WHOLE_PERCENT)})


def turn_timeout_s(rules: TrajectoryRules) -> float:
    """After how long the client gives a turn up, and what is left of its trajectory."""
    return float(_ruled(rules)[_TIMEOUT])


def disagreement(pack: RulePack) -> str:
    """Which official texts want other seeds than those that are written: one run cannot please both."""
    ruling = next(one for one in pack.rulings if one.id == SEEDS)
    return (
        f"seeds: {ruling.value}, which the submission checker wants ({ruling.follows.source}); the client's own "
        f"scripts/check_compliance.py wants {ruling.other.says} and will say FAIL to seed==42 ({ruling.other.source})"
    )


def _ruled(rules: TrajectoryRules) -> dict[str, Any]:
    if rules.endpoints_agentic is None:
        raise ValueError("the round does not say how the client replays trajectories")
    return dict(rules.endpoints_agentic.value)
