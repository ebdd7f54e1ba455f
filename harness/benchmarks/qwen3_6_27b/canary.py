"""What an engine is asked before a leg: whether it calls tools as servers of agents do, and reads a tool's result."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from harness.benchmarks.base import CanaryFinding, Chats
from harness.benchmarks.qwen3_6_27b.bfcl.answers import Answer, read_answer
from harness.benchmarks.qwen3_6_27b.bfcl.requests import TOOL_CHOICE

FUNCTION: Final = "read_gauge"
STAND_IN_TOKENS: Final = 16
"""Tokens of each answer of a checkpoint that never ends one."""

_TOOLS: Final = [
    {
        "type": "function",
        "function": {
            "name": FUNCTION,
            "description": "Reads a gauge of the harbour and gives back the level in centimetres.",
            "parameters": {
                "type": "object",
                "properties": {"gauge": {"type": "string", "description": "The name of the gauge"}},
                "required": ["gauge"],
            },
        },
    }
]
_ASKED: Final = [
    {"role": "system", "content": "You keep the harbour's log. You look things up with the tools that you have."},
    {"role": "user", "content": f"How high is the water at the gauge 'north pier'? Call {FUNCTION} to find out."},
]
_CALL: Final = {
    "id": f"functions.{FUNCTION}:0",
    "type": "function",
    "function": {"name": FUNCTION, "arguments": json.dumps({"gauge": "north pier"})},
}
_TOLD: Final = [
    *_ASKED,
    {"role": "assistant", "tool_calls": [_CALL]},
    {"role": "tool", "content": "312", "tool_call_id": _CALL["id"]},
]
_SAID: Final = 200


@dataclass(frozen=True, slots=True, eq=False)
class ToolCanary:
    """A question that a tool answers, then the same with the tool's result. Satisfies
    :class:`harness.benchmarks.base.Canary`.

    A trained model must answer the first with a structured call: a server that was started without a parser of tool
    calls answers with the call's text, and every turn of the benchmark is lost. Of random weights only an answer is
    expected.
    """

    prompts: Chats
    trained: bool
    max_new_tokens: int
    name: str = "tool calls"

    @classmethod
    def make(cls, *, trained: bool, more: Mapping[str, Any], max_new_tokens: int) -> ToolCanary:
        """Words the chats; ``more`` are the fields that every chat has, ``max_new_tokens`` is the legs' cap."""
        told = ({"messages": said, "tools": _TOOLS, "tool_choice": TOOL_CHOICE, **more} for said in (_ASKED, _TOLD))
        return cls(Chats(tuple(told)), trained, max_new_tokens if trained else min(STAND_IN_TOKENS, max_new_tokens))

    def check(self, answers: Sequence[bytes]) -> list[CanaryFinding]:
        """What is wrong with the answers (whole replies), in order of the prompts."""
        if len(answers) != len(self.prompts):
            return [CanaryFinding(f"{len(answers)} answers to {len(self.prompts)} prompts", "one a prompt")]
        findings = []
        for number, data in enumerate(answers, start=1):
            answer = _read(data)
            found = answer if isinstance(answer, CanaryFinding) else None
            if isinstance(answer, Answer) and self.trained and number == 1:
                found = _call_finding(answer)
            if found is not None:
                findings.append(CanaryFinding(f"answer {number} of {len(answers)}: {found.what}", found.expected))
        return findings


def _read(data: bytes) -> Answer | CanaryFinding:
    try:
        answer = read_answer(data)
    except ValueError as error:
        return CanaryFinding(f"no reply ({error}): {data[:_SAID]!r}", "a reply's JSON")
    if answer.empty:
        return CanaryFinding("neither text nor reasoning nor a tool call", "an answer")
    return answer


def _call_finding(answer: Answer) -> CanaryFinding | None:
    expected = f"a structured call of {FUNCTION} whose arguments are a JSON object"
    if not answer.tool_calls:
        what = f"no tool call, and the text {answer.text[:_SAID]!a}"
        return CanaryFinding(what, f"{expected}: start the server with its parser of tool calls")
    function = answer.tool_calls[0].get("function") if isinstance(answer.tool_calls[0], dict) else None
    function = function if isinstance(function, dict) else {}
    if function.get("name") != FUNCTION:
        return CanaryFinding(f"a call of {function.get('name')!a}", expected)
    try:
        arguments = json.loads(function.get("arguments") or "")
    except (TypeError, ValueError):
        arguments = None
    if not isinstance(arguments, dict):
        return CanaryFinding(f"a call with the arguments {str(function.get('arguments'))[:_SAID]!a}", expected)
    return None
