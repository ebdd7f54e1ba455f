"""Reader of the flat JSONL: one row a message, each checked by itself.

The format is that of mlcommons/endpoints ea332753 (``dataset_manager/agentic_inference_dataset.py`` and its schema).
Whatever that client refuses is refused here; what it would send otherwise than the format says (results of tools in an
assistant's row, an id that a header cannot carry) is refused too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, get_args

import orjson

from harness.benchmarks.qwen3_6_27b import fields
from harness.benchmarks.qwen3_6_27b.fields import Kind
from harness.errors import DatasetError

Role: TypeAlias = Literal["user", "assistant", "tool"]
ROLES: Final[tuple[Role, ...]] = get_args(Role)

METADATA: Final = "dataset_metadata"
"""The ``_type`` of a row that says something of the file and is no message."""

_ID: Final = re.compile(r"[!-~](?:[ -~]*[!-~])?")
_LIKE_A_REPEAT: Final = re.compile(r"__repeat_\d+$")
_MOST_SECONDS: Final = 2**63 / 1e9

_KEY: Final = frozenset({"conversation_id", "turn", "role", "_type"})
_ASKED: Final = {"system": fields.TEXT, "delay_seconds": fields.NOT_NEGATIVE, **fields.ROW}
_READ: Final[Mapping[Role, Mapping[str, Kind]]] = {
    "user": {"content": fields.FILLED_TEXT, "name": fields.TEXT, **_ASKED},
    "assistant": {
        "content": fields.TEXT,
        "name": fields.TEXT,
        "reasoning_content": fields.TEXT,
        "tool_calls": fields.OBJECTS,
        "intent_codes": Kind("a list", lambda value: isinstance(value, list)),
        "system": fields.TEXT,
    },
    "tool": {"tool_results": fields.OBJECTS, **_ASKED},
}
_NOT_THERE: Final[Mapping[Role, tuple[str, ...]]] = {
    "user": ("tool_calls", "tool_results", "reasoning_content"),
    "assistant": ("tool_results",),
    "tool": (),
}
"""What the mlcommons client sends although messages of the role have no such thing."""


@dataclass(frozen=True, slots=True)
class Row:
    """One message of a conversation as it stands in the file: ``said`` holds its fields, those that are null left out.

    ``where`` names file, line, conversation and turn, for errors. ``unread`` are fields that mean nothing in such rows.
    """

    where: str
    conversation: str
    turn: int
    role: Role
    said: Mapping[str, Any]
    unread: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Metadata:
    """A row that says something of the file."""

    said: Mapping[str, Any]


def read_rows(path: Path) -> Iterator[Row | Metadata]:
    """The rows of a file in order; empty lines are none. Raises DatasetError for the first that is wrong."""
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                if line.strip():
                    yield parse_row(line, f"{path}, line {number}")
    except OSError as error:
        raise DatasetError(f"the trajectories cannot be read: {error.strerror}", where=path) from None


def parse_row(line: bytes, where: str) -> Row | Metadata:
    """One line of the file. Raises DatasetError."""
    try:
        found = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise DatasetError(f"the row is no JSON: {error}", where=where, expected="one JSON object a line") from None
    if not isinstance(found, dict):
        raise _wrong(where, "the row is no JSON object", "one JSON object a line")
    said = {name: value for name, value in found.items() if value is not None}
    if said.get("_type") == METADATA:
        return Metadata(said)
    conversation = _conversation(said.get("conversation_id"), where)
    where = f"{where}, conversation {conversation!r}"
    turn, role = _turn(said.get("turn"), where), said.get("role")
    where = f"{where}, turn {turn}"
    if role not in ROLES:
        raise _wrong(where, f"the row's role is {_short(role)}", f"one of {', '.join(ROLES)}")
    _check_fields(role, said, where)
    return Row(where, conversation, turn, role, said, tuple(sorted(said.keys() - _READ[role].keys() - _KEY)))


def _conversation(value: object, where: str) -> str:
    if not isinstance(value, str) or not _ID.fullmatch(value):
        raise _wrong(
            where,
            f"the row's conversation_id is {_short(value)}",
            "a text of printable ASCII that neither begins nor ends with a blank: it goes into a header",
        )
    if _LIKE_A_REPEAT.search(value):
        raise _wrong(
            where,
            f"the row's conversation_id is {_short(value)}",
            "an id that does not end as those of repeated trajectories do (__repeat_2)",
        )
    return value


def _turn(value: object, where: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise _wrong(where, f"the row's turn is {_short(value)}", fields.COUNT.said)
    return value


def _check_fields(role: Role, said: Mapping[str, Any], where: str) -> None:
    misplaced = [name for name in _NOT_THERE[role] if name in said]
    if misplaced:
        raise _wrong(where, f"a row of role {role} has {', '.join(misplaced)}", f"{role} rows without")
    for name, kind in _READ[role].items():
        if name in said and not kind.holds(said[name]):
            raise _wrong(where, f"{name} is {_short(said[name])}", kind.said)
    if role == "user" and "content" not in said:
        raise _wrong(where, "a user row has no content", fields.FILLED_TEXT.said)
    if role == "tool" and "tool_results" not in said:
        raise _wrong(where, "a tool row has no tool_results", fields.OBJECTS.said)
    if role == "assistant" and not said.get("content") and "tool_calls" not in said:
        raise _wrong(where, "an assistant row has neither content nor tool_calls", "one of them, not empty")
    for place, call in enumerate(said.get("tool_calls", ()) if role == "assistant" else ()):
        _check_call(call, f"{where}, tool_calls[{place}]")
    for place, result in enumerate(said.get("tool_results", ()) if role == "tool" else ()):
        _check_result(result, f"{where}, tool_results[{place}]")
    if role != "assistant" and said.get("delay_seconds", 0) >= _MOST_SECONDS:
        raise _wrong(where, f"delay_seconds is {_short(said['delay_seconds'])}", "seconds that a clock can count")


def _check_call(call: Mapping[str, Any], where: str) -> None:
    function = call.get("function")
    if not isinstance(function, dict):
        raise _wrong(where, f"function is {_short(function)}", fields.OBJECT.said)
    wanted = {
        "id": (call.get("id"), fields.FILLED_TEXT),
        "type": (call.get("type"), Kind("'function'", lambda value: value == "function")),
        "function.name": (function.get("name"), fields.FILLED_TEXT),
        "function.arguments": (
            function.get("arguments"),
            Kind("an object, or its JSON as a text", lambda value: isinstance(value, str | dict)),
        ),
    }
    _check_each(wanted, where)


def _check_result(result: Mapping[str, Any], where: str) -> None:
    _check_each(
        {
            "tool_call_id": (result.get("tool_call_id"), fields.FILLED_TEXT),
            "content": (result.get("content"), fields.TEXT),
        },
        where,
    )


def _check_each(wanted: Mapping[str, tuple[object, Kind]], where: str) -> None:
    for name, (value, kind) in wanted.items():
        if not kind.holds(value):
            raise _wrong(where, f"{name} is {_short(value)}", kind.said)


def delay_ns(said: Mapping[str, Any]) -> int:
    """How long a client waits before it sends such a row, in nanoseconds."""
    return round(float(said.get("delay_seconds", 0)) * 1e9)


def _short(value: object) -> str:
    shown = "absent" if value is None else repr(value)
    return shown if len(shown) <= 60 else shown[:57] + "..."


def _wrong(where: str, what: str, expected: str) -> DatasetError:
    return DatasetError(what, where=where, expected=expected, mend="mend the row, or fetch the file again")
