"""Answers to made-up questions of which is known how they come out: a checker that judges otherwise scores nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from harness.benchmarks.qwen3_6_27b.bfcl.answers import Answer
from harness.benchmarks.qwen3_6_27b.bfcl.environment import MEND, Environment
from harness.benchmarks.qwen3_6_27b.bfcl.grading import grade
from harness.benchmarks.qwen3_6_27b.bfcl.table import Json, Row
from harness.errors import MissingError


@dataclass(frozen=True, slots=True)
class Known:
    """The calls that are made of a question, and whether they are right."""

    name: str
    row: Row
    calls: tuple[tuple[str, Json], ...]
    right: bool


def _row(subset: str, parameters: dict[str, Json], required: list[str], truth: list[Json] | None) -> Row:
    function = {
        "name": "garden.water",
        "description": "Waters a bed of the garden.",
        "parameters": {"type": "dict", "properties": parameters, "required": required},
    }
    messages = [{"role": "user", "content": "Water bed 3 with 1.5 litres."}]
    return Row(f"self_test_{subset}", subset, messages, [{"type": "function"}], [function], truth)


_PYTHON: Final[dict[str, Json]] = {
    "bed": {"type": "integer", "description": "Which bed"},
    "litres": {"type": "float", "description": "How much"},
    "mode": {"type": "string", "description": "How"},
}
_ACCEPTED: Final[Json] = {"bed": [3], "litres": [1.5, 2.0], "mode": ["drip", ""]}
_SIMPLE: Final = _row("simple_python", _PYTHON, ["bed", "litres"], [{"garden.water": _ACCEPTED}])
_PARALLEL: Final = _row(
    "parallel", _PYTHON, ["bed"], [{"garden.water": {"bed": [bed], "litres": [1.5]}} for bed in (3, 4)]
)
_JAVA: Final = _row(
    "simple_java",
    {"bed": {"type": "integer", "description": "Which"}, "dry": {"type": "boolean", "description": "Whether"}},
    ["bed", "dry"],
    [{"garden.water": {"bed": [3], "dry": [True]}}],
)
_JAVASCRIPT: Final = _row(
    "simple_javascript",
    {"bed": {"type": "integer", "description": "Which"}},
    ["bed"],
    [{"garden.water": {"bed": [3]}}],
)
_NONE: Final = _row("irrelevance", _PYTHON, ["bed"], None)
_WATER: Final = "garden_water"
_RIGHT: Final = {"bed": 3, "litres": 1.5}

KNOWN: Final = (
    Known("a right call", _SIMPLE, ((_WATER, _RIGHT),), True),
    Known("a whole number for one with a point", _SIMPLE, ((_WATER, {"bed": 3, "litres": 2}),), True),
    Known("a dot in the name", _SIMPLE, (("garden.water", _RIGHT),), False),
    Known("another function", _SIMPLE, (("garden_mow", _RIGHT),), False),
    Known("another value", _SIMPLE, ((_WATER, {"bed": 4, "litres": 1.5}),), False),
    Known("a text for a number", _SIMPLE, ((_WATER, {"bed": "3", "litres": 1.5}),), False),
    Known("an argument too few", _SIMPLE, ((_WATER, {"bed": 3}),), False),
    Known("an argument too many", _SIMPLE, ((_WATER, {**_RIGHT, "hose": 1}),), False),
    Known("arguments that are null", _SIMPLE, ((_WATER, None),), False),
    Known("no call", _SIMPLE, (), False),
    Known("a call twice", _SIMPLE, ((_WATER, _RIGHT), (_WATER, _RIGHT)), False),
    Known("two calls in any order", _PARALLEL, ((_WATER, {"bed": 4, "litres": 1.5}), (_WATER, _RIGHT)), True),
    Known("one call for two", _PARALLEL, ((_WATER, _RIGHT), (_WATER, _RIGHT)), False),
    Known("Java's values as source code", _JAVA, ((_WATER, {"bed": "3", "dry": "true"}),), True),
    Known("Java's values as the tool says", _JAVA, ((_WATER, {"bed": 3, "dry": True}),), False),
    Known("JavaScript's values as source code", _JAVASCRIPT, ((_WATER, {"bed": "3"}),), True),
    Known("JavaScript's values as the tool says", _JAVASCRIPT, ((_WATER, {"bed": 3}),), False),
    Known("nothing where nothing is of use", _NONE, (), True),
    Known("a call where nothing is of use", _NONE, ((_WATER, _RIGHT),), False),
)


def self_test(environment: Environment) -> list[str]:
    """Has them all judged; one line for each. MissingError where one comes out otherwise, or none can be judged."""
    rows = {number: known.row for number, known in enumerate(KNOWN)}
    verdicts = grade(rows, {number: _answer(known) for number, known in enumerate(KNOWN)}, environment)
    lines = []
    for number, known in enumerate(KNOWN):
        verdict = verdicts[number]
        if verdict.right != known.right:
            raise MissingError(
                f"bfcl-eval's self test failed: {known.name} came out as {_word(verdict.right)} ({verdict.why})",
                where=environment.python,
                expected=_word(known.right),
                mend=f"nothing is scored with that environment until it judges right; {MEND}",
            )
        lines.append(f"{known.name}: {_word(verdict.right)}")
    return lines


def _answer(known: Known) -> Answer:
    return Answer(tool_calls=tuple({"function": {"name": name, "arguments": said}} for name, said in known.calls))


def _word(right: bool) -> str:
    return "right" if right else "wrong"
