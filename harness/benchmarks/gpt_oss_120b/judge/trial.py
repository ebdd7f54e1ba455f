"""One solution on the tests of one problem, in a process of its own, up to the first test that it fails."""

from __future__ import annotations

import enum
import json
import os
import select
import signal
import struct
import subprocess
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from harness.benchmarks.gpt_oss_120b.judge.limits import Limits
from harness.benchmarks.gpt_oss_120b.judge.problems import Problem
from harness.benchmarks.gpt_oss_120b.judge.sandbox import Cell

_FRAME = struct.Struct(">I")
_GLANCE_MS = 200.0
"""How often a wait looks whether all is to end."""
_CHUNK = 1 << 16
_LAST_WORDS_S = 5.0


class Ending(enum.Enum):
    """How a trial ended. All but PASSED and NOT_JUDGED are the solution's own fault."""

    PASSED = "passed"
    WRONG_ANSWER = "wrong answer"
    CRASHED = "crashed"
    TOO_LONG = "time limit"
    TOO_MUCH = "output limit"
    NOT_JUDGED = "not judged"
    """The judge could not do its work; it says nothing about the solution."""


@dataclass(frozen=True, slots=True)
class Trial:
    """``tests`` were begun; ``detail`` is for people and may hold what the solution said."""

    ending: Ending
    tests: int
    detail: str


class _Ended(Exception):
    """The trial is over before its tests are."""

    def __init__(self, ending: Ending, detail: str) -> None:
        self.ending = ending
        self.detail = detail


def try_solution(code: str, problem: Problem, limits: Limits, cell: Cell, stop: threading.Event) -> Trial:
    """Runs a solution against a problem's tests. ``stop`` ends it as NOT_JUDGED."""
    tests = 0
    # A lone surrogate cannot be written down; in the reference it cannot be compiled either.
    order = json.dumps({"code": code, "function": problem.function}).encode()
    try:
        with cell.start(limits.resources(len(problem.tests)), limits.folder_bytes) as process:
            last_s = time.monotonic() + limits.total_s(len(problem.tests))
            talk = _Talk(process, cell.sandbox == "namespaces", limits, last_s, stop)
            try:
                talk.ask(order)
                for test in problem.tests:
                    tests += 1
                    reply = talk.ask(b" " + test.given.encode("utf-8", "surrogatepass"))
                    if not problem.accepts(test, reply):
                        return Trial(Ending.WRONG_ANSWER, tests, f"test {tests} of {len(problem.tests)}")
            except BrokenPipeError:
                talk.explain_end()
    except _Ended as ended:
        return Trial(ended.ending, tests, ended.detail)
    except OSError as error:
        return Trial(Ending.NOT_JUDGED, tests, f"no process could be started: {error}")
    return Trial(Ending.PASSED, tests, f"{tests} tests")


@dataclass(frozen=True, slots=True)
class _Talk:
    """The judge's end of the pipes to solve.py. Every wait has an end."""

    process: subprocess.Popen[bytes]
    confined: bool
    limits: Limits
    last_s: float
    stop: threading.Event

    def ask(self, content: bytes) -> Mapping[str, Any]:
        """Sends one frame and returns the reply. Raises _Ended where there is none or where it tells of a crash."""
        deadline = min(time.monotonic() + self.limits.test_s, self.last_s)
        self._send(_FRAME.pack(len(content)) + content, deadline)
        (length,) = _FRAME.unpack(self._receive(_FRAME.size, deadline))
        if length > self.limits.output_bytes:
            raise _Ended(Ending.TOO_MUCH, f"an answer of {length} bytes, allowed are {self.limits.output_bytes}")
        try:
            reply = json.loads(self._receive(length, deadline))
        except (ValueError, RecursionError):
            raise _Ended(Ending.CRASHED, "it wrote into the judge's pipe") from None
        if not isinstance(reply, dict):
            raise _Ended(Ending.CRASHED, "it wrote into the judge's pipe")
        if "crash" in reply:
            raise _Ended(Ending.CRASHED, str(reply["crash"]))
        return reply

    def _send(self, data: bytes, deadline: float) -> None:
        assert self.process.stdin is not None  # noqa: S101 - for mypy: it was asked for
        pipe = self.process.stdin.fileno()
        os.set_blocking(pipe, False)
        left = memoryview(data)
        while left:
            self._wait(pipe, select.POLLOUT, deadline)
            left = left[os.write(pipe, left[:_CHUNK]) :]

    def _receive(self, size: int, deadline: float) -> bytes:
        assert self.process.stdout is not None  # noqa: S101 - for mypy: it was asked for
        pipe = self.process.stdout.fileno()
        parts = bytearray()
        while len(parts) < size:
            self._wait(pipe, select.POLLIN, deadline)
            part = os.read(pipe, min(_CHUNK, size - len(parts)))
            if not part:
                self.explain_end()
            parts += part
        return bytes(parts)

    def _wait(self, pipe: int, event: int, deadline: float) -> None:
        poll = select.poll()
        poll.register(pipe, event)
        while True:
            left_ms = (deadline - time.monotonic()) * 1000
            if self.stop.is_set():
                raise _Ended(Ending.NOT_JUDGED, "interrupted")
            if left_ms <= 0:
                raise _Ended(Ending.TOO_LONG, f"no answer to a test within {self.limits.test_s:g} s")
            if poll.poll(min(left_ms, _GLANCE_MS) + 1):
                return

    def explain_end(self) -> None:
        """Raises _Ended for a process that closed its pipes: as confine.py tells it, or as it ended itself."""
        words = self._last_words()
        for line in words.splitlines():
            kind, _, rest = line.partition(": ")
            if kind == "refused":
                raise _Ended(Ending.NOT_JUDGED, f"the kernel refused the sandbox: {rest}")
            if kind == "ended":
                raise self._ended(int(rest))
        if self.confined or words:
            # Without a word of confine.py's nobody knows whether the solution was to blame.
            raise _Ended(Ending.NOT_JUDGED, f"the sandbox broke: {words.strip()[-200:] or 'it said nothing'}")
        raise self._ended(_status(self.process))

    def _ended(self, status: int) -> _Ended:
        if status == -signal.SIGKILL:
            # Nobody in there can send it: the kernel did, for want of memory on this machine or for the CPU limit.
            return _Ended(Ending.NOT_JUDGED, "the kernel killed it (this machine is out of memory?)")
        if status < 0:
            return _Ended(Ending.CRASHED, f"ended by {signal.Signals(-status).name}")
        return _Ended(Ending.CRASHED, f"ended with status {status} before it answered")

    def _last_words(self) -> str:
        assert self.process.stderr is not None  # noqa: S101 - for mypy: it was asked for
        pipe = self.process.stderr.fileno()
        words = bytearray()
        deadline = time.monotonic() + _LAST_WORDS_S
        poll = select.poll()
        poll.register(pipe, select.POLLIN)
        while (left := deadline - time.monotonic()) > 0 and poll.poll(left * 1000):
            part = os.read(pipe, _CHUNK)
            if not part:
                break
            words += part
            if b"ended: " in words and words.endswith(b"\n"):
                break
        return words.decode("utf-8", "replace")


def _status(process: subprocess.Popen[bytes]) -> int:
    """How a process ended, minus the signal where one ended it; it stays to be waited for, so that its group does."""
    found = os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert found is not None  # noqa: S101 - for mypy: without WNOHANG there is a result
    return found.si_status if found.si_code == os.CLD_EXITED else -found.si_status
