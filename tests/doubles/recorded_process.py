"""The recorded-answer server as a process: ``python -m tests.doubles.recorded_process DATA``.

It prints ``{"port": ...}`` when it listens. When its standard input ends, it prints what it counted and ends: CPU
seconds, requests and answers, the most that were under way at once, and how late its first bytes were.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from harness.benchmarks.qwen3_6_27b.dataset import read_file
from tests.doubles.recorded_answers import PIECES, Fault, Recorded, Style, read_chats
from tests.doubles.recorded_server import RecordedServer


def main(argv: Sequence[str] | None = None) -> int:
    """Serves until standard input ends."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("data", type=Path, help="trajectories, as the round's file has them")
    parser.add_argument("--chats", type=Path, help="single chats and their answers, an object a line")
    parser.add_argument("--first-ms", type=float, default=0.0, help="how long each first byte is kept back")
    parser.add_argument("--crlf", action="store_true", help="lines of events end with CR LF")
    parser.add_argument("--pieces", type=int, default=PIECES, help="of each text and each call's arguments")
    parser.add_argument("--fault", type=Fault.parse, action="append", default=[], help="KIND@TURN[:ID], turns from 0")
    options = parser.parse_args(argv)
    recorded = Recorded(read_file(options.data).trajectories, read_chats(options.chats) if options.chats else ())
    style = Style(pieces=options.pieces, crlf=options.crlf)
    server = RecordedServer(recorded, style=style, faults=options.fault, first_ms=options.first_ms)
    _say({"port": server.port})
    server.run(sys.stdin.fileno())
    late = sorted(server.late_ns)
    told = {
        "cpu_s": time.process_time(),
        "answered": server.answered,
        "asked": len(server.asked),
        "most_under_way": server.most_under_way,
        "connections": server.connections,
        "late_ms": late[len(late) // 2] / 1e6 if late else 0.0,
    }
    server.close()
    _say(told)
    return 0


def _say(told: object) -> None:
    sys.stdout.write(json.dumps(told) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
