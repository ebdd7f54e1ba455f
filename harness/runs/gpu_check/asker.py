"""One completion at a time over HTTP, read plainly: what is measured here is the server, not our client."""

from __future__ import annotations

import http.client
import json
import select
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlsplit

COMPLETIONS: Final = "/v1/completions"
_DATA: Final = b"data:"
_END: Final = b"[DONE]"
_SAMPLING: Final[Mapping[str, object]] = {
    "temperature": 1.0,
    "top_p": 1.0,
    "top_k": 0,
    "min_p": 0.0,
    "repetition_penalty": 1.0,
    "presence_penalty": 0.0,
    "frequency_penalty": 0.0,
}
"""Every field of it that a run sends: one that this server does not take is found here."""


class Unanswered(Exception):
    """The server did not answer, or not as its protocol says."""


@dataclass(slots=True)
class Completion:
    """An answer. ``chunks`` are the sizes, in tokens, in which a stream brought it; the whole is one of them."""

    token_ids: list[int] = field(default_factory=list)
    text: str = ""
    finish: str | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    chunks: list[int] = field(default_factory=list)
    first_s: float = 0.0
    seconds: float = 0.0

    def add(self, choice: Mapping[str, Any]) -> None:
        """One choice of a response or chunk. Raises Unanswered where it has no ids."""
        ids = choice.get("token_ids")
        if not isinstance(ids, list) or not all(isinstance(each, int) for each in ids):
            if not choice.get("finish_reason") or not self.chunks:
                raise Unanswered(f"a choice has token_ids {ids!r} in spite of detokenize: false")
            ids = []
        self.token_ids += ids
        self.chunks += [len(ids)] if ids else []
        self.text += choice.get("text") or ""
        self.finish = choice.get("finish_reason") or self.finish

    def count(self, usage: object) -> None:
        """The usage of a response or chunk; None leaves what was told."""
        if isinstance(usage, Mapping):
            self.prompt_tokens, self.completion_tokens = usage.get("prompt_tokens"), usage.get("completion_tokens")


class Asker:
    """Asks one server for completions of one model, each on a connection of its own."""

    def __init__(self, url: str, model: str, *, timeout_s: float = 120.0) -> None:
        self.url = url
        self.model = model
        self._timeout_s = timeout_s

    def complete(self, prompt: list[int], cap: int, **fields: object) -> Completion:
        """One answer. ``fields`` are those of the request beside prompt and cap; None leaves one out."""
        started = time.monotonic()
        content = _object(self._ask(self._body(prompt, cap, fields)))
        answer = Completion()
        answer.add(_choice(content))
        answer.count(content.get("usage"))
        answer.seconds = answer.first_s = time.monotonic() - started
        return answer

    def stream(self, prompt: list[int], cap: int, **fields: object) -> Completion:
        """One answer as it comes, with its usage."""
        fields = {"stream": True, "stream_options": {"include_usage": True}} | fields
        connection = self._connect()
        started, answer = time.monotonic(), Completion()
        try:
            response = self._send(connection, self._body(prompt, cap, fields))
            if response.status != http.client.OK:
                raise Unanswered(f"HTTP {response.status}: {_excerpt(response.read())}")
            for line in response:
                if not line.startswith(_DATA):
                    continue
                data = line[len(_DATA) :].strip()
                if data == _END:
                    break
                self._chunk(answer, _object(data), started)
            else:
                raise Unanswered("the stream ended without [DONE]")
        except (OSError, http.client.HTTPException) as error:
            raise Unanswered(f"{type(error).__name__}: {error}") from error
        finally:
            connection.close()
        answer.seconds = time.monotonic() - started
        return answer

    def status(self, body: Mapping[str, object]) -> tuple[int, str]:
        """The status of a request of any body, and the beginning of what came."""
        connection = self._connect()
        try:
            response = self._send(connection, body)
            return response.status, _excerpt(response.read())
        except (OSError, http.client.HTTPException) as error:
            raise Unanswered(f"{type(error).__name__}: {error}") from error
        finally:
            connection.close()

    def body(self, prompt: list[int], cap: int, **fields: object) -> dict[str, object]:
        """The body of a request, to be changed."""
        return self._body(prompt, cap, fields)

    def idle_s(self, patience_s: float) -> float | None:
        """How long the server leaves a connection open after a response; None for longer than ``patience_s``."""
        connection = self._connect()
        try:
            connection.request("GET", "/health")
            connection.getresponse().read()
            if connection.sock is None:
                return 0.0
            started = time.monotonic()
            readable, _, _ = select.select([connection.sock], [], [], patience_s)
            return time.monotonic() - started if readable else None
        except (OSError, http.client.HTTPException) as error:
            raise Unanswered(f"{type(error).__name__}: {error}") from error
        finally:
            connection.close()

    def _body(self, prompt: list[int], cap: int, fields: Mapping[str, object]) -> dict[str, object]:
        fixed = {"model": self.model, "prompt": prompt, "max_tokens": cap, "detokenize": False}
        return {name: value for name, value in {**fixed, **_SAMPLING, **fields}.items() if value is not None}

    def _chunk(self, answer: Completion, content: Mapping[str, Any], started: float) -> None:
        if "error" in content:
            raise Unanswered(f"the stream tells an error: {content['error']}")
        if content.get("choices"):
            answer.add(_choice(content))
            answer.first_s = answer.first_s or time.monotonic() - started
        answer.count(content.get("usage"))

    def _ask(self, body: Mapping[str, object]) -> bytes:
        connection = self._connect()
        try:
            response = self._send(connection, body)
            content = response.read()
        except (OSError, http.client.HTTPException) as error:
            raise Unanswered(f"{type(error).__name__}: {error}") from error
        finally:
            connection.close()
        if response.status != http.client.OK:
            raise Unanswered(f"HTTP {response.status}: {_excerpt(content)}")
        return content

    def _send(self, connection: http.client.HTTPConnection, body: Mapping[str, object]) -> http.client.HTTPResponse:
        connection.request("POST", COMPLETIONS, json.dumps(body), {"Content-Type": "application/json"})
        return connection.getresponse()

    def _connect(self) -> http.client.HTTPConnection:
        parts = urlsplit(self.url)
        kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        return kind(parts.hostname or "", parts.port, timeout=self._timeout_s)


def _object(data: bytes) -> dict[str, Any]:
    try:
        content = json.loads(data)
    except (ValueError, RecursionError):
        raise Unanswered(f"no JSON: {_excerpt(data)}") from None
    if not isinstance(content, dict):
        raise Unanswered(f"no JSON object: {_excerpt(data)}")
    return content


def _choice(content: Mapping[str, Any]) -> Mapping[str, Any]:
    choices = content.get("choices")
    if not isinstance(choices, list) or len(choices) != 1 or not isinstance(choices[0], dict):
        raise Unanswered(f"choices are {choices!r}")
    return choices[0]


def _excerpt(content: bytes) -> str:
    text = " ".join(content[:2000].decode("utf-8", "replace").split())
    return text if len(text) <= 200 else text[:199] + "…"
