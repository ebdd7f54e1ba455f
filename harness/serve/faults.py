"""What goes wrong on demand: by the header ``X-Fault`` of a request, or by a plan for clients that send no header."""

from __future__ import annotations

import enum
import itertools
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from harness.errors import ConfigError, UnknownName

HEADER: Final = "x-fault"


class Kind(enum.Enum):
    """One way to misbehave. *Mid-stream* is behind the first chunk; an answer in one piece breaks in its middle."""

    HANG = "hang"
    """The request is read and nothing is ever said."""
    STALL = "stall"
    """Mid-stream nothing more comes; the connection stays."""
    BAD_REQUEST = "400"
    TOO_MANY = "429"
    """With ``Retry-After``."""
    INTERNAL = "500"
    UNAVAILABLE = "503"
    SLOW_FIRST_TOKEN = "slow_first_token"  # noqa: S105 - no password
    """The first token comes so many seconds later: ``slow_first_token:SECONDS``."""
    RESET = "reset"
    """Mid-stream the connection is reset (TCP RST)."""
    CUT = "cut"
    """Mid-stream the connection is closed (TCP FIN), between two chunks."""
    HALF_FRAME = "half_frame"
    """As ``cut``, in the middle of an event."""
    SPLIT = "split"
    """Every event comes in two pieces, apart in time. Nothing is wrong with that."""
    SSE_ERROR = "sse_error"
    """Mid-stream an event tells an error and the stream ends; an answer in one piece is a 500."""
    CRLF = "crlf"
    """Events end in CR LF. Nothing is wrong with that either."""
    NO_DONE = "no_done"
    """The stream ends without ``[DONE]``."""
    NO_IDS = "no_ids"
    """``token_ids`` is null, though ids were asked for."""
    EMPTY = "empty"
    """The answer has no text and no ids, though its tokens are counted."""
    CONTENT_FILTER = "content_filter"
    """The answer ends by a filter, whatever it has."""
    TOO_LONG = "too_long"
    """A 400 in the words for a prompt that has no room."""
    WRONG_MODEL = "wrong_model"
    """The answer names another model."""
    DIE = "die"
    """Mid-stream the server's process is gone."""
    CLOSE_IDLE = "close_idle"
    """The connection is closed right behind the answer, which had promised to keep it."""


STATUS: Final = {
    Kind.BAD_REQUEST: (400, "BadRequestError"),
    Kind.TOO_LONG: (400, "BadRequestError"),
    Kind.TOO_MANY: (429, "RateLimitError"),
    Kind.INTERNAL: (500, "InternalServerError"),
    Kind.UNAVAILABLE: (503, "ServiceUnavailableError"),
}
"""Kinds that are an error response: its status, and its ``type``."""
RETRY_AFTER_S: Final = 1
_KINDS: Final = {kind.value: kind for kind in Kind}
_PLACE: Final = re.compile(r"(?P<fault>[^@]+)@(?P<first>[1-9][0-9]{0,8})(?:/(?P<every>[1-9][0-9]{0,8}))?")


@dataclass(frozen=True, slots=True)
class Fault:
    """A kind, and the seconds of the one kind that has them."""

    kind: Kind
    seconds: float = 0.0

    @classmethod
    def parse(cls, text: str) -> Fault:
        """``kind``, or ``slow_first_token:SECONDS``. Raises ConfigError."""
        name, colon, argument = text.strip().partition(":")
        if name not in _KINDS:
            raise UnknownName("fault", name, _KINDS)
        kind = _KINDS[name]
        if kind is not Kind.SLOW_FIRST_TOKEN:
            if colon:
                raise ConfigError(f"the fault {name} takes no seconds", where=text)
            return cls(kind)
        seconds = _seconds(argument)
        if seconds is None:
            raise ConfigError(f"{argument!r} are no seconds", where=text, expected="slow_first_token:SECONDS")
        return cls(kind, seconds)


def _seconds(text: str) -> float | None:
    try:
        seconds = float(text)
    except ValueError:
        return None
    return seconds if 0 <= seconds < math.inf else None


@dataclass(frozen=True, slots=True)
class PlannedFault:
    """A fault of the ``first`` request, counted from 1, and of each ``every``-th from there where that is given."""

    fault: Fault
    first: int
    every: int | None = None

    @classmethod
    def parse(cls, text: str) -> PlannedFault:
        """``kind@n`` or ``kind@n/m``. Raises ConfigError."""
        found = _PLACE.fullmatch(text.strip())
        if found is None:
            raise ConfigError(
                f"not a planned fault: {text!r}",
                expected="kind@n, the n-th request from 1, or kind@n/m, every m-th from the n-th",
            )
        every = found["every"]
        return cls(Fault.parse(found["fault"]), int(found["first"]), None if every is None else int(every))

    def hits(self, number: int) -> bool:
        """Whether this request is one of them."""
        if self.every is None:
            return number == self.first
        return number >= self.first and (number - self.first) % self.every == 0


@dataclass(slots=True)
class FaultPlan:
    """Which request comes to what. Counts the requests for answers (completions and chats) as they come."""

    planned: tuple[PlannedFault, ...] = ()
    _numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def next(self, header: str | None) -> Fault | None:
        """The fault of the request that comes now; its header goes before the plan. Raises ConfigError for no fault."""
        number = next(self._numbers)
        if header is not None:
            return Fault.parse(header)
        return next((each.fault for each in self.planned if each.hits(number)), None)
