"""A line of progress a second, without a share in what is measured that anyone could see."""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Callable, Mapping
from typing import Final

EVERY_S: Final = 1.0
LATEST_S: Final = 5.0
SHARE: Final = 0.01
"""Of the CPU time of the process, what telling may take: else it becomes more seldom."""


class ProgressPipe:
    """A pipe that takes a JSON line a look. One that finds no room is dropped: a reader that stands still (a terminal
    that is held by ^S) must not hold what is measured.
    """

    def __init__(self, descriptor: int) -> None:
        os.set_blocking(descriptor, False)
        self._descriptor = descriptor

    def tell(self, progress: Mapping[str, object]) -> None:
        """Writes a line, whole or not at all: it is shorter than what a pipe takes in one piece."""
        with contextlib.suppress(BlockingIOError, BrokenPipeError):
            os.write(self._descriptor, json.dumps(progress).encode() + b"\n")


class Teller:
    """Looks and tells once a second; more seldom, every five at the latest, where a look takes long beside what else
    the process does: of a process that mostly waits even little is a share. All calls come from one thread.
    """

    def __init__(self, pipe: ProgressPipe, look: Callable[[], Mapping[str, object]]) -> None:
        self._pipe = pipe
        self._look = look
        self._began = time.monotonic()
        self._began_cpu_s = time.process_time()
        self._due = self._began + EVERY_S

    def turn(self) -> None:
        """Tells, if it is time. To be called more often than that."""
        now = time.monotonic()
        if now < self._due:
            return
        began = time.thread_time()
        self._pipe.tell(self._look())
        self._due = now + self._pause_s(time.thread_time() - began, now - self._began)

    def _pause_s(self, took_s: float, elapsed_s: float) -> float:
        """How long until the process has used so much that what was just taken is a small share of it."""
        cores = (time.process_time() - self._began_cpu_s) / elapsed_s
        return min(LATEST_S, max(EVERY_S, took_s / max(SHARE * cores, 1e-9)))
