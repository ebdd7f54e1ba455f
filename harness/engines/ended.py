"""How a child process ended, told without reaping it: until it is reaped its number is surely its own."""

from __future__ import annotations

import os
import signal
import subprocess
from typing import Any


def how_it_ended(process: subprocess.Popen[Any]) -> str | None:
    """How it ended, as a sentence goes on; None while it runs, and once it was reaped."""
    if process.returncode is not None:
        return None
    ended = os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    if ended is None:
        return None
    if ended.si_code == os.CLD_EXITED:
        return f"ended with status {ended.si_status}"
    return f"was ended by {signal.Signals(ended.si_status).name}"
