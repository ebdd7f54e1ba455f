"""How downloads go: bars on a terminal, a line every ten seconds elsewhere."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator

from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)

from harness.benchmarks.download import FileProgress, Tell, megabytes
from harness.benchmarks.download.transfer import quiet
from harness.report.progress import shows_a_display

_EVERY_S = 10.0


@contextlib.contextmanager
def telling(console: Console, *, silent: bool = False) -> Iterator[Tell]:
    """What a download tells its progress to; nobody where it is to be ``silent``."""
    if silent:
        yield quiet
        return
    if not shows_a_display(console):
        yield _Lines(console)
        return
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, TimeRemainingColumn(), console=console) as bars:
        yield _Bars(bars)


class _Lines:
    def __init__(self, console: Console) -> None:
        self._console = console
        self._last = -_EVERY_S

    def __call__(self, progress: FileProgress) -> None:
        now = time.monotonic()
        if progress.done < progress.size and now - self._last < _EVERY_S:
            return
        self._last = now
        done, size = megabytes(progress.done), megabytes(progress.size)
        self._console.print(f"{escape(progress.path)}: {done} of {size} MB")


class _Bars:
    def __init__(self, bars: Progress) -> None:
        self._bars = bars
        self._tasks: dict[str, TaskID] = {}

    def __call__(self, progress: FileProgress) -> None:
        if progress.path not in self._tasks:
            self._tasks[progress.path] = self._bars.add_task(escape(progress.path), total=progress.size)
        self._bars.update(self._tasks[progress.path], completed=progress.done)
