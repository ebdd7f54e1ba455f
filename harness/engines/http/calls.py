"""Tool calls, put together from what servers tell of them: in pieces, or whole.

By OpenAI's word each piece has the ``index`` of its call, the first one its ``id`` and name, and ``arguments`` are text
of which each piece adds some. Servers differ: some give no index or null, some the same one to all calls, some a new id
with every piece, and some tell the arguments as the object that the text would be. What can be meant by it is one thing
each time, and that is taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson


class _Call:
    """One call; ``index`` puts it in order."""

    __slots__ = ("arguments", "id", "index", "name")

    def __init__(self, index: int) -> None:
        self.index = index
        self.id: str | None = None
        self.name: str | None = None
        self.arguments: list[str] = []

    def begins_anew(self, identity: str | None, name: str | None, numbered: bool) -> bool:
        """Whether a piece with this id and name is of another call than this one.

        A piece that is ``numbered`` by its index goes on with the call of that index, unless it plainly does not.
        """
        if not name or self.name is None:
            return False
        if identity is not None and self.id is not None:
            return identity != self.id
        return not numbered or name != self.name


class Calls:
    """The calls of one reply. Raises ValueError, TypeError or AttributeError for a piece that is none."""

    __slots__ = ("_calls",)

    def __init__(self) -> None:
        self._calls: list[_Call] = []

    def __bool__(self) -> bool:
        return bool(self._calls)

    def take(self, parts: Sequence[dict[str, Any]]) -> None:
        """What one delta, or a whole message, tells under ``tool_calls``."""
        for part in parts:
            self._take(part)

    def told(self) -> list[dict[str, Any]]:
        """All of them, as a message has them: arguments are text."""
        return [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": "".join(call.arguments)}}
            for call in sorted(self._calls, key=lambda call: call.index)
        ]

    def _take(self, part: dict[str, Any]) -> None:
        function = part.get("function") or {}
        identity, name = _text(part.get("id")), _text(function.get("name"))
        call = self._of(part.get("index"), identity, name)
        call.id = call.id or identity
        call.name = call.name or name
        arguments = function.get("arguments")
        if arguments is not None:
            call.arguments.append(arguments if isinstance(arguments, str) else _json(call, arguments))

    def _of(self, index: object, identity: str | None, name: str | None) -> _Call:
        """The call that a piece is of; a new one where it begins one."""
        if index is not None and not isinstance(index, int):
            raise TypeError("an index that is no number")
        found = self._known(index, identity)
        if found is not None and not found.begins_anew(identity, name, index is not None):
            return found
        at = index if index is not None else self._calls[-1].index if self._calls else 0
        self._calls.append(_Call(at))
        return self._calls[-1]

    def _known(self, index: int | None, identity: str | None) -> _Call | None:
        """The latest call that has the index; without one that which has the id, else the latest of all."""
        if index is not None:
            return next((call for call in reversed(self._calls) if call.index == index), None)
        named = next((call for call in reversed(self._calls) if identity is not None and call.id == identity), None)
        return named or (self._calls[-1] if self._calls else None)


def _json(call: _Call, arguments: object) -> str:
    """Arguments that are no text: they come whole."""
    if any(call.arguments):
        raise ValueError("arguments in pieces that are no text")
    return orjson.dumps(arguments).decode()


def _text(value: object) -> str | None:
    if value is not None and not isinstance(value, str):
        raise TypeError("an id or name that is no text")
    return value or None
