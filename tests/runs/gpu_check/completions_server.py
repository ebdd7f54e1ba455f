"""A server of completions whose every manner can be changed, to see what the check says of it."""

from __future__ import annotations

import contextlib
import hashlib
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

VOCABULARY = 50_000
LONGEST = 200


@dataclass
class Manners:
    """How it answers. The defaults are those that the harness relies on."""

    model: str = "some-model"
    version: str = "1.2.1"
    ids: bool = True
    text: str = ""
    interval: int = 20
    first: int = 1
    stop_in_ids: bool = False
    stop_obeyed: bool = True
    finish: str = "stop"
    repeats: bool = False
    seeds_obeyed: bool = True
    outside: bool = False
    counted_more: int = 0
    unknown_refused: bool = True
    long_refused: bool = True
    idle_s: float = 30.0
    status: int = 200
    raw: bytes | None = None
    stream_end: bytes = b"data: [DONE]\n\n"
    last_chunk_empty: bool = False
    requests: list[dict[str, Any]] = field(default_factory=list)


KNOWN = {
    "model", "prompt", "max_tokens", "detokenize", "temperature", "top_p", "top_k", "seed", "stream", "stream_options",
    "ignore_eos", "stop_token_ids", "min_p", "repetition_penalty", "presence_penalty", "frequency_penalty",
}  # fmt: skip


def answer_to(body: dict[str, Any], manners: Manners) -> tuple[list[int], str]:
    """The ids, and why they end."""
    greedy = body["top_k"] == 1
    seed = 0 if greedy or not manners.seeds_obeyed else body.get("seed", id(body))
    ids: list[int] = []
    for position in range(body["max_tokens"]):
        key = repr((body["prompt"], seed, 0 if manners.repeats else position)).encode()
        ids.append(int.from_bytes(hashlib.sha256(key).digest()[:4], "big") % VOCABULARY)
        if manners.stop_obeyed and ids[-1] in body.get("stop_token_ids", ()):
            return ids if manners.stop_in_ids else ids[:-1], manners.finish
    if manners.outside:
        ids[-1] = VOCABULARY
    return ids, "length"


def chunks_of(ids: list[int], manners: Manners) -> Iterator[list[int]]:
    yield ids[: manners.first]
    for i in range(manners.first, len(ids), manners.interval):
        yield ids[i : i + manners.interval]
    if manners.last_chunk_empty:
        yield []


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    manners: Manners

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        answers: dict[str, object] = {
            "/v1/models": {"data": [{"id": self.manners.model}]},
            "/version": {"version": self.manners.version},
        }
        known = self.path in answers or self.path == "/health"
        content = json.dumps(answers[self.path]).encode() if self.path in answers else b""
        self._reply(200 if known else 404, content)

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.manners.requests.append(body)
        refusal = self._refusal(body)
        if refusal is not None:
            self._reply(refusal, b'{"message": "no"}')
        elif self.manners.raw is not None:
            self._reply(200, self.manners.raw)
        elif body.get("stream"):
            self._stream(body)
        else:
            ids, finish = answer_to(body, self.manners)
            self._reply(200, json.dumps(self._content(ids, finish) | self._usage(body, ids)).encode())

    def _refusal(self, body: dict[str, Any]) -> int | None:
        if self.manners.status != 200:
            return self.manners.status
        unknown, long = set(body) - KNOWN, len(body["prompt"]) > LONGEST
        return 400 if (unknown and self.manners.unknown_refused) or (long and self.manners.long_refused) else None

    def _stream(self, body: dict[str, Any]) -> None:
        self.close_connection = True
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        ids, finish = answer_to(body, self.manners)
        pieces = list(chunks_of(ids, self.manners))
        for i, piece in enumerate(pieces):
            self._event(self._content(piece, finish if i == len(pieces) - 1 else None))
        self._event({"choices": []} | self._usage(body, ids))
        self.wfile.write(self.manners.stream_end)

    def _event(self, content: dict[str, Any]) -> None:
        self.wfile.write(b"data: " + json.dumps(content).encode() + b"\n\n")

    def _content(self, ids: list[int], finish: str | None) -> dict[str, Any]:
        told = ids if self.manners.ids and ids else None
        return {"choices": [{"text": self.manners.text, "token_ids": told, "finish_reason": finish}]}

    def _usage(self, body: dict[str, Any], ids: list[int]) -> dict[str, Any]:
        count = len(ids) + self.manners.counted_more
        return {"usage": {"prompt_tokens": len(body["prompt"]), "completion_tokens": count}}

    def _reply(self, status: int, content: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


@contextlib.contextmanager
def serving(manners: Manners) -> Iterator[str]:
    """The base URL of a server that answers so, on a port that was free."""

    handler = type("Handler", (_Handler,), {"manners": manners, "timeout": manners.idle_s})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = False
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
