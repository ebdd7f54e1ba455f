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


def get(url: str, path: str, *, timeout_s: float, key: str | None = None) -> Reply:
    """Asks ``url`` (scheme, host, port) for ``path``; ``key`` is sent as a bearer token."""
    parts = urlsplit(url)
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    connection = kind(parts.hostname or "", parts.port, timeout=timeout_s)
    try:
        connection.request("GET", path, headers={"Authorization": f"Bearer {key}"} if key else {})
        answer = connection.getresponse()
        return Reply(answer.status, answer.read(LARGEST_BYTES).decode("utf-8", "replace"))
    except (OSError, http.client.HTTPException) as error:
        return Reply(0, str(error) or type(error).__name__)
    finally:
        connection.close()
