"""Which row of a script answers a request."""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from harness.serve.recorded import RecordedChats
from harness.serve.refusal import NOT_FOUND, Refusal
from harness.serve.requests import ChatRequest, SampledRequest

ROW_HEADER: Final = "x-row"
"""Which row a scripted engine answers; without it, one that follows from the request."""
SESSION_HEADER: Final = "x-session-id"
"""Which conversation a chat goes on with: an engine that keeps what it has read reads only what is new."""
ROW_BYTES: Final = 4


@dataclass(frozen=True, slots=True)
class ScriptRows:
    """``count`` is of how many rows a script has answers; None for any. ``recorded`` knows which one a chat's is."""

    count: int | None = None
    recorded: RecordedChats | None = None

    def of(self, asked_for: SampledRequest, prompt: Sequence[int], headers: Mapping[str, str]) -> int:
        """By the header, by what was recorded of the chat, by the prompt's hash. Raises Refusal."""
        named = headers.get(ROW_HEADER)
        if named is not None:
            if not named.isdecimal() or not named.isascii():
                raise Refusal(f"{ROW_HEADER} is {named!r}, not the number of a row")
            return int(named)
        if self.recorded is None or not isinstance(asked_for, ChatRequest):
            return row_of(prompt, self.count)
        row = self.recorded.row(session_of(headers), asked_for.received())
        if row is None:
            raise Refusal("nothing was recorded of this chat", status=NOT_FOUND, kind="NotFoundError")
        return row


def session_of(headers: Mapping[str, str]) -> str | None:
    """Which conversation a request is of; None where it does not say."""
    return headers.get(SESSION_HEADER) or None


def row_of(prompt: Sequence[int], rows: int | None) -> int:
    """Which row of a script answers a prompt that names none; ``rows`` is how many it has, None for any."""
    row = int.from_bytes(hashlib.sha256(array("i", prompt).tobytes()).digest()[:ROW_BYTES], "little")
    return row if rows is None else row % rows
