"""A server's process on this side: started below its supervisor, looked at, and ended with all that came of it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from harness.engines.ended import how_it_ended
from harness.engines.launch import supervisor
from harness.engines.launch.plan import ServerPlan
from harness.engines.launch.secrets import masked_words
from harness.errors import MissingError

GRACE_S: Final = 20.0
"""From SIGTERM to SIGKILL: a server that holds GPUs needs some seconds to let go of them."""
POLL_S: Final = 0.01
LOG_BYTES: Final = 8192
LOG_LINES: Final = 12


class ServerProcess:
    """A running server; also ends when this process does, however that goes."""

    def __init__(self, plan: ServerPlan, process: subprocess.Popen[bytes], log_start: int, grace_s: float) -> None:
        self.plan = plan
        self._process = process
        self._log_start = log_start
        self._grace_s = grace_s

    @property
    def pid(self) -> int:
        """The supervisor's process, which leads the session that the server is in."""
        return self._process.pid

    def ending(self) -> str | None:
        """How it ended, as a sentence goes on; None while it runs, and once it was stopped."""
        return how_it_ended(self._process)

    def log_bytes(self) -> int:
        """How much it has logged since it was started."""
        try:
            return self.plan.log.stat().st_size - self._log_start
        except OSError:
            return 0

    def last_lines(self, lines: int = LOG_LINES) -> list[str]:
        """The end of what it has logged since it was started; tokens and keys that it repeats as ``***``."""
        return [self.plan.unmentioned(line) for line in last_lines(self.plan.log, self._log_start, lines)]

    def ask_to_end(self) -> None:
        """SIGTERM to all of it; SIGKILL follows after the grace. May be called again."""
        if self._process.returncode is None and self.ending() is None:
            self._process.send_signal(signal.SIGTERM)

    def await_end(self) -> None:
        """Waits until nothing of it is left, and sees to it that nothing is. May be called again."""
        if self._process.returncode is None:
            _wait_for(
                lambda: self.ending() is not None,
                self._grace_s + supervisor.LEFT_BEHIND_GRACE_S + supervisor.KILLED_GRACE_S,
            )
            self._kill_the_rest()
            self._process.wait()
        if self._process.stdin is not None:
            self._process.stdin.close()

    def _kill_the_rest(self) -> None:
        """Where the supervisor was killed, what shares its session outlives it; a supervisor that hangs goes too."""

        def left() -> list[int]:
            return [each.pid for each in supervisor.relatives() if each.session == self.pid and not each.zombie]

        def none_left() -> bool:
            supervisor.send(left(), signal.SIGKILL)
            return not left()

        _wait_for(none_left, supervisor.KILLED_GRACE_S)


def start_server(plan: ServerPlan, grace_s: float = GRACE_S) -> ServerProcess:
    """Starts a planned server; it is not healthy yet. What it prints is appended to its log.

    Raises MissingError where its program is not there.
    """
    program = plan.command[0]
    if shutil.which(program, path=plan.environment.get("PATH", os.defpath)) is None:
        raise MissingError(
            f"there is no {program} to start {plan.server} with",
            where=f"PATH={plan.environment.get('PATH', os.defpath)}",
            mend=f"install {plan.server}, set PATH in engine.launch.env, or give engine.launch.prefix a container",
        )
    for path, text in plan.files.items():
        path.write_text(text, encoding="utf-8")
    command = [sys.executable, "-I", "-S", supervisor.__file__, "--grace", f"{grace_s:g}"]
    if plan.container is not None:
        plan.container.id_file.unlink(missing_ok=True)
        command += ["--container", plan.container.program, str(plan.container.id_file)]
    with plan.log.open("ab") as log:
        log.write(f"=== {time.strftime('%F %T')} {' '.join(masked_words(plan.command))}\n".encode())
        log.flush()
        start = log.tell()
        process = subprocess.Popen(
            [*command, "--", *plan.command],
            stdin=subprocess.PIPE,  # held open, never written: its end tells the supervisor that we are gone
            stdout=log,
            stderr=log,
            env=dict(plan.environment),
            cwd=plan.folder,
            start_new_session=True,
        )
        return ServerProcess(plan, process, start, grace_s)


def last_lines(log: Path, start: int, lines: int) -> list[str]:
    """The last lines of a log from the byte ``start`` on; none where it cannot be read."""
    try:
        with log.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(start, size - LOG_BYTES))
            text = file.read().decode("utf-8", "replace")
    except OSError:
        return []
    return text.splitlines()[-lines:]


def _wait_for(condition: Callable[[], bool], timeout_s: float) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition() and time.monotonic() < deadline:
        time.sleep(POLL_S)
