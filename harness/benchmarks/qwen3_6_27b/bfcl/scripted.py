"""Replies to stand-in rows of which a stated share is right, to the row: they prove the scoring exactly."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

from harness.benchmarks.qwen3_6_27b.bfcl.subsets import language
from harness.benchmarks.qwen3_6_27b.bfcl.table import Json, Row, Table
from harness.benchmarks.shares import right_rows
from harness.errors import ConfigError

CHARS_A_TOKEN: Final = 4
"""About what a token of such text spans."""
_REFUSAL: Final = "None of the functions is of use here."
_FILLER: Final = "I look at what there is before I do anything. "


def replies(table: Table, shares: Mapping[str, float], *, seed: int, answer_tokens: int) -> list[bytes]:
    """A reply to each row, as engines log it: of a category's n rows ``round(share * n)`` are right, drawn by the seed.

    Rows of categories that ``shares`` does not name get about ``answer_tokens`` tokens of text. Raises UnknownName for
    a share of no category, ConfigError for what is no share and for right answers to a table that is no stand-in.
    """
    if shares and not table.stand_in:
        raise ConfigError("right answers to BFCL's own questions cannot be made up", expected="a stand-in data set")
    right = right_rows([row.category for row in table.rows], shares, seed)
    filler = {"content": words(answer_tokens)}

    def reply(number: int, row: Row) -> dict[str, Json]:
        if row.category not in shares:
            return filler
        return right_reply(row) if number in right else wrong_reply(row)

    return [json.dumps(reply(number, row)).encode() for number, row in enumerate(table.rows)]


def words(tokens: int) -> str:
    """About so many tokens of text."""
    return (_FILLER * (1 + tokens * CHARS_A_TOKEN // len(_FILLER)))[: tokens * CHARS_A_TOKEN]


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
