"""Whether the judge judges: solutions of which is known how they must come out, tried before any that counts."""

from __future__ import annotations

import concurrent.futures
import contextlib
import dataclasses
import socket
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from harness.benchmarks.gpt_oss_120b.judge.limits import MIB, Limits
from harness.benchmarks.gpt_oss_120b.judge.problems import Problem, Test
from harness.benchmarks.gpt_oss_120b.judge.sandbox import Cell, Sandbox
from harness.benchmarks.gpt_oss_120b.judge.trial import Ending, Trial, try_solution
from harness.errors import MissingError

_PROGRAM = Problem("canary of a program", None, (Test("1 2\n", "3\n"), Test("20 22\n", "42\n")))
_FUNCTION = Problem("canary of a function", "total", (Test("1\n2", "3"), Test("20\n22", "42")))
_RIGHT = "print(sum(map(int, input().split())))"
_LOOP_S = 1.0
_START_S = 30.0
_EATEN = 256 * MIB
_AT_ONCE = 4


@dataclass(frozen=True, slots=True)
class Known:
    """A solution and how it must come out. ``confined``: only namespaces make it do so."""

    name: str
    code: str
    ending: Ending
    problem: Problem = _PROGRAM
    confined: bool = False


def knowns(port: int, folder: Path) -> tuple[Known, ...]:
    """The solutions. Somebody listens at the port, and the folder has a file ``secret``: none of it may be reached."""
    caught = "except OSError:\n    raise SystemExit"
    return (
        Known("a right program", _RIGHT, Ending.PASSED),
        Known(
            "a right function",
            "class Solution:\n    def total(self, a: int, b: int) -> int:\n        return a + b",
            Ending.PASSED,
            _FUNCTION,
        ),
        Known(
            "a right program with a thread",
            f"import threading\ndef main():\n    {_RIGHT}\nt = threading.Thread(target=main)\nt.start()\nt.join()",
            Ending.PASSED,
        ),
        Known("a wrong program", "print(sum(map(int, input().split())) - 1)", Ending.WRONG_ANSWER),
        Known("a wrong function", "def total(a, b):\n    return [a + b]", Ending.WRONG_ANSWER, _FUNCTION),
        Known("a looping one", "while True:\n    pass", Ending.TOO_LONG),
        Known("a sleeping one", "import time\ntime.sleep(3600)", Ending.TOO_LONG),
        Known("a crashing one", "print(1 / 0)", Ending.CRASHED),
        Known("one that ends its process", "import os\nos._exit(0)", Ending.CRASHED),
        Known("one that is no Python", "print(", Ending.CRASHED),
        Known("a memory-eating one", "x = []\nwhile True:\n    x.append(bytearray(1 << 24))", Ending.CRASHED),
        Known(
            "one that fills the disk", "f = open('x', 'wb')\nwhile True:\n    f.write(bytes(1 << 20))", Ending.CRASHED
        ),
        Known(
            "a network-using one",
            f"import socket\ntry:\n    socket.create_connection(('127.0.0.1', {port}), 1)\n{caught}\n{_RIGHT}",
            Ending.WRONG_ANSWER,
            confined=True,
        ),
        Known(
            "one that reads files of others",
            f"try:\n    open({str(folder / 'secret')!r}).read()\n{caught}\n{_RIGHT}",
            Ending.WRONG_ANSWER,
            confined=True,
        ),
        Known(
            "one that writes outside its folder",
            f"try:\n    open({str(folder / 'new')!r}, 'w').close()\n{caught}\n{_RIGHT}",
            Ending.WRONG_ANSWER,
            confined=True,
        ),
        Known(
            "one that sees other processes",
            "import posix\npids = [int(p) for p in posix.listdir('/proc') if p.isdigit()]\n"
            f"if max(pids, default=0) > 4:\n    {_RIGHT}",
            Ending.WRONG_ANSWER,
            confined=True,
        ),
        Known(
            "one that multiplies",
            "import posix, time\ntry:\n    while True:\n        if posix.fork() == 0:\n            time.sleep(9)\n"
            f"{caught}\n{_RIGHT}",
            Ending.WRONG_ANSWER,
            confined=True,
        ),
    )


def self_test(limits: Limits, sandbox: Sandbox) -> list[str]:
    """Tries them all, under smaller limits; one line for each. MissingError where one comes out otherwise.

    Without namespaces those that only namespaces hold are not tried.
    """
    with _bait() as (port, folder), concurrent.futures.ThreadPoolExecutor(_AT_ONCE) as pool:
        asked = [known for known in knowns(port, folder) if sandbox == "namespaces" or not known.confined]
        trials = list(pool.map(lambda known: _try(known, limits, sandbox), asked))
    for known, trial in zip(asked, trials, strict=True):
        if trial.ending is not known.ending:
            raise _failed(known, trial)
    return [f"{known.name}: {trial.ending.value}" for known, trial in zip(asked, trials, strict=True)]


def _try(known: Known, limits: Limits, sandbox: Sandbox) -> Trial:
    """One that must not end is given a second; the others as long as a busy machine may need."""
    test_s = min(limits.test_s, _LOOP_S if known.ending is Ending.TOO_LONG else _START_S)
    small = dataclasses.replace(limits, test_s=test_s, memory_bytes=min(limits.memory_bytes, _EATEN), folder_bytes=MIB)
    return try_solution(known.code, known.problem, small, Cell(sandbox), threading.Event())


def _failed(known: Known, trial: Trial) -> MissingError:
    if trial.ending is Ending.NOT_JUDGED:
        return MissingError(
            f"this machine does not let the judge shut in the code that it runs: {trial.detail}",
            expected="user, pid, network and mount namespaces for this user",
            mend="allow them (see docs/judge.md), or run model-written code without: --judge-sandbox=none (recorded)",
        )
    return MissingError(
        f"the judge's self test failed: {known.name} came out as {trial.ending.value} ({trial.detail})",
        expected=known.ending.value,
        mend="nothing is scored on this machine until the judge judges right; see docs/judge.md",
    )


@contextlib.contextmanager
def _bait() -> Iterator[tuple[int, Path]]:
    with tempfile.TemporaryDirectory(prefix="judge-bait-") as folder, socket.create_server(("127.0.0.1", 0)) as server:
        (Path(folder) / "secret").write_text("the expected outputs", encoding="utf-8")
        yield server.getsockname()[1], Path(folder)
