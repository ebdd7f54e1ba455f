"""A server in a process of its own, and a client that knows HTTP and nothing of the package."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from tests.harness_process import ROOT

PATIENCE_S = 120.0
JSON = {"content-type": "application/json"}


@dataclass(frozen=True)
class Answer:
    """A response with its whole body."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def events(self) -> list[Any]:
        """The data of each event: what JSON says, or the text."""
        return events_of(self.body)


def events_of(body: bytes) -> list[Any]:
    data = [block.removeprefix(b"data: ") for block in body.split(b"\n\n") if block]
    return [each.decode() if each == b"[DONE]" else json.loads(each) for each in data]


class Server:
    """``python -m harness serve`` with these options, on a port that was free."""

    def __init__(self, *options: object, port: int = 0) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "harness", "serve", *map(str, options), "--port", str(port)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(ROOT), "HARNESS_CACHE_DIR": str(ROOT / "build" / "cache")},
            cwd=ROOT,
            start_new_session=True,
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        found = re.search(r"http://127\.0\.0\.1:(\d+)", line)
        if found is None:
            raise AssertionError(f"the server did not come up: {line}{self.process.communicate()[1]}")
        self.port = int(found[1])
        self.engine = psutil.Process(self.process.pid).children()[0]

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        self.end()

    def end(self) -> tuple[int, str]:
        """How it ended, and what it said; nothing is left of it."""
        try:
            out, err = self.process.communicate(timeout=PATIENCE_S)
        finally:
            self.process.kill()
        self.engine.wait(PATIENCE_S)
        return self.process.returncode, out + err

    def connection(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)

    def get(self, path: str) -> Answer:
        with contextlib.closing(self.connection()) as connection:
            return ask(connection, "GET", path)

    def post(self, path: str, body: object, **headers: str) -> Answer:
        """``body``: bytes as they are, or what JSON is made of."""
        with contextlib.closing(self.connection()) as connection:
            return ask(connection, "POST", path, body, **headers)

    def complete(self, prompt: object, *, fault: str | None = None, row: int | None = None, **body: object) -> Answer:
        return self.post("/v1/completions", {"model": "m", "prompt": prompt} | body, **_headers(fault, row))

    def chat(self, text: object, *, fault: str | None = None, row: int | None = None, **body: object) -> Answer:
        content = {"model": "m", "messages": [{"role": "user", "content": text}]} | body
        return self.post("/v1/chat/completions", content, **_headers(fault, row))

    def open_completion(
        self, prompt: Sequence[int], *, fault: str | None = None, row: int | None = None, **changes: object
    ) -> Raw:
        """A stream of ids on a connection of its own, to be read by hand."""
        body = {"model": "m", "prompt": list(prompt), "stream": True, "detokenize": False, "max_tokens": 64} | changes
        return Raw(self.port, body, _headers(fault, row))

    def active(self) -> int:
        return int(self.get("/metrics").json[0]["numActiveRequests"])


def _headers(fault: str | None, row: int | None) -> dict[str, str]:
    given = {"X-Fault": fault, "X-Row": None if row is None else str(row)}
    return {name: value for name, value in given.items() if value is not None}


def ask(connection: http.client.HTTPConnection, method: str, path: str, body: object = None, **headers: str) -> Answer:
    """One request; the connection stays open."""
    sent = None if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
    connection.request(method, path, sent, (JSON if sent is not None else {}) | headers)
    response = connection.getresponse()
    return Answer(response.status, {name.lower(): value for name, value in response.getheaders()}, response.read())


class Raw:
    """One request for a stream on a bare socket."""

    def __init__(self, port: int, body: object, headers: Mapping[str, str]) -> None:
        content = json.dumps(body).encode()
        self.socket = socket.create_connection(("127.0.0.1", port), PATIENCE_S)
        lines = ["POST /v1/completions HTTP/1.1", "host: x", "content-type: application/json"]
        lines += [f"content-length: {len(content)}", *(f"{name}: {value}" for name, value in headers.items()), "", ""]
        self.socket.sendall("\r\n".join(lines).encode() + content)
        self.seen = b""

    def until(self, text: bytes) -> bytes:
        """Reads until this was seen."""
        while text not in self.seen:
            piece = self.socket.recv(65536)
            assert piece, self.seen
            self.seen += piece
        return self.seen

    def rest(self) -> bytes:
        """Reads to the end of the connection. Raises ConnectionResetError where it was reset."""
        while piece := self.socket.recv(65536):
            self.seen += piece
        return self.seen

    def close(self) -> None:
        self.socket.close()


def waits_for(condition: Any) -> None:
    """Until it holds."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def run_serve(*options: object, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """For calls that end by themselves."""
    return subprocess.run(
        [sys.executable, "-m", "harness", "serve", *map(str, options)],
        capture_output=True,
        text=True,
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        timeout=PATIENCE_S,
        check=False,
    )
