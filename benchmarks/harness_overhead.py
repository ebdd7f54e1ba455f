"""What the harness costs a real engine: tokens/s as LoadGen reports them, against the same core stepped bare.

The contestants take turns. The bare engine is the torch core in a process of its own that submits all requests and
steps to the end; the harness's is a whole Offline leg: LoadGen, SUT, socket, engine process. Same checkpoint, same rows
of the stand-in data set, same output cap, one thread. Run as ``python benchmarks/harness_overhead.py``; exit status 1
where the goal is missed on a quiet machine.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil
from machine import QUIET_CORES, busy_s, cpu_of

from harness import benchmarks, env, rules
from harness.clients.loadgen import user_conf
from harness.clients.loadgen.job import LegJob
from harness.clients.loadgen.launch import run_job
from harness.config.engines import TinyCheckpoint
from harness.engines.address import EngineAddress, lanes_each
from harness.engines.base import Answers, Requests, Sampling, TokenEvents, Workload
from harness.engines.launch.weights import made
from harness.engines.start import EngineProcess, EngineSpec, build_core, start_engine
from harness.events import ignore
from harness.gate.metric import result_metric
from harness.ledger.store import DETAIL, LOGS, USER_CONF
from harness.logs import DetailLog

BENCHMARK = "gpt-oss-120b"
GOAL = 0.97
CAP = 32


@dataclass(frozen=True)
class Run:
    """One run: tokens a second, the engine process's CPU seconds, and the cores that others used meanwhile."""

    tokens_per_s: float
    cpu_s: float
    others: float


def main(argv: Sequence[str] | None = None) -> int:
    """Prints each run, the medians and their ratio; 1 where the goal is missed on a quiet machine."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--runs", type=int, default=5, help="turns of each contestant")
    parser.add_argument("--rows", type=int, default=256, help="samples a run")
    parser.add_argument("--bare", metavar="SPEC", help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    if options.bare:
        print(json.dumps(step_bare(Path(options.bare), options.rows)))
        return 0
    benchmark = benchmarks.get(BENCHMARK, rules.load(rules.LATEST))
    benchmark.make_dataset(env.data_dir(), seed=0)
    checkpoint = made(TinyCheckpoint(make="tiny-gpt-oss"))
    spec = EngineSpec("torch", {"checkpoint": str(checkpoint), "slots": 32, "threads": 1, "max_total_tokens": 512})
    print(f"Offline, {options.rows} samples, output cap {CAP}, one thread; load average {psutil.getloadavg()[0]:.1f}")
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        (folder / "spec.json").write_text(json.dumps(spec.to_json()))
        with start_engine(spec, log=folder / "engine.log", timeout_s=300) as engine:
            turns = [
                (bare_run(folder / "spec.json", options.rows), harness_run(folder / str(turn), engine, options.rows))
                for turn in range(-1, options.runs)  # the first turn warms both up
            ][1:]
    return judge(turns)


def judge(turns: list[tuple[Run, Run]]) -> int:
    """Prints runs, medians and ratio, turn by turn."""
    print(f"  {'':8}{'tokens/s':>12}{'engine CPU s':>14}{'others, cores':>15}")
    for bare, harness in turns:
        for name, run in (("bare", bare), ("harness", harness)):
            print(f"  {name:8}{run.tokens_per_s:12.1f}{run.cpu_s:14.2f}{run.others:15.2f}")
    ratios = sorted(harness.tokens_per_s / bare.tokens_per_s for bare, harness in turns)
    cpu = statistics.median(harness.cpu_s / bare.cpu_s for bare, harness in turns)
    ratio = statistics.median(ratios)
    busy = statistics.median(run.others for turn in turns for run in turn) > QUIET_CORES
    met = ratio >= GOAL
    verdict = "met" if met else "too busy a machine to judge" if busy else "MISSED"
    print(f"  harness / bare: median {ratio:.3f} (from {ratios[0]:.3f} to {ratios[-1]:.3f}), engine's CPU {cpu:.3f}")
    print(f"  goal: at least {GOAL}: {verdict}")
    return 0 if met or busy else 1


def bare_run(spec: Path, rows: int) -> Run:
    """The core in a process of its own, stepped to the end."""
    busy, started = busy_s(), time.monotonic()
    command = [sys.executable, __file__, "--bare", str(spec), "--rows", str(rows)]
    told = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    others = (busy_s() - busy - told["process_s"]) / (time.monotonic() - started)
    return Run(told["tokens"] / told["wall_s"], told["cpu_s"], others)


def step_bare(spec: Path, rows: int) -> dict[str, float]:
    """Submits all rows at once and steps the core until the last is answered."""
    core = build_core(EngineSpec.parse(json.loads(spec.read_text())))
    dataset = benchmarks.get(BENCHMARK, rules.load(rules.LATEST)).dataset(env.data_dir(), "performance")
    started, cpu = time.monotonic(), time.process_time()
    workload = Workload(dataset.name, sampling(), TokenEvents.NONE)
    core.submit(Requests(workload, range(rows), range(rows), dataset.prompts, range(rows)))
    answered = tokens = 0
    while answered < rows:
        for event in core.step():
            if not isinstance(event, Answers):
                raise RuntimeError(f"not an answer: {event}")
            answered += len(event)
            tokens += len(event.tokens)
    wall_s, cpu_s = time.monotonic() - started, time.process_time() - cpu
    return {"tokens": tokens, "wall_s": wall_s, "cpu_s": cpu_s, "process_s": time.process_time()}


def harness_run(folder: Path, engine: EngineProcess, rows: int) -> Run:
    """A whole Offline leg of LoadGen over the running engine."""
    folder.mkdir()
    values = {"target_qps": 1, "min_duration": 1, "min_query_count": rows, "performance_sample_count_override": rows}
    (folder / USER_CONF).write_text(user_conf.write(BENCHMARK, "Offline", values))
    dataset = benchmarks.get(BENCHMARK, rules.load(rules.LATEST)).dataset(env.data_dir(), "performance")
    job = LegJob(
        folder=str(folder),
        data_dir=str(env.data_dir()),
        dataset_sha256=dataset.sha256,
        round=rules.LATEST,
        benchmark=BENCHMARK,
        table="performance",
        dataset=dataset.name,
        chats=None,
        rows=rows,
        model=BENCHMARK,
        scenario="Offline",
        mode="PerformanceOnly",
        audit="",
        engine=EngineAddress((str(engine.socket),), (str(engine.log),), lanes_each(1)),
        sampling=sampling(),
        min_answer_tokens=2,
        watchdog_s=300,
    )
    busy, started, before = busy_s(), time.monotonic(), cpu_of(engine.pid)
    own = psutil.Process().cpu_times()
    outcome = run_job(job, "bench", ignore)
    if outcome.error or outcome.counts.answered != rows:
        raise RuntimeError(f"the leg broke: {outcome}")
    now = psutil.Process().cpu_times()
    children = now.children_user + now.children_system - own.children_user - own.children_system
    cpu_s = cpu_of(engine.pid) - before
    others = (busy_s() - busy - cpu_s - children) / (time.monotonic() - started)
    scenario = rules.load(rules.LATEST).benchmark(BENCHMARK).scenario("Offline")
    return Run(result_metric(DetailLog.read(folder / LOGS / DETAIL), scenario).value, cpu_s, others)


def sampling() -> Sampling:
    """The benchmark's sampling with a short output cap."""
    benchmark = benchmarks.get(BENCHMARK, rules.load(rules.LATEST))
    return benchmark.sampling("performance", seed=0, max_new_tokens=CAP)


if __name__ == "__main__":
    sys.exit(main())
