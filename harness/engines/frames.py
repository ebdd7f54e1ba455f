"""Frames on a stream socket: a header of 16 bytes (magic, kind, n, length of the payload) and a payload."""

from __future__ import annotations

import enum
import json
import struct
import sys
from collections.abc import Sequence
from typing import Final, NamedTuple

from harness.errors import RunBroke

HEADER: Final = struct.Struct("<HHIQ")
HEADER_SIZE: Final = HEADER.size
MAGIC: Final = 0x6C6D
MAX_PAYLOAD: Final = 1 << 28

if sys.byteorder != "little":
    raise ImportError("the engine's wire format is for little-endian machines")


class WireError(RunBroke):
    """What came over the socket is not this protocol."""


class Kind(enum.IntEnum):
    """What a frame is; :mod:`harness.engines.wire` says what each holds."""

    INFO = 1
    WORKLOAD = 2
    REQUESTS = 3
    TOKENS = 4
    ANSWERS = 5
    FAILURES = 6
    CANCEL = 7
    PING = 8
    FATAL = 9
    REPLIES = 10
    COUNTERS = 11
    DROP = 12


KINDS: Final = {int(kind): kind for kind in Kind}
REQUESTS, TOKENS, ANSWERS, FAILURES = Kind.REQUESTS, Kind.TOKENS, Kind.ANSWERS, Kind.FAILURES
REPLIES = Kind.REPLIES
"""By these names since to look a member up in its class costs as much as all else that is done for a frame."""


class Frame(NamedTuple):
    """One frame; the payload is its own memory, so arrays that view it stay."""

    kind: Kind
    n: int
    payload: bytearray


class Decoder:
    """Makes frames of the bytes of a stream, however they are cut into chunks."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def feed(self, chunk: bytes | bytearray | memoryview) -> list[Frame]:
        """The frames that this chunk completes. Raises WireError at the first byte that cannot be."""
        if self._rest:
            self._rest += chunk
            if len(self._rest) < self._wanted():
                return []
            chunk, self._rest = self._rest, bytearray()
        frames: list[Frame] = []
        at, size = 0, len(chunk)
        while size - at >= HEADER_SIZE:
            kind, n, payload = _header(chunk, at)
            begin = at + HEADER_SIZE
            end = begin + payload
            if end > size:
                break
            frames.append(Frame(kind, n, bytearray(chunk[begin:end])))
            at = end
        if at < size:
            self._rest = bytearray(chunk[at:])
        return frames

    def _wanted(self) -> int:
        """How long the rest must be before it is worth a look: a large frame is not taken apart at every chunk."""
        if len(self._rest) < HEADER_SIZE:
            return HEADER_SIZE
        return HEADER_SIZE + _header(self._rest, 0)[2]


def _header(chunk: bytes | bytearray | memoryview, at: int) -> tuple[Kind, int, int]:
    magic, number, n, payload = HEADER.unpack_from(chunk, at)
    kind = KINDS.get(number)
    if magic != MAGIC or kind is None:
        raise WireError("the bytes on the engine's socket are not frames of this protocol", expected="an engine's host")
    if payload > MAX_PAYLOAD:
        raise WireError(f"a frame of {payload} bytes on the engine's socket", expected=f"at most {MAX_PAYLOAD}")
    return kind, n, payload


def frame_of(kind: Kind, n: int, parts: Sequence[bytes]) -> bytes:
    """A frame whose payload is these parts, one after the other."""
    return b"".join((HEADER.pack(MAGIC, kind, n, sum(map(len, parts))), *parts))


def signal_frame(kind: Kind, n: int = 0) -> bytes:
    """A frame without a payload."""
    return HEADER.pack(MAGIC, kind, n, 0)


def json_frame(kind: Kind, n: int, content: object) -> bytes:
    """A frame with a JSON payload."""
    return frame_of(kind, n, (json.dumps(content, separators=(",", ":")).encode(),))
