"""Progress as plain lines, for terminals and CI logs alike."""

from __future__ import annotations

import time

from rich.console import Console
from rich.markup import escape

from harness.events import Event, LegFinished, LegProgress, LegStarted, Note, StepProgress

_EVERY_S = 10.0


class LinePrinter:
    """An observer that prints one line an event; progress at most every ten seconds."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._last = 0.0

    def __call__(self, event: Event) -> None:
        """Prints an event, or keeps quiet where the last progress line is fresh."""
        if isinstance(event, LegProgress | StepProgress):
            if time.monotonic() - self._last < _EVERY_S:
                return
            self._last = time.monotonic()
        self._console.print(escape(_line(event)))


def _line(event: Event) -> str:
    if isinstance(event, Note):
        return event.text
    if isinstance(event, LegStarted):
        return f"{event.leg}: started, in {event.folder}"
    if isinstance(event, LegFinished):
        return f"{event.leg}: {event.verdict}, {event.detail}"
    if isinstance(event, StepProgress):
        of = "" if event.total is None else f" of {event.total}"
        return f"{event.step}: {event.done}{of} {event.unit}".rstrip()
    failed = f", {event.failed} failed" if event.failed else ""
    turns = "" if event.turns is None else f", {event.turns} turns answered"
    return f"{event.leg}: {event.elapsed_s:.0f} s, {event.completed} of {event.issued} issued{failed}{turns}"
