"""A problem with its tests, and when an answer to a test is right.

LiveCodeBench decides what is right (lcb_runner/evaluation/testing_util.py); these functions say the same.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Any, TypeAlias

Json: TypeAlias = Any
"""What json.loads gives."""


@dataclass(frozen=True, slots=True)
class Test:
    """Input and expected output, as text: of a program what it reads and prints, of a function JSON."""

    __test__ = False  # pytest takes the name for one of its own

    given: str
    expected: str


@dataclass(frozen=True, slots=True)
class Problem:
    """One problem. ``function`` is the name to call, None where the solution is a program from stdin to stdout."""

    id: str
    function: str | None
    tests: tuple[Test, ...]

    def __post_init__(self) -> None:
        if not self.tests:
            raise ValueError(f"problem {self.id} has no tests")
        if self.function is not None:
            for test in self.tests:
                _expected(test)

    def accepts(self, test: Test, reply: Mapping[str, Json]) -> bool:
        """Whether what solve.py replied is the right answer to a test."""
        if self.function is None:
            return same_text(str(reply.get("output", "")), test.expected)
        return bool(decoded(reply.get("value")) == _expected(test))


def _expected(test: Test) -> Json:
    # int() refuses more digits than some thousand; Decimal does not.
    return json.loads(test.expected, parse_int=lambda digits: int(Decimal(digits)))


def same_text(printed: str, expected: str) -> bool:
    """Whether as many lines were printed, each equal but for blanks around it, or equal as decimal numbers."""
    found, wanted = _lines(printed), _lines(expected)
    return len(found) == len(wanted) and all(map(_same_line, found, wanted))


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.strip().split("\n")]


def _same_line(found: str, wanted: str) -> bool:
    if found == wanted:
        return True
    try:
        return [Decimal(word) for word in found.split()] == [Decimal(word) for word in wanted.split()]
    except (InvalidOperation, ValueError):
        return False


class _Other:
    """Equal to nothing."""


def decoded(value: Json) -> Json:
    """The value that solve.py's ``encoded`` wrote; of a kind that no JSON is equal to, something equal to nothing."""
    if isinstance(value, list):
        return [decoded(item) for item in value]
    if not isinstance(value, dict):
        return value
    if len(value) != 1:
        return _Other()
    (kind, content), *_ = value.items()
    if kind == "dict" and isinstance(content, dict):
        return {key: decoded(item) for key, item in content.items()}
    return _number(kind, str(content))


def _number(kind: str, content: str) -> int | float | Decimal | Fraction | _Other:
    try:
        if kind == "int":
            return int(content, 16)
        if kind == "float":
            return float.fromhex(content)
        if kind == "Decimal":
            return Decimal(content)
        if kind == "Fraction":
            return Fraction(content)
    except (ValueError, OverflowError, InvalidOperation, ZeroDivisionError):
        pass  # The solution wrote into the judge's pipe itself.
    return _Other()
