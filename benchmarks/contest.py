"""Contests of the benchmarks here: contestants take turns in one process, and a figure is held against a goal.

Figures are medians over the turns, and what is judged is CPU time, which a busy machine disturbs least.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import astuple, dataclass

from machine import QUIET_CORES, busy_s


@dataclass(frozen=True)
class Run:
    """One run of one contestant. ``others`` is what the rest of the machine used meanwhile, in cores."""

    tokens: int
    wall_s: float
    cpu_s: float
    others: float


@dataclass(frozen=True)
class Goal:
    """A bound on one figure."""

    what: str
    bound: float
    at_most: bool = False

    def met(self, value: float) -> bool:
        """Whether the figure is within the bound."""
        return value <= self.bound if self.at_most else value >= self.bound


@dataclass(frozen=True)
class Prepared:
    """Work with a part before it that is not timed."""

    prepare: Callable[[], None]
    work: Callable[[], int]

    def __call__(self) -> int:
        """Does the work."""
        return self.work()


def compete(contestants: dict[str, Callable[[], int]], runs: int) -> dict[str, list[Run]]:
    """``runs`` turns of each contestant, in alternating order; prints each. All must have worked before."""
    turns: dict[str, list[Run]] = {name: [] for name in contestants}
    for turn in range(runs):
        order = list(contestants.items())
        for name, work in reversed(order) if turn % 2 else order:
            turns[name].append(timed(work))
            print(f"  {name:14} {line(turns[name][-1])}", flush=True)
    for name, done in turns.items():
        fields = (statistics.median(values) for values in zip(*map(astuple, done), strict=True))
        print(f"  {name:14} {line(Run(*fields))}  median")
    return turns


def line(run: Run) -> str:
    """One run, or the medians of some."""
    return (
        f"CPU {run.cpu_s:7.3f} s  wall {run.wall_s:7.3f} s  {run.tokens / run.cpu_s:5.0f} tokens/s of CPU  "
        f"others {run.others:.2f} cores"
    )


def timed(work: Callable[[], int]) -> Run:
    """One run; ``work`` returns how many tokens it made."""
    if isinstance(work, Prepared):
        work.prepare()
    machine, wall, cpu = busy_s(), time.perf_counter(), time.process_time()
    tokens = work()
    cpu_s, wall_s = time.process_time() - cpu, time.perf_counter() - wall
    return Run(tokens, wall_s, cpu_s, max(0.0, busy_s() - machine - cpu_s) / wall_s)


def speedup(turns: dict[str, list[Run]]) -> float:
    """Median over the turns of ``generate``'s CPU time over the engine's."""
    pairs = zip(turns["generate"], turns["torch engine"], strict=True)
    return statistics.median(theirs.cpu_s / ours.cpu_s for theirs, ours in pairs)


def judge(goal: Goal, value: float, runs: list[Run]) -> bool:
    """Prints what became of a goal; False where it is missed and the machine was quiet enough to say so."""
    others = statistics.median(run.others for run in runs)
    share = statistics.median(run.cpu_s / run.wall_s for run in runs)
    busy = others > QUIET_CORES or share < 0.9
    sign = "at most" if goal.at_most else "at least"
    verdict = "met" if goal.met(value) else "too busy to judge" if busy else "MISSED"
    note = f" (busy: others used {others:.2f} cores, we had {share:.0%} of one; trust no figure far)" if busy else ""
    print(f"  {goal.what}: {value:.2f}, {sign} {goal.bound:g}: {verdict}{note}\n", flush=True)
    return verdict != "MISSED"
