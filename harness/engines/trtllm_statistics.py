"""TensorRT-LLM's iteration statistics, had on a thread of their own: the library may take seconds to hand them over."""

from __future__ import annotations

import sys
import threading
import time
from typing import Final

from harness.engines.metrics import of_iterations
from harness.engines.trtllm_library import Llm
from harness.events import Occupancy

SWITCH: Final = "enable_iter_perf_stats"
"""The option without which the library keeps none."""
_WAIT_S: Final = 1.0
_STALE_S: Final = 20.0


class Statistics:
    """How full the library is. ``kept`` is whether it keeps statistics at all."""

    def __init__(self, llm: Llm, *, kept: bool) -> None:
        self._llm = llm
        self._seen: tuple[float, Occupancy] | None = None
        self._thread: threading.Thread | None = None
        self._kept = kept

    def latest(self) -> Occupancy | None:
        """What the library said when it was last asked, and asks it anew; None where that is long ago, or never was.

        Waits for nothing.
        """
        if self._kept and (self._thread is None or not self._thread.is_alive()):
            self._thread = threading.Thread(target=self._ask, name="TensorRT-LLM statistics", daemon=True)
            self._thread.start()
        seen = self._seen
        return seen[1] if seen is not None and time.monotonic() - seen[0] < _STALE_S else None

    def _ask(self) -> None:
        try:
            told = of_iterations(self._llm.get_stats(timeout=_WAIT_S))
        except (RuntimeError, OSError, ValueError, TypeError, AttributeError) as error:  # for people; no reason to end
            sys.stderr.write(f"TensorRT-LLM's statistics are not to be had: {type(error).__name__}: {error}\n")
            self._kept = False
            return
        if told is not None:
            self._seen = time.monotonic(), told
