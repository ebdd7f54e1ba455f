"""Holds a server and all that it starts: a script of its own, ``python -I supervisor.py -- COMMAND``.

It leads a session and adopts what the command leaves behind (PR_SET_CHILD_SUBREAPER), so that workers, launchers and
daemons can all be found below it. It ends them when the command ends, when it is told to (SIGTERM), and when its
starter is gone, however that went: standard input is a pipe whose other end only the starter holds. Then it ends as
the command did. A container is no process of ours: its client is, and ``--container`` says how to remove it.

Standard library only, and nothing of the package: it runs in the server's environment, not in the harness's.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import os
import resource
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Final

PR_SET_PDEATHSIG: Final = 1
PR_SET_CHILD_SUBREAPER: Final = 36
LIFELINE: Final = 0
NOT_STARTED: Final = 127
LEFT_BEHIND_GRACE_S: Final = 5.0
"""For what the command has left, when it has ended."""
KILLED_GRACE_S: Final = 30.0
"""A process that does not end on SIGKILL waits in the kernel, for a driver mostly."""
POLL_S: Final = 0.05


@dataclass(frozen=True, slots=True)
class Relative:
    """A process as /proc shows it; ``started`` is in clock ticks since the machine's start and tells it from a later
    one of the same number.
    """

    pid: int
    parent: int
    session: int
    started: int
    zombie: bool


def relatives() -> list[Relative]:
    """All processes that are there."""
    found = (relative(int(path.name)) for path in Path("/proc").iterdir() if path.name.isdigit())
    return [each for each in found if each is not None]


def relative(pid: int) -> Relative | None:
    """One process; None where there is none of this number."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return Relative(pid, int(fields[1]), int(fields[3]), int(fields[19]), fields[0] in "ZX")


def below(pid: int) -> list[int]:
    """The living processes that descend from one."""
    children: dict[int, list[Relative]] = {}
    for each in relatives():
        children.setdefault(each.parent, []).append(each)
    found, look = [], [pid]
    while look:
        generation = children.get(look.pop(), [])
        look += [each.pid for each in generation]
        found += [each.pid for each in generation if not each.zombie]
    return found


def send(pids: Iterable[int], number: int) -> None:
    """A signal to each; those that have gone meanwhile do not matter."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


class Supervisor:
    """One command from its start to the end of all that came of it."""

    def __init__(self, grace_s: float) -> None:
        self._grace_s = grace_s
        self._parent = os.getppid()
        self._told = False
        self._child: subprocess.Popen[bytes] | None = None
        self._status: int | None = None
        self._wakes, wake = socket.socketpair()
        for end in (self._wakes, wake):
            end.setblocking(False)
        self._wake = wake

    def run(self, command: Sequence[str]) -> int:
        """Runs the command; its status as waitpid(2) has it."""
        self._listen()
        try:
            self._child = start(command)
        except OSError as error:
            say(f"cannot start {command[0]}: {error.strerror}")
            return NOT_STARTED << 8
        while self._status is None and not self._asked_to_end():
            self._wait(None)
        self._end_all(self._child.pid)
        return self._status or 0

    def _listen(self) -> None:
        """Signals become bytes to wait for. Handlers, not SIG_IGN: what is ignored stays so in the command."""
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD):
            signal.signal(number, self._hear)
        signal.set_wakeup_fd(self._wake.fileno(), warn_on_full_buffer=False)
        libc = ctypes.CDLL(None)
        libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        libc.prctl(PR_SET_PDEATHSIG, int(signal.SIGHUP), 0, 0, 0)

    def _hear(self, number: int, frame: FrameType | None) -> None:
        self._told = self._told or number == signal.SIGTERM

    def _asked_to_end(self) -> bool:
        return self._told or os.getppid() != self._parent

    def _wait(self, timeout_s: float | None) -> None:
        """Until a signal, the end of the lifeline or the timeout; reaps who has ended."""
        wakes = self._wakes.fileno()
        readable, _, _ = select.select([wakes] if self._told else [wakes, LIFELINE], [], [], timeout_s)
        if LIFELINE in readable and not os.read(LIFELINE, 4096):
            self._told = True
        with contextlib.suppress(BlockingIOError):
            self._wakes.recv(4096)
        self._reap()

    def _reap(self) -> None:
        with contextlib.suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG)) != (0, 0):
                if self._child is not None and ended[0] == self._child.pid:
                    self._status = ended[1]

    def _end_all(self, group: int) -> None:
        """The command's group first, since it knows how to end its workers; then what it has left; then by force."""
        self._told = True
        if self._status is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(group, signal.SIGTERM)
            self._within(self._grace_s, lambda: self._status is not None)
        if self._status is not None:
            send(below(os.getpid()), signal.SIGTERM)
            if self._within(min(self._grace_s, LEFT_BEHIND_GRACE_S), _none_is_left):
                return
        deadline = time.monotonic() + KILLED_GRACE_S
        while time.monotonic() < deadline:
            send(below(os.getpid()), signal.SIGKILL)  # again and again: one may have forked meanwhile
            if self._within(POLL_S, _none_is_left):
                return
        say(f"these processes do not end on SIGKILL: {below(os.getpid())}")

    def _within(self, timeout_s: float, condition: Callable[[], bool]) -> bool:
        deadline = time.monotonic() + timeout_s
        while True:
            self._reap()
            if condition():
                return True
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            self._wait(min(left, POLL_S))


def _none_is_left() -> bool:
    return not below(os.getpid())


def start(command: Sequence[str]) -> subprocess.Popen[bytes]:
    """Starts the command in a process group of its own, with the signals as they are by default."""

    def prepare() -> None:
        os.setpgid(0, 0)
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
        for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM, signal.SIGCHLD):
            signal.signal(number, signal.SIG_DFL)

    # The supervisor has one thread, which preexec_fn asks for; nothing of it is open in the command but its log.
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, preexec_fn=prepare)


def remove_container(program: str, id_file: Path) -> None:
    """Removes the container whose id its client has written; a client that was killed leaves it running."""
    if not id_file.exists():
        return
    found = id_file.read_text(encoding="utf-8").strip()
    with contextlib.suppress(OSError, subprocess.TimeoutExpired):
        subprocess.run([program, "rm", "--force", found], stdin=subprocess.DEVNULL, timeout=KILLED_GRACE_S, check=False)
    id_file.unlink(missing_ok=True)


def say(text: str) -> None:
    """A line to the server's log."""
    sys.stderr.write(f"supervisor: {text}\n")
    sys.stderr.flush()


def end_as(status: int) -> int:
    """The exit status for a waitpid(2) status; for a signal it is sent to this process itself."""
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # the command's own core is the one to read
        with contextlib.suppress(OSError, ValueError):  # SIGKILL has no handler
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    return os.waitstatus_to_exitcode(status)


def main(argv: Sequence[str] | None = None) -> int:
    """Supervises the command that stands behind ``--``."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--grace", type=float, default=20.0, metavar="S", help="from SIGTERM to SIGKILL")
    parser.add_argument("--container", nargs=2, metavar=("PROGRAM", "ID_FILE"), help="a container to remove at the end")
    parser.add_argument("command", nargs="+")
    options = parser.parse_args(argv)
    try:
        status = Supervisor(options.grace).run(options.command)
    finally:
        if options.container:
            remove_container(options.container[0], Path(options.container[1]))
    return end_as(status)


if __name__ == "__main__":
    sys.exit(main())
