"""HTTP as downloads need it: one host, no foreign redirects, and errors that say what to do."""

from __future__ import annotations

import contextlib
import http.client
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from email.message import Message
from typing import IO, Any
from urllib.parse import urlsplit

from harness.errors import DatasetError, MissingError

USER_AGENT = "mlperf-inference-harness"
MAX_TEXT_BYTES = 1 << 20
_AGAIN = {408, 425, 429, 500, 502, 503, 504}
_LOGIN = {401, 403}


class BrokeOff(Exception):
    """The network failed in a way that may pass: worth another try."""


class _OneHost(urllib.request.HTTPRedirectHandler):
    """Follows redirects on the same host; one elsewhere is how a storage asks for a login."""

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: Message, newurl: str
    ) -> urllib.request.Request | None:
        """None, which makes it an HTTPError, where the redirect leaves the host."""
        if urlsplit(newurl)[:2] != urlsplit(req.full_url)[:2]:
            return None
        return super().redirect_request(req, fp, code, msg, headers, newurl)  # type: ignore[arg-type]  # typeshed: HTTPMessage


def _opener() -> urllib.request.OpenerDirector:
    return urllib.request.build_opener(_OneHost())


@dataclass(frozen=True, slots=True)
class Part:
    """The content of a file from byte ``start`` on, ``total`` bytes in all, as a stream."""

    start: int
    total: int
    stream: http.client.HTTPResponse


@dataclass(frozen=True, slots=True)
class Web:
    """The way to a storage. ``by_hand`` is what a person does where there is none; errors tell it."""

    by_hand: str
    timeout_s: float = 60.0
    opener: urllib.request.OpenerDirector = field(default_factory=_opener)

    def text(self, url: str) -> str:
        """A small text. Raises MissingError and DatasetError, and BrokeOff where another try may help."""
        with self._opened(url) as response:
            content = _read(response, MAX_TEXT_BYTES + 1)
        if len(content) > MAX_TEXT_BYTES or b"\0" in content:
            raise DatasetError(f"no small text: {len(content)} bytes and more", where=url, mend=self.by_hand)
        return content.decode("utf-8", "replace")

    def size(self, url: str) -> int:
        """Bytes of a file, by the server's word."""
        with self._opened(url, method="HEAD") as response:
            length = response.headers.get("Content-Length", "")
        if not length.isdecimal():
            raise DatasetError("the server does not say how large the file is", where=url, mend=self.by_hand)
        return int(length)

    @contextlib.contextmanager
    def part(self, url: str, start: int) -> Iterator[Part]:
        """The content from ``start`` on; from 0 where the server does not do parts, or has no such part."""
        with self._opened(url, start=start) as response:
            yield _part(response)

    @contextlib.contextmanager
    def _opened(self, url: str, *, method: str = "GET", start: int = 0) -> Iterator[http.client.HTTPResponse]:
        headers = {"User-Agent": USER_AGENT, "Accept-Encoding": "identity"}
        if start:
            headers["Range"] = f"bytes={start}-"
        request = urllib.request.Request(url, headers=headers, method=method)  # noqa: S310 - the rule pack's scheme
        try:
            response: Any = self.opener.open(request, timeout=self.timeout_s)
        except urllib.error.HTTPError as error:
            error.close()
            raise self._refused(url, error) from None
        except (OSError, http.client.HTTPException) as error:
            raise BrokeOff(f"{urlsplit(url).netloc} cannot be reached: {_reason(error)}") from None
        with response:
            yield response

    def _refused(self, url: str, error: urllib.error.HTTPError) -> Exception:
        if error.code in _AGAIN:
            return BrokeOff(f"HTTP {error.code} {error.reason}")
        if error.code in _LOGIN or 300 <= error.code < 400:
            return MissingError(
                f"the storage wants a login: HTTP {error.code} {error.reason}", where=url, mend=self.by_hand
            )
        return DatasetError(
            f"the storage does not give the file: HTTP {error.code} {error.reason}", where=url, mend=self.by_hand
        )


def _part(response: http.client.HTTPResponse) -> Part:
    length = response.headers.get("Content-Length", "")
    if response.status != http.client.PARTIAL_CONTENT:
        return Part(0, int(length) if length.isdecimal() else -1, response)
    unit, _, span = response.headers.get("Content-Range", "").partition(" ")
    start, _, rest = span.partition("-")
    total = rest.partition("/")[2]
    if unit != "bytes" or not start.isdecimal() or not total.isdecimal():
        raise BrokeOff(f"an answer of no known part: {response.headers.get('Content-Range')!r}")
    return Part(int(start), int(total), response)


def _read(response: http.client.HTTPResponse, amount: int) -> bytes:
    try:
        return response.read(amount)
    except (OSError, http.client.HTTPException) as error:
        raise BrokeOff(_reason(error)) from None


def read_some(part: Part, amount: int) -> bytes:
    """Up to ``amount`` bytes of a part; none at its end. BrokeOff where the connection is cut."""
    return _read(part.stream, amount)


def _reason(error: Exception) -> str:
    inner = error.reason if isinstance(error, urllib.error.URLError) else error
    return str(inner) or type(inner).__name__
