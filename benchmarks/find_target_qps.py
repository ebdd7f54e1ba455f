"""How near to the limit searches end, and how many probes they take, on simulated queues with fixed service times.

Goal: within 2 % of the rate that a simulation of two million queries says, for each of twenty seeds, with ten probes at
most. Each engine is searched from first guesses far below, near and far above what it can do.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from harness.runs.search.steps import Found  # noqa: E402
from tests.runs.search.queues import Simulated  # noqa: E402
from tests.runs.search.test_seeds import FAST, SCRIPTED, SEEDS, SLOW, limit  # noqa: E402

GUESSES = (0.1, 0.5, 1.3, 4.0)
OFF, PROBES = 0.02, 10


def searched(simulated: Simulated, guess: float) -> tuple[list[float], list[int], int]:
    """How far off each seed's search ends (1 where it finds none), its probes, and the most full runs."""
    off, probes, full = [], [], 0
    for seed in SEEDS:
        end, state = simulated.search(guess * simulated.queue.capacity, seed)
        off.append(end.rate / limit(simulated) - 1 if isinstance(end, Found) else 1.0)
        probes.append(len(state.probes))
        full = max(full, len(state.full))
    return off, probes, full


def main() -> int:
    """Prints a line an engine and first guess; 1 where a goal is missed."""
    well, begun = True, time.monotonic()
    print("engine    capacity  guess   ends off by           probes: mean, most   full runs: most   20 seeds take")
    for name, simulated in (("scripted", SCRIPTED), ("fast", FAST), ("slow", SLOW)):
        limit(simulated)
        for guess in GUESSES:
            started = time.monotonic()
            off, probes, full = searched(simulated, guess)
            well &= max(map(abs, off)) < OFF and max(probes) <= PROBES
            print(
                f"{name:<9} {simulated.queue.capacity:6.1f}/s  x {guess:<4}  {min(off):+.2%} to {max(off):+.2%}"
                f"      {sum(probes) / len(probes):.1f}, {max(probes):<2}              {full}"
                f"                 {time.monotonic() - started:.1f} s"
            )
    said = "met" if well else "MISSED"
    print(f"in all {time.monotonic() - begun:.0f} s; goal, within {OFF:.0%} and {PROBES} probes: {said}")
    return 0 if well else 1


if __name__ == "__main__":
    sys.exit(main())
