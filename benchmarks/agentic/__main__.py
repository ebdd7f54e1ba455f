"""Replays recorded trajectories against a server that answers as was recorded: ``python -m benchmarks.agentic``.

The contestants take turns: a bare blocking socket that sends the same bytes (the floor), our client with its engine
inside of the worker and with the engine in a process of its own, and mlcommons/endpoints where ``ENDPOINTS_BIN`` names
its program. Then what ours adds to the time to the first token of a server that waits, and what it needs in memory for
ten passes. Each figure stands beside what it is to be; exit status 1 where one is missed. To be run from the root of
the repository. Mind the load that is printed: where other programs want the processor, a client that computes more than
the floor waits for it more often, and ratios say more of them than of us.
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import psutil

from benchmarks.agentic import data
from benchmarks.agentic.peer import PROGRAM
from benchmarks.agentic.running import FLOOR, OURS, PEER, Run, peer_is_there, run, server
from benchmarks.agentic.work import Work

PARTS: Final = ("one", "many", "first", "memory")
MANY: Final = 32
WAIT_MS: Final = 20.0

OF_THE_FLOOR: Final = 0.40
OF_THE_PEER: Final = 2.0
CPU_MS: Final = 0.5
MEMORY_MB: Final = 250.0
AROUND_S: Final = 2.0
ADDED_MS: Final = 0.5


@dataclass(frozen=True, slots=True)
class Goal:
    """A figure and its bound."""

    what: str
    value: float
    bound: float
    unit: str
    at_most: bool = True

    def judged(self) -> bool:
        """Prints it; whether it is reached."""
        reached = self.value <= self.bound if self.at_most else self.value >= self.bound
        words = "at most" if self.at_most else "at least"
        told = f"{self.value:.2f} {self.unit}, {words} {self.bound:g}: {'reached' if reached else 'MISSED'}"
        print(f"    {self.what}: {told}", flush=True)
        return reached


def main(argv: Sequence[str] | None = None) -> int:
    """Prints each run, medians and goals; 1 where a goal is missed."""
    options = _parser().parse_args(argv)
    with tempfile.TemporaryDirectory(prefix="agentic-") as name:
        folder = Path(name)
        source = data.trajectories(options.data, folder)
        store = data.store_of(source, folder / "chats")
        kind = "made up" if source.stand_in else "recorded"
        print(
            f"{len(source.trajectories)} trajectories ({kind}) of {source.turns:,} turns in all, "
            f"bodies of {store.path.stat().st_size / source.turns / 1e3:.1f} kB; load {psutil.getloadavg()[0]:.1f}"
        )
        if not peer_is_there():
            print(f"{PEER} is not measured: {PROGRAM} does not name its program")
        work = Work(str(store.path), str(source.file.path), name, 0, 1, 1)
        judged = [goal.judged() for part in options.parts for goal in _PARTS[part](work, options)]
    return 0 if all(judged) else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.agentic", description=__doc__.split("\n", 1)[0])
    parser.add_argument("--data", type=Path, help="trajectories (default: ../shared/data, or made-up ones)")
    parser.add_argument("--runs", type=int, default=5, help="turns of each contestant (default: %(default)s)")
    parser.add_argument("--passes", type=int, default=5, help="over all trajectories, with many at once (%(default)s)")
    parser.add_argument("--long", type=int, default=10, help="passes of the part memory (default: %(default)s)")
    parser.add_argument("--parts", nargs="*", choices=PARTS, default=PARTS, help="what to measure (default: all)")
    parser.add_argument("--without-peer", action="store_true", help="leave mlcommons' client away")
    return parser


def one(work: Work, options: argparse.Namespace) -> list[Goal]:
    """One trajectory at a time, from a server that answers at once."""
    print("\none turn at a time, a server that answers at once")
    with server(Path(work.data), 0.0) as port:
        turns = contest(contestants(options, FLOOR, *OURS, PEER), replace(work, port=port), options.runs)
    goals = []
    for name in OURS:
        runs = turns[name]
        share = ratio(turns, name, FLOOR)
        goals.append(Goal(f"{name}: of the floor's turns/s", share, OF_THE_FLOOR, "times", at_most=False))
        goals.append(Goal(f"{name}: CPU a turn", median(runs, lambda each: each.cpu_ms), CPU_MS, "ms"))
        goals.append(Goal(f"{name}: start and stop", median(runs, lambda each: each.around_s), AROUND_S, "s"))
    return goals


def many(work: Work, options: argparse.Namespace) -> list[Goal]:
    """Many trajectories at once."""
    print(f"\n{MANY} turns at once, a server that answers at once, {options.passes} passes")
    asked = replace(work, concurrency=MANY, passes=options.passes)
    with server(Path(work.data), 0.0) as port:
        turns = contest(contestants(options, *OURS, PEER), replace(asked, port=port), options.runs)
    goals = []
    for name in OURS:
        goals.append(Goal(f"{name}: CPU a turn", median(turns[name], lambda each: each.cpu_ms), CPU_MS, "ms"))
        if PEER in turns:
            share = ratio(turns, name, PEER)
            goals.append(Goal(f"{name}: of {PEER}'s turns/s", share, OF_THE_PEER, "times", at_most=False))
    return goals


def first(work: Work, options: argparse.Namespace) -> list[Goal]:
    """What is added to the time to the first token."""
    print(f"\none turn at a time, a server that waits {WAIT_MS:g} ms")
    with server(Path(work.data), WAIT_MS) as port:
        turns = contest(contestants(options, FLOOR, *OURS, PEER), replace(work, port=port), options.runs)
    goals = []
    for name in OURS:
        pairs = zip(turns[name], turns[FLOOR], strict=True)
        added = statistics.median(mine.took.first_ms - bare.took.first_ms for mine, bare in pairs)
        goals.append(Goal(f"{name}: added to the first token", added, ADDED_MS, "ms"))
    return goals


def memory(work: Work, options: argparse.Namespace) -> list[Goal]:
    """Many passes, one trajectory at a time, against one pass."""
    print(f"\nmemory of {options.long} passes")
    goals = []
    with server(Path(work.data), 0.0) as port:
        for name in OURS:
            short, long = (run(name, replace(work, port=port, passes=passes)) for passes in (1, options.long))
            print(f"  {name:20} {line([long])}, {long.memory_mb - short.memory_mb:+.1f} MB against one pass")
            goals.append(Goal(f"{name}: memory of {options.long} passes", long.memory_mb, MEMORY_MB, "MB"))
    return goals


_PARTS: Final[dict[str, Callable[[Work, argparse.Namespace], list[Goal]]]] = {
    "one": one,
    "many": many,
    "first": first,
    "memory": memory,
}


def contestants(options: argparse.Namespace, *names: str) -> list[str]:
    """Those of them that can take part."""
    there = peer_is_there() and not options.without_peer
    return [name for name in names if name != PEER or there]


def contest(names: Sequence[str], work: Work, runs: int) -> dict[str, list[Run]]:
    """``runs`` turns of each, in alternating order, after one that the server makes its answers in; prints each."""
    run(names[0], replace(work, passes=max(2, work.passes)))
    turns: dict[str, list[Run]] = {name: [] for name in names}
    for turn in range(runs):
        for name in reversed(names) if turn % 2 else names:
            turns[name].append(run(name, work))
            print(f"  {name:20} {line(turns[name][-1:])}", flush=True)
    for name in names:
        print(f"  {name:20} {line(turns[name])}  median")
    failed = {name: sum(each.took.failed for each in done) for name, done in turns.items()}
    if any(failed.values()):
        raise RuntimeError(f"turns failed: {failed}")
    return turns


def line(runs: Sequence[Run]) -> str:
    """One run, or the medians of some."""
    memory = median(runs, lambda each: each.memory_mb)
    return (
        f"{median(runs, lambda each: each.turns_per_s):7.0f} turns/s  "
        f"CPU {median(runs, lambda each: each.cpu_ms):6.3f} ms a turn  "
        f"first token {median(runs, lambda each: each.took.first_ms):6.3f} ms  "
        f"whole {median(runs, lambda each: each.took.whole_ms):6.3f} ms  "
        f"around {median(runs, lambda each: each.around_s):5.2f} s  "
        + ("memory not looked at" if math.isnan(memory) else f"memory {memory:4.0f} MB")
    )


def median(runs: Sequence[Run], of: Callable[[Run], float]) -> float:
    """Of a figure of some runs."""
    return float(statistics.median(map(of, runs)))


def ratio(turns: dict[str, list[Run]], ours: str, other: str) -> float:
    """Median over the turns: our turns a second over the other's."""
    pairs = zip(turns[ours], turns[other], strict=True)
    return float(statistics.median(mine.turns_per_s / theirs.turns_per_s for mine, theirs in pairs))


if __name__ == "__main__":
    sys.exit(main())
