"""What goes wrong with a log file."""

from __future__ import annotations

from pathlib import Path

from harness.errors import HarnessError


class LogError(HarnessError):
    """A log of LoadGen's that cannot be read, or holds what LoadGen never writes. ``line`` counts from 1."""

    exit_code = 3

    def __init__(
        self,
        what: str,
        path: Path,
        line: int | None = None,
        *,
        expected: str | None = None,
        mend: str | None = "take the file as LoadGen wrote it, unedited and whole; or run the leg again",
    ) -> None:
        self.path = path
        self.line = line
        super().__init__(what, where=path if line is None else f"{path}:{line}", expected=expected, mend=mend)
