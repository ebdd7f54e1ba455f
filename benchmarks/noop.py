"""What the harness adds to LoadGen: a no-op engine behind the whole SUT, against a no-op inside LoadGen's callback.

Every run is a process of its own (LoadGen keeps state); the cases take turns, and each is compared with the inline run
of its own turn. Latency and rate are LoadGen's figures; CPU is that of all processes of a run, from StartTest to its
return. Run as ``python benchmarks/noop.py``; exit status 1 where a goal is missed.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import psutil
from machine import QUIET_CORES, busy_s

ROWS = 6_396
PROMPT_TOKENS = 144
ANSWER = np.array([1, 2], np.int32)
BATCH = 1_024
TRIES = 3
ENGINES = ("inline", "in process", "engine process", "two processes")


@dataclass(frozen=True)
class Run:
    """One LoadGen run. ``others`` is what the rest of the machine used meanwhile, in cores."""

    samples: int
    wall_s: float
    cpu_s: float
    p50_us: float
    p99_us: float
    samples_per_s: float
    others: float

    @property
    def cpu_us(self) -> float:
        """CPU time of all processes for each sample."""
        return self.cpu_s / self.samples * 1e6


@dataclass(frozen=True)
class Goal:
    """A bound on a figure that compares a run with the inline run of the same turn."""

    scenario: str
    engine: str
    what: str
    figure: Callable[[Run, Run], float]
    bound: float
    at_most: bool = True

    def met(self, value: float) -> bool:
        """Whether the figure is within the bound."""
        return value <= self.bound if self.at_most else value >= self.bound


def added_p50_us(run: Run, inline: Run) -> float:
    """Median latency beyond that of the inline run."""
    return run.p50_us - inline.p50_us


def cpu_ratio(run: Run, inline: Run) -> float:
    """CPU time of a sample, as a multiple of the inline run's."""
    return run.cpu_us / inline.cpu_us


def samples_per_s(run: Run, inline: Run) -> float:
    """The rate itself."""
    return run.samples_per_s


GOALS = (
    Goal("Server", "in process", "added p50 latency, us", added_p50_us, 40),
    Goal("Server", "in process", "CPU, times inline", cpu_ratio, 1.4),
    Goal("Server", "engine process", "added p50 latency, us", added_p50_us, 180),
    Goal("Server", "engine process", "CPU, times inline", cpu_ratio, 3.2),
    Goal("Server", "two processes", "added p50 latency, us", added_p50_us, 180),
    Goal("Offline", "in process", "samples/s", samples_per_s, 500_000, at_most=False),
)


def main(argv: Sequence[str] | None = None) -> int:
    """Prints a table of medians and says which goals are met; 1 where one is missed on a quiet machine."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--runs", type=int, default=5, help="turns of each case")
    parser.add_argument("--rate", type=int, default=10_000, help="Server queries a second")
    parser.add_argument("--seconds", type=float, default=4.0, help="length of a Server run")
    parser.add_argument("--samples", type=int, default=640_000, help="size of the Offline query, about")
    parser.add_argument("--worker", nargs=2, metavar=("SCENARIO", "ENGINE"), help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    if options.worker:
        scenario, engine = options.worker
        run = measure(scenario, engine, options)
        sys.stdout.write(json.dumps(asdict(run)))
        sys.stdout.flush()
        os._exit(0)  # LoadGen's threads do not all end with the interpreter
    turns = [
        {(s, e): run_quietly(s, e, options) for s in ("Server", "Offline") for e in ENGINES}
        for _ in range(options.runs)
    ]
    show(turns)
    return judge(turns)


def run_quietly(scenario: str, engine: str, options: argparse.Namespace) -> Run:
    """A run, again where the machine was busy with other things; at last the least disturbed."""
    runs: list[Run] = []
    while len(runs) < TRIES and not (runs and runs[-1].others <= QUIET_CORES):
        runs.append(spawn(scenario, engine, options))
        print(f"  {scenario:8} {engine:15} {line(runs[-1])}", flush=True)
    return min(runs, key=lambda run: run.others)


def spawn(scenario: str, engine: str, options: argparse.Namespace) -> Run:
    """One run in a process of its own, and what the machine did besides."""
    command = [sys.executable, __file__, "--worker", scenario, engine, "--rate", str(options.rate)]
    command += ["--seconds", str(options.seconds), "--samples", str(options.samples)]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
    return Run(**json.loads(done.stdout))


def line(run: Run) -> str:
    """One run, or the medians of some, for a table."""
    latency = f"p50 {run.p50_us:7.1f} us  p99 {run.p99_us:8.1f} us  " if run.p50_us else " " * 35
    return (
        f"{run.samples_per_s:9.0f}/s  {latency}CPU {run.cpu_us:6.2f} us a sample  "
        f"wall {run.wall_s:5.2f} s  others {run.others:.2f} cores"
    )


def show(turns: list[dict[tuple[str, str], Run]]) -> None:
    """Prints the median of each figure for each case."""
    print(f"\nmedians of {len(turns)} turns")
    for case in turns[0]:
        runs = [turn[case] for turn in turns]
        median = Run(**{name: statistics.median(asdict(run)[name] for run in runs) for name in asdict(runs[0])})
        print(f"  {case[0]:8} {case[1]:15} {line(median)}")


def judge(turns: list[dict[tuple[str, str], Run]]) -> int:
    """Judges the quiet turns, if they are the majority."""
    missed = False
    print()
    for goal in GOALS:
        pairs = [(turn[goal.scenario, goal.engine], turn[goal.scenario, "inline"]) for turn in turns]
        quiet = [pair for pair in pairs if max(run.others for run in pair) <= QUIET_CORES]
        enough = 2 * len(quiet) > len(pairs)
        value = statistics.median(goal.figure(*pair) for pair in (quiet if enough else pairs))
        verdict = "met" if goal.met(value) else "MISSED"
        if not enough:
            verdict = f"the machine was too busy to judge ({len(pairs) - len(quiet)} of {len(pairs)} turns)"
        missed = missed or verdict == "MISSED"
        bound = f"{'at most' if goal.at_most else 'at least'} {goal.bound:g}"
        print(f"  {goal.scenario:8} {goal.engine:15} {goal.what:22} {value:10.2f}  ({bound}): {verdict}")
    return 1 if missed else 0


# -- one run, in its own process --------------------------------------------------------------------------------------


def measure(scenario: str, engine: str, options: argparse.Namespace) -> Run:
    """Runs LoadGen once over an engine and reads its log."""
    import mlperf_loadgen as loadgen

    from harness.clients.loadgen.interpreter import make_interpreter_quick

    make_interpreter_quick()
    with (
        tempfile.TemporaryDirectory(prefix="noop-") as folder,
        system_under_test(scenario, engine, Path(folder)) as sut,
    ):
        logs = loadgen.LogSettings()
        logs.log_output.outdir = folder
        logs.enable_trace = False
        settings = test_settings(scenario, options)
        library = loadgen.ConstructQSL(ROWS, ROWS, lambda rows: None, lambda rows: None)
        fast = loadgen.ConstructFastSUT(sut.issue, sut.flush)
        busy, cpu, start = busy_s(), sut.cpu_s(), time.monotonic()
        thread = threading.Thread(
            target=loadgen.StartTestWithLogSettings, args=(fast, library, settings, logs, "no-audit.config")
        )
        thread.start()
        thread.join()
        wall, cpu, busy = time.monotonic() - start, sut.cpu_s() - cpu, busy_s() - busy
        return read_run(Path(folder) / "mlperf_log_detail.txt", sut.samples, wall, cpu, max(0.0, busy - cpu) / wall)


def test_settings(scenario: str, options: argparse.Namespace) -> object:
    """LoadGen's settings; no latency bound, since only the figures matter."""
    import mlperf_loadgen as loadgen

    settings = loadgen.TestSettings()
    settings.scenario = getattr(loadgen.TestScenario, scenario)
    settings.mode = loadgen.TestMode.PerformanceOnly
    settings.min_query_count = 1
    settings.sample_concatenate_permutation = True
    settings.use_token_latencies = True
    settings.ttft_latency = settings.tpot_latency = 10**10
    if scenario == "Server":
        settings.server_target_qps = options.rate
        settings.min_duration_ms = int(options.seconds * 1000)
    else:
        settings.offline_expected_qps = options.samples / 1.1  # LoadGen asks for a tenth more than the duration needs
        settings.min_duration_ms = 1000
    return settings


def read_run(log: Path, samples: int, wall_s: float, cpu_s: float, others: float) -> Run:
    """LoadGen's own figures of the run."""
    found: dict[str, float] = {}
    for entry in log.read_text(encoding="utf-8").splitlines():
        said = json.loads(entry.removeprefix(":::MLLOG "))
        if said["metadata"].get("is_error"):
            raise RuntimeError(f"LoadGen reports an error: {said['value']}")
        if said["key"].startswith("result_") and isinstance(said["value"], (int, float)):
            found[said["key"]] = said["value"]
    rate = found.get("result_samples_per_second") or found["result_completed_samples_per_sec"]
    p50, p99 = (found.get(f"result_{p}_percentile_latency_ns", 0) / 1e3 for p in ("50.00", "99.00"))
    return Run(samples, wall_s, cpu_s, p50, p99, rate, others)


@dataclass
class Measured:
    """LoadGen's callbacks, and what the processes behind them have used."""

    issue: Callable[[list[int], list[int]], None]
    flush: Callable[[], None]
    count: Callable[[], int]
    engines: Sequence[psutil.Process] = ()

    @property
    def samples(self) -> int:
        """How many were issued."""
        return self.count()

    def cpu_s(self) -> float:
        """CPU seconds of this process and the engine's processes."""
        own = resource.getrusage(resource.RUSAGE_SELF)
        total = own.ru_utime + own.ru_stime
        for engine in self.engines:
            theirs = engine.cpu_times()
            total += theirs.user + theirs.system
        return total


@contextlib.contextmanager
def system_under_test(scenario: str, engine: str, folder: Path) -> Iterator[Measured]:
    """The callbacks of a case, with its engine up."""
    if engine == "inline":
        yield inline(scenario)
        return
    from harness.clients.loadgen.sut import LoadGenSut
    from harness.engines.base import Engine, PromptTable, Sampling, TokenEvents, Workload
    from harness.engines.group import Member, start_group
    from harness.engines.inprocess import InProcessEngine
    from harness.engines.start import EngineSpec, build_core

    prompts = PromptTable(
        np.arange(ROWS * PROMPT_TOKENS, dtype=np.int32),
        np.arange(ROWS, dtype=np.int64) * PROMPT_TOKENS,
        np.full(ROWS, PROMPT_TOKENS, np.int64),
    )
    server = scenario == "Server"
    sampling = Sampling(1.0, 1.0, 0, 32, (), 0)
    workload = Workload("noop", sampling, TokenEvents.FIRST if server else TokenEvents.NONE)
    spec = EngineSpec("scripted", {"length": len(ANSWER)})
    with contextlib.ExitStack() as stack:
        if engine == "in process":
            held: Engine = InProcessEngine(build_core(spec))
            processes = []
        else:
            members = [Member(spec)] * (2 if engine == "two processes" else 1)
            group = stack.enter_context(start_group(members, log=folder / "engine.log", timeout_s=60))
            held, processes = group.connect(), [psutil.Process(process.pid) for process in group.processes]
        stack.callback(held.close)
        sut = LoadGenSut(held, prompts, workload, min_answer_tokens=2, token_latencies=server, on_broken=give_up)
        sut.start()
        stack.callback(sut.close)
        yield Measured(sut.issue, sut.flush, lambda: sut.completed, processes)


def inline(scenario: str) -> Measured:
    """The least that can be done: answers inside LoadGen's own call."""
    import mlperf_loadgen as loadgen

    address, size, tokens = ANSWER.ctypes.data, ANSWER.nbytes, len(ANSWER)
    issued = [0]
    waiting: list[int] = []

    def issue(ids: list[int], rows: list[int]) -> None:
        issued[0] += len(ids)
        if scenario == "Offline":
            waiting.extend(ids)
            return
        loadgen.FirstTokenComplete([loadgen.QuerySampleResponse(i, address, 4, 1) for i in ids])
        loadgen.QuerySamplesComplete([loadgen.QuerySampleResponse(i, address, size, tokens) for i in ids])

    def flush() -> None:
        for first in range(0, len(waiting), BATCH):
            loadgen.QuerySamplesComplete(
                [loadgen.QuerySampleResponse(i, address, size, tokens) for i in waiting[first : first + BATCH]]
            )

    return Measured(issue, flush, lambda: issued[0])


def give_up(error: BaseException) -> None:
    """LoadGen would wait for ever."""
    sys.stderr.write(f"the run broke: {error!r}\n")
    sys.stderr.flush()
    os._exit(1)


if __name__ == "__main__":
    sys.exit(main())
