"""The calls in an answer, found where the reference finds them, so that both hand the checker the same.

Tool calls come first, then a JSON list of objects with ``name`` and ``arguments`` in the text, then calls written out
in the text. Source: mlcommons/endpoints evaluation/extractor.py (FunctionCallExtractor) and bfcl_v4_scorer.py.

Where the reference would stop for an answer (arguments that are no object, values that are no JSON) no call of it can
be right: such an answer is wrong, and says why.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from harness.benchmarks.qwen3_6_27b.bfcl.answers import Answer
from harness.benchmarks.qwen3_6_27b.bfcl.table import Json
from harness.benchmarks.qwen3_6_27b.bfcl.written_calls import written_calls

Call: TypeAlias = tuple[str, dict[str, Json]]
"""A function's name and its arguments."""

_TIMES_ENCODED: Final = 2
"""Arguments of a tool call may be JSON in JSON; the reference decodes twice."""


@dataclass(frozen=True, slots=True)
class Found:
    """``structured`` tells calls in the form of tool calls. ``problem`` says why no verdict need be asked for."""

    calls: tuple[Call, ...] = ()
    structured: bool = False
    problem: str = ""


class _NoCall(Exception):
    """A call that cannot be checked."""


def find(answer: Answer) -> Found:
    """The calls of an answer; none where it has none."""
    text = _compact(answer.tool_calls) if answer.tool_calls else answer.text.strip()
    said = _loaded(text)
    structured = _tool_calls(said)
    try:
        if structured is not None:
            return Found(tuple(_call(*each, _TIMES_ENCODED) for each in structured), structured=True)
        listed = _listed(said)
        if listed is not None:
            return Found(tuple(_call(*each, 1) for each in listed))
        return Found(tuple(written_calls(text)))
    except _NoCall as error:
        return Found(structured=structured is not None, problem=str(error))
    except (TypeError, RecursionError, MemoryError) as error:
        return Found(problem=f"a call in the text whose values are no JSON: {error}")


def _compact(tool_calls: Sequence[Json]) -> str:
    return json.dumps(list(tool_calls), ensure_ascii=False, separators=(",", ":"))


def _loaded(text: str) -> Json:
    """What a text is as JSON; None where it is none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _tool_calls(said: Json) -> list[tuple[Json, Json]] | None:
    """Names and arguments of a list of tool calls, and of nothing else."""
    if not isinstance(said, list) or not said:
        return None
    functions = [each.get("function") if isinstance(each, dict) else None for each in said]
    if not all(isinstance(function, dict) for function in functions):
        return None
    return [
        (function.get("name", ""), function.get("arguments", "{}")) for function in functions if function is not None
    ]


def _listed(said: Json) -> list[tuple[Json, Json]] | None:
    """Names and arguments of a list of objects that have a name."""
    if not isinstance(said, list) or not said or not all(isinstance(each, dict) and "name" in each for each in said):
        return None
    return [(each["name"], each.get("arguments", {})) for each in said]


def _call(name: Json, arguments: Json, times: int) -> Call:
    if not isinstance(name, str):
        raise _NoCall(f"a call without a name: it is {_kind(name)}")
    for _ in range(times):
        if isinstance(arguments, str):
            arguments = _decoded(arguments)
    if not isinstance(arguments, dict):
        raise _NoCall(f"arguments that are no object: those of {name} are {_kind(arguments)}")
    return name, arguments


def _decoded(arguments: str) -> Json:
    """Arguments in JSON. What is no JSON counts as no arguments, which a function that wants none accepts."""
    try:
        return json.loads(arguments)
    except ValueError:
        return {}
    except RecursionError:
        raise _NoCall("arguments nested too deep") from None


def _kind(value: Json) -> str:
    """What a value of JSON is."""
    if isinstance(value, bool):
        return "true or false"
    kinds = {str: "a text", list: "a list", dict: "an object", type(None): "null"}
    return kinds.get(type(value), "a number")
