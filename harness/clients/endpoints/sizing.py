"""How many samples the endpoints client is told to issue: whole passes, for as long as the round wants."""

from __future__ import annotations

import math
from typing import Final

from harness.errors import ConfigError

SPARE: Final = 1.1
"""A rate that is only expected may be exceeded by so much before the run gets too short; LoadGen adds the same."""
_SIGMAS: Final = 4.0
"""How far the sum of random gaps may fall short of what it is in the mean; beyond are 3 runs in 100,000."""
_MS: Final = 1e3


def samples_to_issue(rate: float, rows: int, min_duration_ms: int, *, scheduled: bool) -> int:
    """Samples, in whole passes over ``rows`` rows, that take ``min_duration_ms`` at ``rate`` samples/s.

    ``scheduled`` is whether they are issued at that rate, with exponential gaps as a Poisson process has them: then
    only chance shortens the run. Else the rate is what the system is expected to do. The client sizes by the setting
    alone, assumes a rate where none is said, and measures runs that are too short without a word.
    """
    if not (math.isfinite(rate) and rate > 0):
        raise ConfigError(
            f"a rate of {rate} samples/s cannot size a run of the endpoints client",
            where="scenarios.<scenario>.target_qps",
            expected="a rate above 0: the configured one, or one measured in the warm-up",
            mend="state target_qps",
        )
    mean = rate * min_duration_ms / _MS
    least = mean + _SIGMAS * math.sqrt(mean) if scheduled else mean * SPARE
    return max(1, math.ceil(least / rows)) * rows
