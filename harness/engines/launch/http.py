"""GET of small JSON documents from a server on this machine; nothing is retried, no proxy is asked."""

from __future__ import annotations

import http.client
import json
from dataclasses import dataclass
from urllib.parse import urlsplit

LARGEST_BYTES = 4 << 20


@dataclass(frozen=True, slots=True)
class Reply:
    """``status`` of HTTP and the body; ``status`` 0 is no answer, and the body why."""

    status: int
    body: str

    @property
    def json(self) -> object:
        """The body as JSON; None where it is none or the status is not 200."""
        try:
            return json.loads(self.body) if self.status == http.client.OK else None
        except (ValueError, RecursionError):
            return None


def get(url: str, path: str, *, timeout_s: float) -> Reply:
    """Asks ``url`` (scheme, host, port) for ``path``."""
    try:
        parts = urlsplit(url)
        kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        connection = kind(parts.hostname or "", parts.port, timeout=timeout_s)
    except (ValueError, http.client.HTTPException) as error:
        return Reply(0, f"no URL: {error}")
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        body = answer.read(LARGEST_BYTES)
        if answer.length:
            return Reply(0, f"the answer was cut short or is too long: {answer.length} bytes are lacking")
        return Reply(answer.status, body.decode("utf-8", "replace"))
    except (OSError, ValueError, http.client.HTTPException) as error:  # ValueError: a host's name that cannot be one
        return Reply(0, str(error) or type(error).__name__)
    finally:
        connection.close()
