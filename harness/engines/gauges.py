"""How full an engine is, asked of its process from outside and answered between two steps of its core.

Beside the socket that a client holds there is one for this question: whoever connects is told, one JSON document, and
the connection ends. So it can be asked while another process measures, and costs nothing as long as nobody asks.
"""

from __future__ import annotations

import dataclasses
import json
import os
import socket
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from harness.events import Occupancy

_LARGEST_BYTES: Final = 4096


def gauges_path(engine: Path) -> Path:
    """Where an engine whose clients connect to ``engine`` answers."""
    return engine.with_name("gauges")


def answer(listener: socket.socket, occupancy: Occupancy | None) -> None:
    """Tells whoever connected to a listener that does not wait; nobody, where nobody waits any more."""
    try:
        connection, _ = listener.accept()
    except (BlockingIOError, ConnectionError):
        return
    with connection:
        connection.setblocking(False)
        told = None if occupancy is None else dataclasses.asdict(occupancy)
        try:
            connection.sendall(json.dumps(told).encode())  # less than any socket's buffer
        except OSError:
            return  # gone before it was told


def ask(engine: Path, timeout_s: float) -> Occupancy | None:
    """What the engine at a socket says; None where it does not say, or not in time."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(timeout_s)
        try:
            connection.connect(os.fspath(gauges_path(engine)))
            said = b"".join(iter(lambda: connection.recv(_LARGEST_BYTES), b""))
        except OSError:
            return None
    try:
        return _occupancy(json.loads(said))
    except ValueError:
        return None


def together(each: Iterable[Occupancy | None]) -> Occupancy | None:
    """Replicas as one engine: requests add up, caches, which are alike, are as full as they are in the mean.

    What one of them does not tell is not known of all; None where nothing is.
    """
    all_of_them = list(each)
    told = [one for one in all_of_them if one is not None]
    if not told or len(told) < len(all_of_them):
        return None
    caches = [one.kv_cache for one in told if one.kv_cache is not None]
    whole = Occupancy(
        running=_sum([one.running for one in told]),
        waiting=_sum([one.waiting for one in told]),
        kv_cache=sum(caches) / len(caches) if len(caches) == len(told) else None,
    )
    return None if whole == Occupancy() else whole


def _sum(counts: list[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None


def _occupancy(said: object) -> Occupancy | None:
    names = {field.name for field in dataclasses.fields(Occupancy)}
    return Occupancy(**said) if isinstance(said, dict) and set(said) == names else None
