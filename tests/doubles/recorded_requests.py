"""A client's connection to the recorded-answer server, and what is read of a request: no more than must be."""

from __future__ import annotations

import re
import socket
from typing import Any, Final

import orjson

from tests.doubles.recorded_answers import Wanted

ROOM: Final = 1 << 18
"""Bytes of a request for which a connection has room from the beginning."""
NEAR: Final = 2_048
"""Bytes of a body in which the fields of a run mostly stand, before the messages."""

HEAD_END: Final = b"\r\n\r\n"
LENGTH: Final = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
SESSION: Final = re.compile(rb"\r\nx-session-id: *([^\r]*)", re.IGNORECASE)
MODEL: Final = re.compile(rb'"model": ?"([^"\\]*)"')
CAPS: Final = (re.compile(rb'"max_completion_tokens": ?(\d+)'), re.compile(rb'"max_tokens": ?(\d+)'))
STREAM: Final = re.compile(rb'"stream": ?true')
USAGE: Final = re.compile(rb'"include_usage": ?true')
ASSISTANT: Final = (b'"role":"assistant"', b'"role": "assistant"')
"""Within a text each of its quotation marks would have a backslash before it."""


class Connection:
    """Holds one request at a time: its first line, the value of X-Session-ID ("" for none), its body."""

    __slots__ = ("_body", "_end", "_filled", "_room", "due", "session", "socket")

    def __init__(self, accepted: socket.socket) -> None:
        self.socket = accepted
        self.session = ""
        self.due = 0
        """The number of the answer that it waits for; 0 for none."""
        self._room = bytearray(ROOM)
        self._filled = 0
        self._body = 0
        """Where the body begins; 0 until the head is whole."""
        self._end = 0

    def receive(self) -> bool | None:
        """Takes what is there: whether a request is whole now, None at the connection's end."""
        if self._filled == self._end:
            self._filled = self._body = 0
        try:
            count = self.socket.recv_into(memoryview(self._room)[self._filled :])
        except ConnectionError:
            return None
        if not count:
            return None
        self._filled += count
        if not self._body:
            self._read_head()
        return self._body > 0 and self._filled >= self._end

    def _read_head(self) -> None:
        end = self._room.find(HEAD_END, 0, self._filled)
        if end < 0:
            return
        head = bytes(self._room[: end + 2])
        length, session = LENGTH.search(head), SESSION.search(head)
        self.session = session[1].decode("ascii") if session else ""
        self._body = end + len(HEAD_END)
        self._end = self._body + (int(length[1]) if length else 0)
        if self._end > len(self._room):
            self._room.extend(bytes(self._end - len(self._room)))

    @property
    def line(self) -> bytes:
        """The first line of the request."""
        return bytes(self._room[: self._room.find(b"\r\n")])

    def body(self) -> bytes:
        """A copy."""
        return bytes(self._room[self._body : self._end])

    def turn(self) -> int:
        """How many of the messages are the assistant's, in JSON that is compact or has a blank behind each colon."""
        compact, spaced = ASSISTANT
        return self._room.count(compact, self._body, self._end) or self._room.count(spaced, self._body, self._end)

    def chat(self) -> dict[str, Any]:
        """The body read; empty where it is no chat."""
        try:
            found = orjson.loads(memoryview(self._room)[self._body : self._end])
        except orjson.JSONDecodeError:
            return {}
        return found if isinstance(found, dict) else {}

    def wanted(self, model: str) -> Wanted:
        """How it is to be answered; as ``model`` where it names none."""
        named = self._found(MODEL)
        cap = self._found(CAPS[0]) or self._found(CAPS[1])
        stream = self._found(STREAM) is not None
        usage = not stream or self._found(USAGE) is not None
        return Wanted(named[1].decode() if named else model, stream, usage, int(cap[1]) if cap else None)

    def _found(self, pattern: re.Pattern[bytes]) -> re.Match[bytes] | None:
        near = min(self._end, self._body + NEAR)
        return pattern.search(self._room, self._body, near) or pattern.search(self._room, near, self._end)
