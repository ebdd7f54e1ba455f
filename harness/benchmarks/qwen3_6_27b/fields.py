"""What a row may ask of a request beside its messages, and what each of these must look like.

Names and order are those in which the mlcommons client writes a request (mlcommons/endpoints ea332753,
``openai/types.py`` and ``scripts/agentic_inference_dataset_schema.json``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from harness.engines.bodies import RESERVED


class Kind(NamedTuple):
    """A kind of value: what is said of it to people, and whether a value is one."""

    said: str
    holds: Callable[[Any], bool]


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_list_of(kind: type) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, list) and bool(value) and all(isinstance(each, kind) for each in value)


TEXT: Final = Kind("a text", lambda value: isinstance(value, str))
FILLED_TEXT: Final = Kind("a text that is not empty", lambda value: isinstance(value, str) and value != "")
WHOLE: Final = Kind("a whole number", _is_whole)
COUNT: Final = Kind("a whole number of at least 1", lambda value: _is_whole(value) and value >= 1)
NUMBER: Final = Kind("a number", _is_number)
NOT_NEGATIVE: Final = Kind("a number of at least 0", lambda value: _is_number(value) and value >= 0)
SWITCH: Final = Kind("true or false", lambda value: isinstance(value, bool))
OBJECT: Final = Kind("an object", lambda value: isinstance(value, dict))
OBJECTS: Final = Kind("a list of objects that is not empty", _is_list_of(dict))
_TEXTS: Final = Kind("a text or a list of texts", lambda value: isinstance(value, str) or _is_list_of(str)(value))
_CHOICE: Final = Kind("a text or an object", lambda value: isinstance(value, str | dict))

CAP_ALIAS: Final = "max_new_tokens"
"""Another name of ``max_completion_tokens`` in rows; it never is in a request."""
CAP: Final = "max_completion_tokens"

REQUEST: Final[Mapping[str, Kind]] = {
    "model": FILLED_TEXT,
    "temperature": NOT_NEGATIVE,
    CAP: COUNT,
    "stream": SWITCH,
    "seed": WHOLE,
    "top_p": NOT_NEGATIVE,
    "top_k": WHOLE,
    "repetition_penalty": NOT_NEGATIVE,
    "n": COUNT,
    "stop": _TEXTS,
    "presence_penalty": NUMBER,
    "frequency_penalty": NUMBER,
    "logit_bias": OBJECT,
    "user": TEXT,
    "chat_template": TEXT,
    "chat_template_kwargs": OBJECT,
    "tools": OBJECTS,
    "tool_choice": _CHOICE,
}
"""The fields of a request in their order, but for ``messages``, which stand behind ``model``."""

ROW: Final[Mapping[str, Kind]] = {**REQUEST, CAP_ALIAS: COUNT}
"""What a row of the client's may ask for."""

OF_A_CHAT: Final = tuple(name for name in REQUEST if name not in RESERVED)
"""The fields that belong to a chat; the others are a run's."""
OF_A_RUN: Final = frozenset(ROW) - frozenset(OF_A_CHAT)
"""The fields that a run sets for all requests alike."""
