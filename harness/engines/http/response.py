"""The framing of one response, by llhttp."""

from __future__ import annotations

from typing import Final

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

END: Final = b"\r\n\r\n"
"""How the last bytes of a chunked response end, trailers or not; other pieces seldom do."""


LONGEST_HEAD: Final = 1 << 20
"""Bytes, of all that comes before a body."""
INFORMATIONAL_END: Final = 200
"""Responses with a lower status (100 Continue) come before the one that counts."""


class BadFraming(Exception):
    """What came is not HTTP."""


class Response:
    """Takes the bytes of a connection from the end of a request on, up to the end of its response.

    Responses that are only on the way to one (100 Continue) are passed over.
    """

    __slots__ = (
        "_head_bytes",
        "_keeps_alive",
        "_parser",
        "begun",
        "chunked",
        "complete",
        "headers_done",
        "length",
        "on_body",
        "pieces",
        "status",
        "surplus",
    )

    def __init__(self) -> None:
        self.pieces: list[bytes] = []
        """What came of the body and was not taken."""
        self.on_body = self.pieces.append
        self.begun = False
        self.status = 0
        self.headers_done = False
        self.chunked = False
        self.length: int | None = None
        self.complete = False
        self._keeps_alive = False
        self._head_bytes = 0
        self.surplus = False
        """Whether more came than the response."""
        self._parser: HttpResponseParser | None = HttpResponseParser(self)

    def feed(self, data: bytes | bytearray) -> None:
        """Takes what was received. Raises BadFraming."""
        self.begun = True
        if self._parser is None:
            raise BadFraming("it goes on after its end")
        try:
            self._parser.feed_data(data)
        except (HttpParserError, HttpParserUpgrade) as error:
            if not self.complete:
                raise BadFraming(str(error)) from None
            self.surplus = True
        if not self.headers_done:
            self._head_bytes += len(data)
            if self._head_bytes > LONGEST_HEAD:
                raise BadFraming(f"its head is longer than {LONGEST_HEAD >> 20} MiB")

    def end(self) -> None:
        """The connection is at its end; a response without a length is so, too."""
        if self.headers_done and not self.chunked and self.length is None:
            self.complete = True

    def take(self) -> bytes:
        """What came of the body since the last call."""
        pieces = self.pieces
        body = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        pieces.clear()
        return body

    def release(self) -> bool:
        """Lets go of the parser, which refers to this in a circle; whether the connection may be used again."""
        self._parser = None
        return self._keeps_alive and not self.surplus

    def on_message_begin(self) -> None:
        """Called by the parser."""
        if self.complete:
            self.surplus = True

    def on_header(self, name: bytes, value: bytes) -> None:
        """Called by the parser."""
        lower = name.lower()
        if lower == b"transfer-encoding":
            self.chunked = value.lower().endswith(b"chunked")
        elif lower == b"content-length":
            self.length = int(value)

    def on_headers_complete(self) -> None:
        """Called by the parser."""
        if not self.complete and self._parser is not None:
            status = self._parser.get_status_code()
            if status >= INFORMATIONAL_END:
                self.status, self.headers_done = status, True

    def on_message_complete(self) -> None:
        """Called by the parser."""
        if self.headers_done and self._parser is not None and not self.complete:
            self.complete = True
            self._keeps_alive = self._parser.should_keep_alive()
