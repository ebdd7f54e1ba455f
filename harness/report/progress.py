"""Progress for people: a live display on a terminal, plain lines elsewhere, nothing where quiet is asked for."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Iterator

from rich.console import Console
from rich.markup import escape

from harness import env
from harness.events import Event, LegProgress, LegStarted, Observer, StepProgress, ignore
from harness.report import progress_words as words
from harness.report.progress_display import LiveDisplay

_EVERY_S = 10.0


@contextlib.contextmanager
def observer(console: Console, *, quiet: bool = False) -> Iterator[Observer]:
    """Whom a verb tells what it does while it runs.

    On a terminal that is a display that stays below the lines that are printed meanwhile on ``console``; where nobody
    can see it move (a pipe, a log, TERM=dumb, a CI machine) lines, of progress one in ten seconds at most. ``quiet``:
    nothing is shown.
    """
    if quiet:
        yield ignore
    elif shows_a_display(console):
        with LiveDisplay(console) as display:
            yield display
    else:
        yield LinePrinter(console)


def lines(console: Console, *, quiet: bool = False) -> Observer:
    """As :func:`observer`, of a verb that mostly waits, or shows how far it is itself: lines, on a terminal too."""
    return ignore if quiet else LinePrinter(console)


def shows_a_display(console: Console) -> bool:
    """Whether what is printed is seen by a person, and can be written over."""
    return console.is_interactive and console.file.isatty() and env.CI.get() is None


class LinePrinter:
    """An observer that prints one line an event; of progress at most one in ten seconds."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._last = -math.inf
        self._expected_s: float | None = None

    def __call__(self, event: Event) -> None:
        """Prints an event, or keeps quiet where the last progress line is fresh."""
        if isinstance(event, LegProgress | StepProgress):
            if time.monotonic() - self._last < _EVERY_S:
                return
            self._last = time.monotonic()
        if isinstance(event, LegStarted):
            self._expected_s = event.expected_s
        self._console.print(escape(self._line(event)))

    def _line(self, event: Event) -> str:
        if isinstance(event, LegProgress):
            return words.leg(event, self._expected_s)
        if isinstance(event, StepProgress):
            return words.step(event)
        return words.lasting(event)
