"""The chats of BFCL's rows, and how they are sampled."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from harness.benchmarks.qwen3_6_27b.bfcl.table import Json, Row, Table
from harness.engines.base import Sampling
from harness.rules.benchmark import TrajectoryRules

TOOL_CHOICE: Final = "auto"
"""Said although it is the default: servers were seen that wait for ever where tools come without it."""


def body(row: Row) -> dict[str, Json]:
    """What is asked of a row, as a :class:`~harness.engines.bodies.BodyStore` holds it."""
    return {"messages": row.messages, "tools": row.tools, "tool_choice": TOOL_CHOICE}


def bodies(table: Table) -> Iterator[dict[str, Json]]:
    """The chats of a table, in order."""
    return map(body, table.rows)


def sampling(rules: TrajectoryRules, *, seed: int, max_new_tokens: int) -> Sampling:
    """How the rows are sampled: as the round says, with :func:`round_seed` and :func:`cap`, or others."""
    rule = rules.sampling.value
    return Sampling(
        temperature=rule.temperature,
        top_p=rule.top_p,
        top_k=rule.top_k,
        max_new_tokens=max_new_tokens,
        stop_token_ids=(),
        seed=seed,
    )


def round_seed(rules: TrajectoryRules) -> int:
    """The seed that the round has every request of this benchmark carry. ValueError where it has none."""
    params = rules.endpoints_model_params
    if params is None or "seed" not in params.value.required:
        raise ValueError("the round sets no seed of requests")
    return int(params.value.required["seed"])


def cap(rules: TrajectoryRules) -> int:
    """How many tokens an answer may have by the round. ValueError where it does not say."""
    if rules.output_caps is None:
        raise ValueError("the round sets no cap of an answer's tokens")
    return rules.output_caps.accuracy.value
