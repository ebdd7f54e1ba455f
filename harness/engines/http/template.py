"""The bytes of a request. What all requests of a workload share is made once; a prompt and a seed are put between."""

from __future__ import annotations

import json
from typing import Final, Protocol, TypeAlias

import numpy as np
import orjson

from harness.engines.base import Requests, Sampling, TokenEvents, Workload
from harness.engines.bodies import BodyStore
from harness.engines.http.dialects import CHAT_CAP, CHAT_PATH, Dialect

SEED_BITS: Final = 31
"""Seeds are of a size that every server takes."""
_MASK: Final = (1 << 64) - 1

Pieces: TypeAlias = tuple[bytes | memoryview, ...]
"""The bytes of a request, one piece after the other. A chat's is a view of its store, which nobody copies."""


class Template(Protocol):
    """Makes the requests of one workload to one endpoint."""

    def request(self, requests: Requests, place: int, seed: int) -> Pieces:
        """Head and body of the request at a place; IndexError for a row that is not there."""


class IdsTemplate:
    """Prompts of token ids."""

    def __init__(self, head: Head, dialect: Dialect, model: str, workload: Workload) -> None:
        streams = workload.token_events is not TokenEvents.NONE
        fields: dict[str, object] = {"model": model} if dialect.names_model else {}
        fields |= {"stream": streams, **dialect.fixed}
        if streams and dialect.asks_usage:
            fields["stream_options"] = {"include_usage": True}
        values = _values(dialect, workload.sampling)
        sampling = {dialect.names[name]: value for name, value in values.items()}
        if dialect.nested:
            before, between, end = _open(fields), f',"{dialect.nested}":{_open(sampling)}', "}}"
        else:
            before, between, end = _open(fields | sampling), "", "}"
        self._begin = f'{before},"{dialect.prompt}":'.encode()
        self._tail = _Seeded(between, dialect.names["seed"] if dialect.seeded else None, end)
        self._head = head.of(dialect.path)

    def request(self, requests: Requests, place: int, seed: int) -> Pieces:
        """Head and body of the request at a place."""
        prompt = np.ascontiguousarray(requests.prompt(place))
        ids = orjson.dumps(prompt, option=orjson.OPT_SERIALIZE_NUMPY)
        tail = self._tail.with_seed(seed)
        whole = b"%b%d\r\n\r\n%b%b%b" % (
            self._head,
            len(self._begin) + len(ids) + len(tail),
            self._begin,
            ids,
            tail,
        )
        return (whole,)


class ChatTemplate:
    """Chats of a store, spliced into a request as they lie there."""

    def __init__(self, head: Head, dialect: Dialect, model: str, workload: Workload, store: BodyStore) -> None:
        streams = workload.token_events is not TokenEvents.NONE
        fields: dict[str, object] = {"model": model, "stream": streams}
        if streams:
            fields["stream_options"] = {"include_usage": True}
        values = _values(dialect, workload.sampling)
        values[CHAT_CAP] = values.pop("max_new_tokens")
        self._begin = _Seeded(_open(fields | values), "seed" if dialect.seeded else None, ",")
        self._head = head.of(CHAT_PATH)
        self._session_head = head.of(CHAT_PATH, session=True)
        self._store = store

    def request(self, requests: Requests, place: int, seed: int) -> Pieces:
        """Head and body of the request at a place; IndexError for a row that is not in the store."""
        row = requests.rows[place]
        stored = self._store[row]
        session = self._store.session_name(row)
        begin = self._begin.with_seed(seed)
        length = len(begin) + len(stored) - 1  # the stored object's brace is not sent: it goes on with its fields
        head = self._session_head % session.encode() if session else self._head
        return b"%b%d\r\n\r\n%b" % (head, length, begin), stored[1:]


class _Seeded:
    """A piece of a JSON object in which a seed stands, where the server is told one."""

    def __init__(self, before: str, key: str | None, after: str) -> None:
        self._before = f'{before},"{key}":'.encode() if key else f"{before}{after}".encode()
        self._after = after.encode() if key else None

    def with_seed(self, seed: int) -> bytes:
        """The piece for one request."""
        return self._before if self._after is None else b"%b%d%b" % (self._before, seed, self._after)


class Head:
    """The beginning of a request's head, up to the value of Content-Length, which is the last header."""

    def __init__(self, host: str, prefix: str, api_key: str | None) -> None:
        self._host = host
        self._prefix = prefix
        self._key = api_key

    def of(self, path: str, session: bool = False) -> bytes:
        """For a path; with ``session``, a format that takes what a session is called."""
        lines = [f"POST {self._prefix}{path} HTTP/1.1", f"Host: {self._host}", "Content-Type: application/json"]
        lines += [f"Authorization: Bearer {self._key}"] if self._key else []
        head = "\r\n".join(lines) + "\r\n"
        if session:
            head = head.replace("%", "%%") + "X-Session-ID: %b\r\n"
        return (head + "Content-Length: ").encode("ascii")


def seed_of(workload_seed: int, stream: int, row: int, time: int) -> int:
    """The seed of the ``time``-th request for a row, 0 to 2**31 - 1; ``stream`` tells apart who counts the times.

    Steps of splitmix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014).
    """
    state = workload_seed & _MASK
    for value in (stream, row, time):
        state = _mixed(state ^ _mixed(value & _MASK))
    return state >> (64 - SEED_BITS)


def _mixed(value: int) -> int:
    value = (value + 0x9E3779B97F4A7C15) & _MASK
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & _MASK
    return value ^ (value >> 31)


def _values(dialect: Dialect, sampling: Sampling) -> dict[str, object]:
    """A sampling's values by our names, without the seed."""
    return {
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "top_k": dialect.top_k(sampling),
        "max_new_tokens": sampling.max_new_tokens,
        "stop_token_ids": list(sampling.stop_token_ids),
        "min_p": sampling.min_p,
        "repetition_penalty": sampling.repetition_penalty,
        "presence_penalty": sampling.presence_penalty,
        "frequency_penalty": sampling.frequency_penalty,
    }


def _open(fields: dict[str, object]) -> str:
    """A JSON object without its last brace."""
    return json.dumps(fields, separators=(",", ":"))[:-1]
