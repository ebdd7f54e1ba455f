"""How far the client is, read from the bar that it draws into its log: nothing else tells while it runs."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_BAR: Final = re.compile(rb"\|\s*(\d+)/(\d+) \[[^\]\r\n]*\]")
_ERRORS: Final = re.compile(rb"errors=(\d+)")
_TAIL_BYTES: Final = 1 << 16


@dataclass(frozen=True, slots=True)
class Progress:
    """Samples of both phases that came back (failed ones among them), of how many, and how many failed."""

    done: int
    total: int
    failed: int

    @property
    def over(self) -> bool:
        """Whether all came back; what the client then does takes its time and shows nothing."""
        return self.done >= self.total


def last_progress(log: Path) -> Progress | None:
    """What the newest bar in the log says; None before there is one."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - _TAIL_BYTES))
            tail = file.read()
    except OSError:
        return None
    bars = list(_BAR.finditer(tail))
    if not bars:
        return None
    bar = bars[-1]
    errors = _ERRORS.search(bar.group(0))
    return Progress(int(bar.group(1)), int(bar.group(2)), int(errors.group(1)) if errors else 0)
