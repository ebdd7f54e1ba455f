"""Replies to stand-in rows of which a stated share is right, to the row: they prove the scoring exactly."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from typing import Final

from harness.benchmarks.qwen3_6_27b.bfcl.subsets import CATEGORIES, language
from harness.benchmarks.qwen3_6_27b.bfcl.table import Json, Row, Table
from harness.errors import ConfigError, UnknownName

_REFUSAL: Final = "None of the functions is of use here."


def replies(table: Table, shares: Mapping[str, float], *, seed: int) -> list[bytes]:
    """A reply to each row, as engines log it: of a category's n rows ``round(share * n)`` are right, drawn by the seed.

    Rows of categories that ``shares`` does not name are answered wrong. Raises UnknownName for a share of no category,
    ConfigError for what is no share and for a table that is no stand-in, whose right answers nobody can write down.
    """
    if not table.stand_in:
        raise ConfigError("right answers to BFCL's own questions cannot be made up", expected="a stand-in data set")
    right = _right_rows(table, shares, seed)
    return [
        json.dumps(right_reply(row) if i in right else wrong_reply(row)).encode() for i, row in enumerate(table.rows)
    ]


def right_reply(row: Row) -> dict[str, Json]:
    """A right answer to a stand-in row: the calls of its truth, or a refusal."""
    if not row.truth:
        return {"content": _REFUSAL}
    calls = [(name, said) for wanted in row.truth for name, said in wanted.items()]
    source_code = language(row.subset) != "PYTHON"
    return _calling(
        [
            (name, {key: json.dumps(values[0]) if source_code else values[0] for key, values in said.items()})
            for name, said in calls
        ]
    )


def wrong_reply(row: Row) -> dict[str, Json]:
    """A wrong answer: a call where none is of use, else a refusal."""
    return {"content": _REFUSAL} if row.wants_calls else _calling([(row.functions[0]["name"], {})])


def _calling(calls: list[tuple[str, dict[str, Json]]]) -> dict[str, Json]:
    return {
        "content": "",
        "tool_calls": [
            {
                "id": f"call_{number}",
                "type": "function",
                "function": {"name": name.replace(".", "_"), "arguments": json.dumps(said)},
            }
            for number, (name, said) in enumerate(calls)
        ],
    }


def _right_rows(table: Table, shares: Mapping[str, float], seed: int) -> set[int]:
    right: set[int] = set()
    for category, share in shares.items():
        if category not in CATEGORIES:
            raise UnknownName("subset", category, CATEGORIES, where="the shares of right answers")
        if not 0 <= share <= 1:
            raise ConfigError(f"{share} is not a share", where=f"the share of {category}", expected="0 to 1")
        rows = [number for number, row in enumerate(table.rows) if row.category == category]
        rng = random.Random(f"{seed}/right/{category}")  # noqa: S311 - a script, not a secret
        right.update(rng.sample(rows, round(share * len(rows))))
    return right
