"""Where verbs print: results to standard output, errors to standard error."""

from __future__ import annotations

import contextlib
import os
import sys
from io import TextIOWrapper
from typing import Any, Final

from rich.console import Console
from rich.text import Text

_PICTURES: Final = {
    **{code: 0x2400 + code for code in range(0x20) if chr(code) not in "\t\n"},
    **dict.fromkeys(range(0x7F, 0xA0), 0xFFFD),
}
"""Control characters and what is shown for them: U+2400 and up are their pictures, U+FFFD stands for any."""


class UnbreakableConsole(Console):
    """A console that falls silent where nobody reads any more: a closed terminal or pipe is no reason to end a run.

    Text is shown and does nothing: names and logs of other people's trees may hold what a terminal obeys.
    """

    def render_str(self, text: str, **options: Any) -> Text:  # noqa: ANN401 - as rich has it
        """Called by rich for each text that is printed, in tables too."""
        return super().render_str(text.translate(_PICTURES), **options)

    def on_broken_pipe(self) -> None:
        """Called by rich for a pipe whose reader has gone."""
        self.fall_silent()

    def print(self, *objects: Any, **options: Any) -> None:  # noqa: ANN401 - as rich has it
        """Prints, or falls silent where that cannot be."""
        try:
            super().print(*objects, **options)
        except OSError:  # EIO: the terminal is gone
            self.fall_silent()

    def __exit__(self, *raised: object) -> None:
        """As :meth:`print`, for what was held back until the end of a ``with`` block: a live display does so."""
        try:
            super().__exit__(*raised)
        except OSError:
            self.fall_silent()

    def fall_silent(self) -> None:
        """Sends all that is printed from now on to nowhere, what the interpreter flushes at its end too."""
        self.quiet = True
        with contextlib.suppress(OSError, ValueError):
            descriptor = os.open(os.devnull, os.O_WRONLY)
            os.dup2(descriptor, self.file.fileno())
            os.close(descriptor)


OUT = UnbreakableConsole(highlight=False, emoji=False, soft_wrap=True)
ERR = UnbreakableConsole(stderr=True, highlight=False, emoji=False, soft_wrap=True)


def print_what_can_be_printed() -> None:
    """A letter that the terminal's encoding lacks is printed as a question mark: no reason to end either."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")
