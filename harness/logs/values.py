"""Values of files that anybody may have written: JSON that is safe to hold and show, and numbers that are numbers."""

from __future__ import annotations

import abc
import json
import math
from typing import Any

from harness.logs.errors import LogError

MAX_DEPTH = 64
"""Nothing that the tools write nests deeper than some six levels; what is read here can be compared and shown."""

_DECODER = json.JSONDecoder()
_WHITESPACE = " \t\n\r"  # JSON's

_SIGNED_MAX = (1 << 63) - 1
_UNSIGNED_MAX = (1 << 64) - 1


def parse_json(text: str) -> Any:  # noqa: ANN401 - whatever it holds
    """The value of a JSON text, as the official checker's reader takes it: of a name twice in an object, the last.

    ValueError where it is no JSON, nests deeper than :data:`MAX_DEPTH`, or has halves of characters.
    """
    text = text.strip(_WHITESPACE)
    try:
        value, end = _DECODER.raw_decode(text)
    except RecursionError:
        raise ValueError("nested without end") from None
    if end < len(text):
        raise ValueError(f"more behind its end, at character {end}")
    if text.count("[") + text.count("{") > MAX_DEPTH and nests_deeper(value, MAX_DEPTH):
        raise ValueError(f"nested deeper than {MAX_DEPTH} levels")
    if "\\u" in text:
        check_text(json.dumps(value, ensure_ascii=False))
    return value


def nests_deeper(value: Any, most: int) -> bool:  # noqa: ANN401 - whatever it holds
    """Whether lists and objects nest more than ``most`` levels deep."""
    level = _containers([value])
    for _ in range(most):
        level = [inner for outer in level for inner in _containers(outer)]
        if not level:
            return False
    return True


def _containers(value: Any) -> list[Any]:  # noqa: ANN401 - whatever it holds
    """The lists and objects that are directly in a list or an object."""
    items = value.values() if isinstance(value, dict) else value
    return [item for item in items if isinstance(item, dict | list)]


def check_text(text: str) -> None:
    """ValueError where a text has halves of characters, which can be read but not written."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise ValueError("half of a character") from None


def shown(value: Any, most: int = 80) -> str:  # noqa: ANN401 - whatever it holds
    """A value as an error shows it: JSON where it can be, ``most`` characters of it."""
    if isinstance(value, str | list | dict) and len(value) > most:
        value = value[:most] if isinstance(value, str | list) else dict(list(value.items())[:most])
    try:
        text = json.dumps(value)
    except (TypeError, ValueError):
        text = repr(value)
    return text if len(text) <= most else text[:most] + "…"


class TypedValues(abc.ABC):
    """Typed access by key. None where the key is absent; LogError, with file and key, where the value is another."""

    __slots__ = ()

    @abc.abstractmethod
    def value(self, key: str) -> Any:  # noqa: ANN401 - whatever was written
        """The value of a key as it was written, or None."""

    @abc.abstractmethod
    def wrong(self, key: str, expected: str) -> LogError:
        """The error of a value that is not what was expected."""

    def number(self, key: str) -> int | float | None:
        """A finite number; of whole ones what 64 bits with a sign hold."""
        value = self._numeric(key)
        if isinstance(value, int) and abs(value) > _SIGNED_MAX:
            raise self.wrong(key, "a number below 2^63")
        return value

    def integer(self, key: str) -> int | None:
        """A whole number of 64 bits, with or without a sign: seeds have none."""
        value = self._numeric(key)
        if isinstance(value, float):
            raise self.wrong(key, "an integer")
        if value is not None and not -_SIGNED_MAX <= value <= _UNSIGNED_MAX:
            raise self.wrong(key, "an integer of 64 bits")
        return value

    def flag(self, key: str) -> bool | None:
        """True or false."""
        value = self.value(key)
        if value is not None and not isinstance(value, bool):
            raise self.wrong(key, "true or false")
        return value

    def text(self, key: str) -> str | None:
        """A text."""
        value = self.value(key)
        if value is not None and not isinstance(value, str):
            raise self.wrong(key, "a text")
        return value

    def _numeric(self, key: str) -> int | float | None:
        value = self.value(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.wrong(key, "a number")
        if isinstance(value, float) and not math.isfinite(value):
            raise self.wrong(key, "a finite number")
        return value
