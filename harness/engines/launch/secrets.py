"""Tokens and keys, kept out of logs and of what is printed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

MASK: Final = "***"
_SECRET_NAME = re.compile(r"(?:TOKEN|KEY|SECRET|PASSWORD|PASSWD|CREDENTIALS?)$|SECRET", re.IGNORECASE)
_ASSIGNED = re.compile(r"([\w-]+)=")


def is_secret(name: str) -> bool:
    """Whether a variable or option of this name holds what nobody may read (HF_TOKEN, --api-key, …)."""
    return _SECRET_NAME.search(name) is not None


def masked(environment: Mapping[str, str]) -> dict[str, str]:
    """The same variables, secret values as ``***``."""
    return {name: MASK if is_secret(name) and value else value for name, value in environment.items()}


def masked_words(words: Iterable[str]) -> list[str]:
    """The words of a command, with ``***`` for what stands behind ``--api-key`` and in ``HF_TOKEN=…``."""
    shown: list[str] = []
    hide_next = False
    for word in words:
        shown.append(MASK if hide_next and not word.startswith("-") else _masked_word(word))
        hide_next = word.startswith("-") and "=" not in word and is_secret(word)
    return shown


def _masked_word(word: str) -> str:
    for assigned in _ASSIGNED.finditer(word):
        if is_secret(assigned[1]):
            return word[: assigned.end()] + MASK
    return word
