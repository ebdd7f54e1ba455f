"""Server-sent events: from bytes cut anywhere to the data of whole events.

As the HTML standard's "event stream" has it: lines end with CRLF, LF or CR; a blank line ends an event; an event's data
are its ``data`` lines joined by newlines, one space after the colon left out; comments and other fields say nothing
here. An event that the stream's end cuts off is none.
"""

from __future__ import annotations

from typing import Final

from harness.engines.http.problems import BAD_ANSWER, BadAnswer

DONE: Final = b"[DONE]"
"""The data of the event that ends a stream."""
LONGEST_EVENT: Final = 4 << 20
"""Bytes; a stream in which no event ends would be looked through again and again, and other answers wait meanwhile."""


class EventStream:
    """Takes the bytes of one stream in order and gives back events, in blocks of any size."""

    __slots__ = ("_rest",)

    def __init__(self) -> None:
        self._rest = b""

    def block(self, data: bytes) -> bytes:
        """The whole events that are there now, lines ended by LF, without the blank line of the last; may be empty.

        Raises BadAnswer for an event that is longer than :data:`LONGEST_EVENT`.
        """
        text = self._rest + data if self._rest else data
        held = b""
        if b"\r" in text:
            if text.endswith(b"\r"):  # half of a CRLF, perhaps
                text, held = text[:-1], b"\r"
            text = text.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        end = text.rfind(b"\n\n")
        if end < 0:
            self._rest = text + held
            if len(self._rest) > LONGEST_EVENT:
                raise BadAnswer(BAD_ANSWER, f"streams an event of more than {LONGEST_EVENT >> 20} MiB")
            return b""
        self._rest = text[end + 2 :] + held
        return text[:end]

    def events(self, data: bytes) -> list[bytes]:
        """The data of the events that are whole now."""
        return data_of(self.block(data))

    def put_back(self, block: bytes) -> None:
        """Whole events that are to be given again, before what comes next."""
        self._rest = block + b"\n\n" + self._rest

    def rest(self) -> bytes:
        """What came of an event that is not whole."""
        return self._rest


def data_of(block: bytes) -> list[bytes]:
    """The data of each event of a block, those without any left out."""
    found: list[bytes] = []
    for event in block.split(b"\n\n"):
        if event.startswith(b"data: ") and b"\n" not in event:
            found.append(event[6:])
        elif event:
            found += _data_of_odd(event)
    return found


def _data_of_odd(event: bytes) -> list[bytes]:
    lines = [line[5:].removeprefix(b" ") for line in event.split(b"\n") if line.startswith(b"data:")]
    return [b"\n".join(lines)] if lines else []
