"""The live display of a terminal: what runs now, below the lines of what was done."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from types import TracebackType
from typing import Final

from rich import box
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from harness.events import Event, LegFinished, LegProgress, LegStarted, Note, Running, StepProgress
from harness.report import progress_words as words

_REFRESHES_A_S: Final = 2
_BAR_WIDTH: Final = 40
_NEAR: Final = 0.1
"""The share of a limit below which what is left of it is shown in yellow."""
_GOOD, _BAD, _CLOSE, _NEITHER = "green", "red", "yellow", "cyan"
_COLOURS: Final = {"VALID": _GOOD, "INVALID": _BAD, "broken": _BAD}


class Board:
    """What is known of the leg and of the step that run, and how the legs before it ended."""

    def __init__(self) -> None:
        self.verdicts: Counter[str] = Counter()
        self.leg: LegStarted | None = None
        self.progress: LegProgress | None = None
        self.step: StepProgress | None = None
        self._since = self._told = self._step_since = 0.0

    def hear(self, event: Event, now: float) -> None:
        """Takes in what was told at a time of the monotonic clock, in seconds."""
        if isinstance(event, LegStarted):
            self.leg, self.progress, self.step, self._since = event, None, None, now
        elif isinstance(event, LegProgress):
            self.progress, self.step, self._told = event, None, now
        elif isinstance(event, StepProgress):
            if self.step is None or self.step.step != event.step:
                self._step_since = now
            self.step = None if event.done == event.total else event
        elif isinstance(event, LegFinished):
            self.verdicts[event.verdict] += 1
            self.leg, self.progress, self.step = None, None, None

    def shown(self, now: float, width: int) -> RenderableType:
        """What stands on the terminal; each line is cut at its width."""
        return Group(*self._parts(now, min(_BAR_WIDTH, max(1, width // 3))))

    def _parts(self, now: float, bar_width: int) -> Iterator[RenderableType]:
        leg, progress, step = self.leg, self.progress, self.step
        if leg is not None:
            yield self._title(leg.leg)
            yield _elapsed(self._elapsed_s(now), leg.expected_s, bar_width)
        if progress is not None:
            yield _figures(progress)
            if progress.running:
                yield _latencies(progress.running)
            engine = "" if progress.occupancy is None else words.occupancy(progress.occupancy)
            if engine:
                yield _cut(engine)
        if step is not None:
            said = _cut(f"{words.step(step)}  {words.clock(now - self._step_since)}")
            yield _bar(step.done, step.total, bar_width, said) if step.total else said

    def _elapsed_s(self, now: float) -> float:
        """As the leg tells, and from its beginning before it does."""
        return now - self._since if self.progress is None else self.progress.elapsed_s + now - self._told

    def _title(self, leg: str) -> Text:
        title = _cut(leg, style="bold")
        done = sum(self.verdicts.values())
        if done:
            title.append(f"  after {done} " + ("leg: " if done == 1 else "legs: "), style="not bold")
            for place, (verdict, count) in enumerate(self.verdicts.items()):
                title.append(", " if place else "", style="not bold")
                title.append(f"{count} {verdict}", style=_COLOURS.get(verdict, _CLOSE))
        return title


class LiveDisplay:
    """An observer that shows the newest of everything, and prints above it what stays. A context manager."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._board = Board()
        self._live = Live(
            get_renderable=self._shown,
            console=console,
            refresh_per_second=_REFRESHES_A_S,
            transient=True,
            redirect_stdout=False,  # where it is no terminal, results belong there and nowhere else
        )

    def __call__(self, event: Event) -> None:
        """Shows an event from the next refresh on, or prints it."""
        self._board.hear(event, time.monotonic())
        if isinstance(event, Note | LegStarted):
            self._console.print(Text(words.lasting(event)))
        elif isinstance(event, LegFinished):
            text = Text(words.lasting(event))
            begin = len(event.leg) + len(": ")
            text.stylize(_COLOURS.get(event.verdict, _CLOSE), begin, begin + len(event.verdict))
            self._console.print(text)

    def __enter__(self) -> LiveDisplay:
        self._live.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._live.__exit__(kind, error, traceback)

    def _shown(self) -> RenderableType:
        return self._board.shown(time.monotonic(), self._console.width)


def _cut(text: str, style: str = "") -> Text:
    return Text(text, style=style, no_wrap=True, overflow="ellipsis")


def _bar(done: float, total: float, width: int, said: Text) -> Table:
    """A bar in a colour that says neither good nor bad, and what is said of it."""
    row = Table.grid(padding=(0, 1))
    row.add_column(width=width)
    row.add_column(no_wrap=True)
    row.add_row(ProgressBar(total, done, width, complete_style=_NEITHER, finished_style=_NEITHER), said)
    return row


def _elapsed(elapsed_s: float, expected_s: float | None, bar_width: int) -> RenderableType:
    if not expected_s:
        return _cut(f"{words.clock(elapsed_s)} elapsed")
    left_s = expected_s - elapsed_s
    left = f"about {words.clock(left_s)} left" if left_s >= 0 else f"{words.clock(-left_s)} longer than expected"
    said = _cut(f"{words.clock(elapsed_s)} of about {words.clock(expected_s)}, {left}")
    return _bar(min(elapsed_s, expected_s), expected_s, bar_width, said)


def _figures(progress: LegProgress) -> Text:
    text = _cut(words.counts(progress))
    if progress.failed:
        text.append("  " + words.failures(progress), style=f"bold {_BAD}")
    for each in words.rates(progress):
        text.append(f"  {each}")
    return text


def _latencies(running: tuple[Running, ...]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    table.add_column("", no_wrap=True)
    for heading in ("p50", "p99", *(("limit", "left") if any(each.limit_ns for each in running) else ())):
        table.add_column(heading, justify="right", no_wrap=True)
    for each in running:
        share = words.margin(each)
        cells = [Text(each.name), Text(words.duration(each.p50_ns)), Text(words.duration(each.p99_ns))]
        if share is not None and each.limit_ns is not None:
            colour = _BAD if share < 0 else _CLOSE if share < _NEAR else _GOOD
            cells[2].stylize(colour)
            cells += [Text(words.duration(each.limit_ns)), Text(f"{share:.0%}", style=colour)]
        table.add_row(*cells)
    return table
