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
"""Of the CPU time of the process, what telling may take before it becomes more seldom."""


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
    """Looks and tells once a second; every five where a look takes long beside what else the process does, for of a
    process that mostly waits even little is a share. All calls come from one thread.
    """

    def __init__(self, pipe: ProgressPipe, look: Callable[[], Mapping[str, object]]) -> None:
        self._pipe = pipe
        self._look = look
        self._began_cpu_s = time.process_time()
        self._took_s = 0.0
        self._due = time.monotonic() + EVERY_S
        self._latest = self._due

    def turn(self) -> None:
        """Tells, if it is time. To be called more often than that."""
        now = time.monotonic()
        if now < self._due or (now < self._latest and self._takes_too_much()):
            return
        began = time.thread_time()
        self._pipe.tell(self._look())
        self._took_s += time.thread_time() - began
        self._due, self._latest = now + EVERY_S, now + LATEST_S

    def _takes_too_much(self) -> bool:
        return self._took_s > SHARE * (time.process_time() - self._began_cpu_s)
