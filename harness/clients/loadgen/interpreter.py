"""The interpreter of the process that LoadGen runs in."""

from __future__ import annotations

import gc
import sys

_SWITCH_INTERVAL_S = 5e-4


def make_interpreter_quick() -> None:
    """Hands the interpreter lock over ten times sooner than the default, and leaves garbage alone.

    What is made here goes when its last user does; a collection would only stop the clock.
    """
    sys.setswitchinterval(_SWITCH_INTERVAL_S)
    gc.collect()
    gc.disable()
