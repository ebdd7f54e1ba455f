"""How fast a leg goes now: over the last seconds, not since its start."""

from __future__ import annotations

from collections import deque
from typing import Final, NamedTuple

WINDOW_S: Final = 10.0


class Pace(NamedTuple):
    """A second's answers and tokens; None before anything was answered, and where nobody counts tokens."""

    answers_per_s: float | None
    tokens_per_s: float | None


class Rates:
    """Rates over the last ten seconds, from totals since the start."""

    def __init__(self, now_ns: int) -> None:
        self._seen: deque[tuple[int, int, int]] = deque([(now_ns, 0, 0)])

    def pace(self, now_ns: int, answered: int, tokens: int | None = None) -> Pace:
        """What the totals grew by; ``tokens`` is None where nobody tells them."""
        seen = self._seen
        seen.append((now_ns, answered, tokens or 0))
        while len(seen) > 2 and now_ns - seen[1][0] >= WINDOW_S * 1e9:
            seen.popleft()
        began_ns, answered_before, tokens_before = seen[0]
        span_s = (now_ns - began_ns) / 1e9
        if not answered or not span_s > 0:
            return Pace(None, None)
        return Pace(
            (answered - answered_before) / span_s, None if tokens is None else (tokens - tokens_before) / span_s
        )
