"""Calls that a model wrote out in its text, ``name(key=value, ...)``, where it made none that are structured.

Guesswork, and the reference's: what it takes for a call is taken for one here. Source: mlcommons/endpoints
evaluation/extractor.py.
"""

from __future__ import annotations

import ast
import json
import re
import warnings
from collections.abc import Iterator
from typing import Any, Final

_BEGINNING: Final = re.compile(r"\b([A-Za-z_]\w*)\s*\(")
_PIECE: Final = re.compile(r"""'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|[()'"]""", re.DOTALL)
"""A quoted text, a parenthesis, or a quote that nothing closes."""
_DECLARED: Final = re.compile(r"[A-Za-z_]\w*(?:\s*:\s*\w+)?")
_NO_FUNCTIONS: Final = frozenset(
    {
        "print", "return", "if", "for", "while", "def", "class", "import", "from", "with", "assert", "raise",
        "try", "except", "len", "str", "int", "float", "list", "dict", "set", "tuple", "type", "isinstance",
        "range", "enumerate", "zip", "map", "filter", "Note", "Example", "Here", "This", "The", "For",
    }
)  # fmt: skip
"""Words before a parenthesis that name no function of BFCL's: Python's own, and those of sentences."""


def written_calls(text: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """The calls in a text, the outermost ones alone. TypeError where a value is no JSON or cannot be built.

    What is in the parentheses and cannot be read as arguments is one argument, ``_raw``, which no function has.
    """
    end = 0
    for found in _BEGINNING.finditer(text):
        if found.start() < end or found[1] in _NO_FUNCTIONS:
            continue
        closing = _closing(text, found.end() - 1)
        if closing is None:
            continue
        end = closing + 1
        inside = text[found.end() : closing].strip()
        if not inside or not _declares(inside):
            yield found[1], json.loads(json.dumps(_arguments(inside)))


def _closing(text: str, opening: int) -> int | None:
    """Where the parenthesis that is opened there is closed; quoted ones do not count."""
    depth = 0
    for piece in _PIECE.finditer(text, opening):
        if piece[0] in "'\"":
            return None
        depth += {"(": 1, ")": -1}.get(piece[0], 0)
        if depth == 0:
            return piece.start()
    return None


def _declares(inside: str) -> bool:
    """Whether these are the parameters of a declaration rather than values."""
    return all(_DECLARED.fullmatch(part) for part in map(str.strip, inside.split(",")) if part)


def _arguments(inside: str) -> dict[str, Any]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a model's text may hold what Python warns of
            called = ast.parse(f"dict({inside})", mode="eval").body
    except (SyntaxError, ValueError):
        return {"_raw": inside}
    if not isinstance(called, ast.Call):
        return {}
    return {keyword.arg: _value(keyword.value) for keyword in called.keywords if keyword.arg is not None}


def _value(node: ast.expr) -> Any:  # noqa: ANN401 - whatever a literal is
    """A literal's value; of anything else the text."""
    try:
        return ast.literal_eval(node)
    except (ValueError, SyntaxError):
        return ast.unparse(node)
