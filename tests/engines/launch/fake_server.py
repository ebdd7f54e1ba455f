"""A server for tests: speaks /health, /version, /v1/models, and goes wrong as it is told. Standard library only."""

from __future__ import annotations

import argparse
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

IDLE = "import time; time.sleep(600)"
STUBBORN = f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); {IDLE}"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--loads", type=float, default=0, help="so long it does not listen")
    parser.add_argument("--healthy-after", type=float, default=0)
    parser.add_argument("--never-healthy", action="store_true")
    parser.add_argument("--dies-after", type=float)
    parser.add_argument("--dies-when", type=Path, help="dies when this file is there")
    parser.add_argument("--status", type=int, default=7)
    parser.add_argument("--signal", type=int)
    parser.add_argument("--ignores-term", action="store_true")
    parser.add_argument("--forks", type=Path, help="starts a child and a daemon that ignore SIGTERM; pids go here")
    parser.add_argument("--meek", action="store_true", help="those do not ignore it")
    parser.add_argument("--says", default="loading the weights")
    parser.add_argument("--version", default="1.2.1")
    parser.add_argument("--model", default="tiny")
    parser.add_argument("--max-model-len", type=int)
    parser.add_argument("--metrics")
    parser.add_argument("--server-info")
    options, _ = parser.parse_known_args()
    sys.stderr.write(options.says + "\n")
    sys.stderr.flush()
    if options.ignores_term:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if options.forks is not None:
        fork(options.forks, IDLE if options.meek else STUBBORN)
    if options.dies_after is not None or options.dies_when is not None:
        threading.Thread(target=die, args=(options,), daemon=True).start()
    serve(options)


def fork(told: Path, code: str) -> None:
    child = subprocess.Popen([sys.executable, "-c", code])
    daemon = subprocess.Popen([sys.executable, "-c", code], start_new_session=True)
    told.with_suffix(".new").write_text(f"{os.getpid()} {child.pid} {daemon.pid}")
    told.with_suffix(".new").rename(told)


def die(options: argparse.Namespace) -> None:
    time.sleep(options.dies_after or 0)
    while options.dies_when is not None and not options.dies_when.exists():
        time.sleep(0.02)
    sys.stderr.write("the last words\n")
    sys.stderr.flush()
    if options.signal is not None:
        os.kill(os.getpid(), options.signal)
    os._exit(options.status)


def serve(options: argparse.Namespace) -> None:
    time.sleep(options.loads)
    started = time.monotonic()
    card: dict[str, Any] = {"id": options.model}
    if options.max_model_len is not None:
        card["max_model_len"] = options.max_model_len
    routes: dict[str, str] = {
        "/version": json.dumps({"version": options.version}),
        "/v1/models": json.dumps({"object": "list", "data": [card]}),
        "/environ": json.dumps(dict(os.environ)),
    }
    if options.metrics:
        routes["/metrics"] = options.metrics
    if options.server_info:
        routes["/get_server_info"] = options.server_info

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path == "/health":
                late = time.monotonic() - started < options.healthy_after
                self.answer(503 if late or options.never_healthy else 200, "")
            elif self.path in routes:
                self.answer(200, routes[self.path])
            else:
                self.answer(404, "{}")

        def answer(self, status: int, body: str) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(body.encode())))
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, *_: object) -> None:
            return

    class Server(ThreadingHTTPServer):
        address_family = socket.AF_INET6 if ":" in options.host else socket.AF_INET

    Server((options.host, options.port), Handler).serve_forever()


if __name__ == "__main__":
    main()
