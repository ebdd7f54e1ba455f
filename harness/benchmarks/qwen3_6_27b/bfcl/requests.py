"""The chats of BFCL's rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from harness.benchmarks.qwen3_6_27b.bfcl.table import Json, Row, Table

TOOL_CHOICE: Final = "auto"
"""Said although it is the default: servers were seen that wait for ever where tools come without it."""


def body(row: Row) -> dict[str, Json]:
    """What is asked of a row, as a :class:`~harness.engines.bodies.BodyStore` holds it."""
    return {"messages": row.messages, "tools": row.tools, "tool_choice": TOOL_CHOICE}


def bodies(table: Table, more: Mapping[str, Json] | None = None) -> Iterator[dict[str, Json]]:
    """The chats of a table, in order. ``more`` are fields that each has beside, such as ``chat_template_kwargs``."""
    return ({**body(row), **(more or {})} for row in table.rows)
