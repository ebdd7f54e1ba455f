"""Where verbs print: results to standard output, errors to standard error."""

from __future__ import annotations

from rich.console import Console

OUT = Console(highlight=False, soft_wrap=True)
ERR = Console(stderr=True, highlight=False, soft_wrap=True)
