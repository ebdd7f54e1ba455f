"""What it costs to read answers over HTTP: our client processes against a raw reader and mlcommons/endpoints' client.

Test servers (``sse/server.py``) answer at a fixed rate in trtllm-serve's shape. The contestants take turns, each with
a server of its own; a run keeps a number of streams open until all answers are there. What is compared is CPU time of
the processes that speak HTTP; what drives them is told apart. Then our client below LoadGen: what it adds to the time
to the first token. Then its memory, with as many requests outstanding as the longest Offline query that was ever
submitted has. Run as ``python benchmarks/http_client.py``; exit status 1 where a goal is missed on a quiet machine.

The peer's environment: ``python3.12 -m venv DIR && DIR/bin/pip install CLONE`` of mlcommons/endpoints, and
``ENDPOINTS_PYTHON=DIR/bin/python``. Without it the peer is not measured. It reads text where we read token ids: every
chunk of its streams has as many bytes as ours.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass

import psutil
from machine import QUIET_CORES
from sse.run import FLOOR, OURS, PEER, PEER_PYTHON, Added, Pace, Run, run, run_flight, run_latency
from sse.shape import Shape

from harness.config.engines import Clients

PARTS = ("cost", "latency", "memory")
PROMPT = 1_024


@dataclass(frozen=True)
class Case:
    """A load; ``judged`` where the goals are held against it."""

    pace: Pace
    streams: int
    answers: int
    judged: bool


CASES = (
    Case(Pace(Shape(65, 20), 20.0), 256, 1_024, judged=True),
    Case(Pace(Shape(1_300, 1), 5.0), 64, 128, judged=True),
    Case(Pace(Shape(65, 20), 0.0), 64, 4_096, judged=False),
    Case(Pace(Shape(1_300, 1), 0.0), 64, 512, judged=False),
)
GOALS = {PEER: 3.0, FLOOR: 0.5}
"""How many times the answers of each contestant a second of CPU time must give us."""

RATE, SECONDS = 200, 10.0
LATENCY = Pace(Shape(65, 20), 20.0, first_ms=100.0)
ADDED_MS = 1.0

OUTSTANDING = 48_289
"""What Offline asks for at once: samples of a query, as of the round's longest."""
MEMORY_MB = 1_000
SPARE_FILES = 500
HELD = Pace(Shape(8, 20), 6_000.0)
"""Slow enough for all streams to be open at once."""


def main(argv: Sequence[str] | None = None) -> int:
    """Prints each run, medians and ratios; 1 where a goal is missed on a quiet machine."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--runs", type=int, default=5, help="turns of each contestant")
    parser.add_argument("--parts", nargs="*", choices=PARTS, default=PARTS, help="what to measure")
    parser.add_argument("--cases", type=int, nargs="*", default=range(len(CASES)), help="which loads, from 0")
    options = parser.parse_args(argv)
    print(f"prompts of {PROMPT:,} ids; load average {psutil.getloadavg()[0]:.1f}")
    met = []
    if "cost" in options.parts:
        met += [compare(CASES[number], options.runs) for number in options.cases]
    if "latency" in options.parts:
        met.append(latency(options.runs))
    if "memory" in options.parts:
        met += [queued(), held_open()]
    return 0 if all(met) else 1


# -- what an answer costs ----------------------------------------------------------------------------------------------


def compare(case: Case, runs: int) -> bool:
    """Runs a case and judges it."""
    print(f"\n{case.pace}, {case.streams} streams, {case.answers:,} answers")
    contestants = [FLOOR, PEER, OURS]
    if not os.environ.get(PEER_PYTHON):
        print(f"  {PEER} is not measured: {PEER_PYTHON} does not name an interpreter that has it")
        contestants.remove(PEER)
    turns: list[dict[str, Run]] = []
    for turn in range(runs):
        turns.append({})
        for name in reversed(contestants) if turn % 2 else contestants:
            turns[-1][name] = run(name, case.pace, case.streams, case.answers, PROMPT)
            print(f"  {name:20} {line(case, [turns[-1][name]])}", flush=True)
    for name in contestants:
        print(f"  {name:20} {line(case, [turn[name] for turn in turns])}  median")
    met = [judge(case, peer, turns) for peer in contestants if peer != OURS]
    return all(met)


def line(case: Case, runs: list[Run]) -> str:
    """One run, or the medians of some."""

    def each(seconds: list[float]) -> float:
        return statistics.median(seconds) / case.answers * 1e6

    client = each([one.took.client_s for one in runs])
    return (
        f"{1e6 / client:7.0f} answers/s of CPU  client {client:7.0f} us an answer, "
        f"{client / case.pace.shape.chunks:6.2f} a chunk  driver {each([one.took.driver_s for one in runs]):5.0f} us  "
        f"server {each([one.server_s for one in runs]):6.0f} us  "
        f"wall {statistics.median(one.took.wall_s for one in runs):5.2f} s  "
        f"server late {statistics.median(one.late_ms for one in runs):5.1f} ms  "
        f"others {statistics.median(one.others for one in runs):.2f} cores"
    )


def judge(case: Case, peer: str, turns: list[dict[str, Run]]) -> bool:
    """Prints a ratio, and for a case with goals what became of it; False for one missed on a quiet machine."""
    quiet = [turn for turn in turns if max(turn[peer].others, turn[OURS].others) <= QUIET_CORES]
    enough = 2 * len(quiet) > len(turns)
    ratios = sorted(turn[peer].took.client_s / turn[OURS].took.client_s for turn in (quiet if enough else turns))
    value = statistics.median(ratios)
    words = f"ours / {peer}: {value:.2f} times the answers/s of CPU ({ratios[0]:.2f} to {ratios[-1]:.2f})"
    if not case.judged:
        print(f"  {words}; no goal")
        return True
    return verdict(f"{words}; at least {GOALS[peer]:g}", value >= GOALS[peer], len(turns) - len(quiet), len(turns))


def verdict(words: str, met: bool, busy: int, turns: int) -> bool:
    """Prints whether a goal is met; False where it is not, on a machine that was quiet in most turns."""
    told = "met" if met else "MISSED"
    if 2 * busy >= turns:
        told += f" (trust it little: the machine was busy with other things in {busy} of {turns} turns)"
    print(f"  {words}: {told}")
    return met or 2 * busy >= turns


# -- what it adds to the time to the first token -----------------------------------------------------------------------


def latency(runs: int) -> bool:
    """Two client processes below LoadGen's Server scenario."""
    print(f"\n{LATENCY.shape}, {LATENCY.interval_ms:g} ms apart, {RATE} answers/s of LoadGen's, two client processes")
    turns = []
    for _ in range(runs):
        turns.append(run_latency(LATENCY, Clients().connections, PROMPT, RATE, SECONDS))
        print(f"  {latency_line(turns[-1:])}", flush=True)
    print(f"  {latency_line(turns)}  median")
    quiet = [turn for turn in turns if turn.others <= QUIET_CORES]
    value = statistics.median(turn.first_p50_ms for turn in (quiet or turns))
    words = f"added to the first token, p50: {value:.2f} ms; less than {ADDED_MS:g}"
    lost = sum(turn.failures for turn in turns)
    if lost:
        print(f"  {lost} requests failed")
    return verdict(words, value < ADDED_MS, len(turns) - len(quiet), len(turns)) and not lost


def latency_line(turns: list[Added]) -> str:
    """One run, or the medians of some."""

    def median(name: str) -> float:
        return float(statistics.median(getattr(turn, name) for turn in turns))

    clients, driver = (
        statistics.median(getattr(turn, name) / turn.answers * 1e6 for turn in turns)
        for name in ("client_s", "driver_s")
    )
    return (
        f"added to first token p50 {median('first_p50_ms'):6.2f} ms  p99 {median('first_p99_ms'):6.2f} ms  "
        f"to whole answer p50 {median('whole_p50_ms'):6.2f} ms  p99 {median('whole_p99_ms'):6.2f} ms  "
        f"{median('completed_per_s'):5.1f}/s  clients {clients:5.0f} us an answer  driver {driver:4.0f} us  "
        f"server late {median('late_ms'):5.1f} ms  others {median('others'):.2f} cores"
    )


# -- memory ------------------------------------------------------------------------------------------------------------


def queued() -> bool:
    """All at once to one server, over as many connections as there are by default."""
    clients = Clients()
    peaks, under_way = run_flight(
        Pace(Shape(65, 20), 0.0, first_ms=250.0),
        1,
        processes=2,
        connections=clients.connections,
        requests=OUTSTANDING,
        prompt=PROMPT,
        streamed=False,
    )
    return judge_memory("whole answers, the default number of connections", peaks, under_way)


def held_open() -> bool:
    """All at once, and each on a connection of its own: as many servers and clients as their open files ask for."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    processes = -(-OUTSTANDING // (files - SPARE_FILES))
    peaks, under_way = run_flight(
        HELD,
        processes,
        processes=processes,
        connections=-(-OUTSTANDING // processes) + SPARE_FILES // 2,
        requests=OUTSTANDING,
        prompt=PROMPT,
        streamed=True,
    )
    return judge_memory(f"streams, {HELD}, each on its own connection", peaks, under_way)


def judge_memory(what: str, peaks: list[float], under_way: int) -> bool:
    """Prints the peaks and holds their sum against the goal."""
    print(f"\n{OUTSTANDING:,} answers outstanding: {what}; under way at once: {under_way:,}")
    print(f"  driver {peaks[0]:.0f} MB; client processes {', '.join(f'{peak:.0f}' for peak in peaks[1:])} MB")
    met = sum(peaks) < MEMORY_MB
    print(f"  together {sum(peaks):.0f} MB; less than {MEMORY_MB:,}: {'met' if met else 'MISSED'}")
    return met


if __name__ == "__main__":
    sys.exit(main())
