"""What an answer about a product says, and how far its category and its brand are right.

The reference's scorers validate an answer against their schema with pydantic, whose lax types and JSON reader decide
which answers count. Versions of it differ there (before 2.12 the first of two equal keys counts, since then the last),
and a score must not depend on what is installed: so the rules are spelt out here, as the v6.1 client's pydantic 2.12
has them. No answer is mended: a fence around it, or a word before it, makes it no answer.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from harness.benchmarks.qwen3_vl_235b_a22b.prompts import FIELDS, Version

SEPARATOR = " > "
"""Between the levels of a category, the root first."""

_FIELDS = frozenset(FIELDS)
_MAX_DEPTH = 200
_MAX_DIGITS = 4300
_TRUE = frozenset({"true", "t", "yes", "y", "on", "1"})
_FALSE = frozenset({"false", "f", "no", "n", "off", "0"})


@dataclass(frozen=True, slots=True)
class Parsed:
    """An answer that keeps to the schema; the texts as they were said, nothing stripped."""

    category: str
    brand: str
    is_secondhand: bool


def parse(text: str) -> Parsed | None:
    """The answer that a text is; None where it is none."""
    try:
        text.encode()
        said = _DECODER.decode(text)
        if "\\u" in text or text.count("[") + text.count("{") > _MAX_DEPTH:
            _check_to_the_ground(said)
    except (ValueError, RecursionError):
        return None
    if not isinstance(said, _Object):
        return None
    fields = dict(said)
    if fields.keys() != _FIELDS:
        return None
    category, brand, is_secondhand = fields["category"], fields["brand"], _truth(fields["is_secondhand"])
    if not isinstance(category, str) or not isinstance(brand, str) or is_secondhand is None:
        return None
    return Parsed(category, brand, is_secondhand)


class _Object(tuple[tuple[str, Any], ...]):
    """A JSON object with all its pairs, those too that a later one of the same key replaces: each must be JSON."""

    __slots__ = ()


def _whole(digits: str) -> int:
    if len(digits) > _MAX_DIGITS:
        raise ValueError("a number out of range")
    return int(digits)


def _fraction(digits: str) -> float:
    before_point = digits.lower().partition("e")[0].partition(".")[0]
    if len(before_point) > _MAX_DIGITS:
        raise ValueError("a number out of range")
    return float(digits)


_DECODER = json.JSONDecoder(object_pairs_hook=_Object, parse_int=_whole, parse_float=_fraction)


def _check_to_the_ground(said: object) -> None:
    """Raises ValueError for half a surrogate pair anywhere, and for values in more than so many others."""
    json.dumps(said, ensure_ascii=False).encode()
    if _depth(said) > _MAX_DEPTH:
        raise ValueError("nested too deeply")


def _depth(said: object) -> int:
    """Objects and arrays in one another, empty ones not counted."""
    inner = [value for _, value in said] if isinstance(said, _Object) else said
    return 1 + max(map(_depth, inner)) if isinstance(inner, list) and inner else 0


def _truth(said: object) -> bool | None:
    """The lax truth value: a number equal to 0 or 1, or a word for it in any case."""
    if isinstance(said, str):
        word = said.lower()
        return True if word in _TRUE else False if word in _FALSE else None
    if isinstance(said, bool | int | float) and said in (0, 1):
        return bool(said)
    return None


@functools.lru_cache(maxsize=1 << 16)
def levels(category: str, version: Version) -> tuple[str, ...]:
    """The levels of a category, at least one, none with white space around it.

    The scorer of v6.0 does not strip the category as a whole first: there, a separator at its end (``"A > "``) is
    followed by an empty level, where later ones see a leaf ``"A >"``.
    """
    whole = category if version == "v6.0" else category.strip()
    return tuple(level.strip() for level in whole.split(SEPARATOR))


def levels_in_common(found: Sequence[str], true: Sequence[str]) -> int:
    """How many levels are equal, counted from the root up to the first difference."""
    common = 0
    for one, other in zip(found, true, strict=False):
        if one != other:
            break
        common += 1
    return common


def same_brand(said: str, true: str) -> bool:
    """Whether two brands are alike by more than nine tenths, white space around them and case aside.

    Likeness is rapidfuzz's ratio: the share of characters, of both together, that are in their longest common
    subsequence. Two empty brands are alike.
    """
    said, true = said.strip().lower(), true.strip().lower()
    if said == true:
        return True
    total = len(said) + len(true)
    if 10 * abs(len(said) - len(true)) >= total:
        return False
    return 10 * (total - 2 * _longest_common_subsequence(said, true)) < total


def _longest_common_subsequence(one: str, other: str) -> int:
    """Its length, by Hyyrö's bit-parallel recurrence: a row of the table is one number, its zeros are the length."""
    places: dict[str, int] = {}
    for i, character in enumerate(one):
        places[character] = places.get(character, 0) | 1 << i
    every = row = (1 << len(one)) - 1
    for character in other:
        new = row & places.get(character, 0)
        row = (row + new | row - new) & every
    return len(one) - row.bit_count()
