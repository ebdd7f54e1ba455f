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


def sampling(rules: TrajectoryRules, *, seed: int, max_new_tokens: int | None = None) -> Sampling:
    """How the rows are sampled by the round; ``max_new_tokens`` in place of its cap is a deviation to state."""
    rule = rules.sampling.value
    cap = rules.output_caps.accuracy.value if rules.output_caps is not None else None
    if max_new_tokens is None and cap is None:
        raise ValueError("the round sets no cap of an answer's tokens")
    return Sampling(
        temperature=rule.temperature,
        top_p=rule.top_p,
        top_k=rule.top_k,
        max_new_tokens=max_new_tokens or cap or 0,
        stop_token_ids=(),
        seed=seed,
    )
