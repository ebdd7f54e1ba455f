"""The kinds of failure of a request over HTTP, and what a reader raises for an answer that is none."""

from __future__ import annotations

from typing import Final

UNREACHABLE: Final = "unreachable"
"""No connection could be made, for a reason other than that the server refused it."""
RESET: Final = "reset"
"""The connection was reset, or closed before anything of the answer came."""
TRUNCATED: Final = "truncated"
"""The answer began and did not come to its end."""
TIMEOUT: Final = "timeout"
SSE_ERROR: Final = "sse_error"
"""The stream began and the server told of an error in it."""
MISSING_IDS: Final = "missing_ids"
"""Token ids are not there, or are not as many as the server says it made."""
WRONG_MODEL: Final = "wrong_model"
TOO_LONG: Final = "prompt_too_long"
BAD_ANSWER: Final = "bad_answer"
"""What came is not what such a server says."""
REFUSAL: Final = "refusal"
"""The model declined to answer, and the server says so apart from the content."""
CONTENT_FILTER: Final = "content_filter"
"""A filter of the server's took the answer or a part of it."""
ABORTED: Final = "aborted"
"""The server gave the answer up, and says so as the reason for its end."""
NO_SUCH_ROW: Final = "no_such_row"
EMPTY_PROMPT: Final = "empty_prompt"

QUOTED: Final = 300
"""How many characters of what a server said a message quotes."""


class BadAnswer(Exception):
    """An answer that cannot be told as one; ``kind`` is one of this module's."""

    def __init__(self, kind: str, what: str) -> None:
        self.kind = kind
        self.what = what
        super().__init__(what)


def http_status(status: int) -> str:
    """The kind of an answer with a status other than 200: ``http_503``."""
    return f"http_{status}"


def quoted(said: bytes | bytearray) -> str:
    """What a server said, for a message: in one line, cut to :data:`QUOTED` characters."""
    text = " ".join(bytes(said[: 4 * QUOTED]).decode("utf-8", "replace").split())
    return text if len(text) <= QUOTED else text[:QUOTED] + " …"
