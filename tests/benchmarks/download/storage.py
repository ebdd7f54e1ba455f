"""A storage like MLCommons' on this machine: index, list, files, parts; and what may go wrong with each."""

from __future__ import annotations

import contextlib
import hashlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote

from harness.rules import DatasetDownload

INDEX = "/metadata/gpt-oss-data.uri"
LIST = "/metadata/gpt-oss-data.md5"
BASE = "/gpt-oss_data"


@dataclass
class Storage:
    """What it has and how it misbehaves. ``asked`` is every request: method, path, Range.

    ``cuts``: so many bytes of an answer with a body, then the connection is cut; one an answer, None: not at all.
    ``answers``: status for a path in place of the file, one a request. ``parts``: whether it does ranges.
    ``sizes``: a false length that HEAD tells. ``elsewhere``: paths that redirect to another host.
    """

    files: dict[str, bytes]
    port: int = 0
    base: str | None = None
    listed: str | None = None
    asked: list[tuple[str, str, str | None]] = field(default_factory=list)
    cuts: list[int | None] = field(default_factory=list)
    answers: dict[str, list[int]] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)
    elsewhere: set[str] = field(default_factory=set)
    parts: bool = True

    @property
    def host(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def content(self, path: str) -> bytes | None:
        if path == INDEX:
            return (self.base or self.host + BASE).encode() + b"\n"
        if path == LIST:
            return (self.listed if self.listed is not None else md5_list(self.files)).encode()
        return self.files.get(unquote(path.removeprefix(BASE + "/")))

    def downloads(self) -> list[str]:
        """The files whose content was asked for, in order."""
        asked = [path for method, path, _ in self.asked if method == "GET" and BASE in path]
        return [unquote(path.removeprefix(BASE + "/")) for path in asked]

    def download(self, required: list[str] | None = None, md5: dict[str, str] | None = None) -> DatasetDownload:
        """What a rule pack would say of it."""
        return DatasetDownload.model_validate(
            {
                "index": {"value": self.host + INDEX, "source": "test"},
                "required": {"value": list(self.files) if required is None else required, "source": "test"},
                "md5": {"value": md5 or {}, "source": "test"},
            }
        )


def md5_list(files: dict[str, bytes]) -> str:
    return "".join(f"{md5(content)}  ./{path}\n" for path, content in files.items())


def md5(content: bytes) -> str:
    return hashlib.md5(content, usedforsecurity=False).hexdigest()


class _Handler(BaseHTTPRequestHandler):
    storage: Storage

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
        pass

    def do_HEAD(self) -> None:
        self.answer(body=False)

    def do_GET(self) -> None:
        self.answer(body=True)

    def answer(self, *, body: bool) -> None:
        storage = self.storage
        storage.asked.append((self.command, self.path, self.headers.get("Range")))
        content = storage.content(self.path)
        planned = storage.answers.get(self.path)
        if self.path in storage.elsewhere:
            self.send_response(302)
            self.send_header("Location", "http://login.invalid/")
            self.end_headers()
        elif content is None or planned:
            self.send_error(planned.pop(0) if planned else 404)
        elif not body:
            self.send_response(200)
            self.send_header("Content-Length", str(storage.sizes.get(self.path, len(content))))
            self.end_headers()
        else:
            self.send_content(content)

    def send_content(self, content: bytes) -> None:
        asked, start = self.headers.get("Range"), 0
        if asked and self.storage.parts:
            start = int(asked.removeprefix("bytes=").removesuffix("-"))
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
        else:
            self.send_response(200)
        self.send_header("Content-Length", str(len(content) - start))
        self.end_headers()
        cut = self.storage.cuts.pop(0) if BASE in self.path and self.storage.cuts else None
        with contextlib.suppress(ConnectionError):
            self.wfile.write(content[start:] if cut is None else content[start : start + cut])
        self.close_connection = True


@contextlib.contextmanager
def serving(storage: Storage) -> Iterator[Storage]:
    """The storage, while it is served."""
    handler = type("Handler", (_Handler,), {"storage": storage})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        storage.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        try:
            yield storage
        finally:
            server.shutdown()
            thread.join()
