"""What live progress costs: CPU time of the process that LoadGen runs in, with it and without.

The worker is the harness's own, over the scripted engine in a process of its own; runs with and without progress take
turns. CPU time is that from StartTest to its return, of all threads; that of the thread which looks and tells is shown
beside it. Server is run at the highest of some rates that LoadGen sees kept, and at one at which its process mostly
waits; Offline with one query of many samples.
Run as ``python benchmarks/progress_cost.py``; exit status 1 where a goal is missed on a quiet machine.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from machine import QUIET_CORES, busy_s, cpu_of

from harness import benchmarks, env, rules
from harness.benchmarks.base import Dataset
from harness.clients.loadgen import user_conf
from harness.clients.loadgen.interpreter import make_interpreter_quick
from harness.clients.loadgen.job import LegJob
from harness.clients.loadgen.telling import ProgressPipe
from harness.clients.loadgen.worker import Worker
from harness.engines.address import EngineAddress, lanes_each
from harness.engines.base import Sampling
from harness.engines.start import EngineProcess, EngineSpec, start_engine
from harness.ledger.store import DETAIL, LOGS, USER_CONF
from harness.logs import DetailLog

BENCHMARK = "gpt-oss-120b"
GOAL = 1.02
RATES = (2_500, 5_000, 10_000, 20_000, 40_000)
SLOW_S = 20.0
"""How long a run at the slow rate is at least: the first look is dearer than those that follow."""
KEPT = 0.95
"""Of a rate that is kept so much is answered in the time of the run; arrivals are drawn, so it is never all."""
SOON_NS = 50_000_000
"""And nearly all within this: what only waits longer and longer is not kept."""
RATE_KEYS = {"Server": "result_completed_samples_per_sec", "Offline": "result_samples_per_second"}


@dataclass(frozen=True)
class Run:
    """One LoadGen run: CPU seconds of its process and of the thread that tells, ``others`` what else used the machine
    meanwhile, in cores.
    """

    samples: int
    cpu_s: float
    telling_s: float
    samples_per_s: float
    p99_ns: float
    others: float


def main(argv: Sequence[str] | None = None) -> int:
    """Prints each run, medians and ratios; 1 where a goal is missed on a quiet machine."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--runs", type=int, default=5, help="turns of each case")
    parser.add_argument("--seconds", type=float, default=8.0, help="length of a Server run")
    parser.add_argument("--rate", type=int, help="Server queries a second (default: the highest that is kept)")
    parser.add_argument("--slow_rate", type=int, default=50, help="of a process that mostly waits")
    parser.add_argument("--samples", type=int, default=500_000, help="size of the Offline query, about")
    parser.add_argument("--worker", metavar="JOB", help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    if options.worker:
        work(Path(options.worker))
    benchmarks.get(BENCHMARK, rules.load(rules.LATEST)).make_dataset(env.data_dir(), seed=0)
    with tempfile.TemporaryDirectory(prefix="progress-") as scratch:
        spec = EngineSpec("scripted", {"length": 3})
        with start_engine(spec, log=Path(scratch) / "engine.log", timeout_s=60) as engine:
            bench = Bench(Path(scratch), engine)
            rate = options.rate or highest_rate(bench, options.seconds)
            met = [
                judge(name, turns(bench, scenario, asked(qps, seconds), options.runs))
                for name, scenario, qps, seconds in (
                    (f"Server at {rate}/s", "Server", rate, options.seconds),
                    (f"Server at {options.slow_rate}/s", "Server", options.slow_rate, max(SLOW_S, options.seconds)),
                    (f"Offline, {options.samples} samples", "Offline", options.samples / 1.1, 1.0),
                )
            ]
    return 0 if all(met) else 1


def asked(qps: float, seconds: float) -> dict[str, float]:
    """LoadGen's settings."""
    return {"target_qps": qps, "min_duration": seconds * 1000, "min_query_count": 1}


def highest_rate(bench: Bench, seconds: float) -> int:
    """The highest rate that is kept without progress; each is tried once, shortly."""
    kept = 0
    for rate in RATES:
        run = bench.run("Server", asked(rate, min(seconds, 4.0)), progress=False)
        holds = run.samples_per_s >= KEPT * rate and run.p99_ns < SOON_NS
        verdict = "kept" if holds else "not kept"
        print(f"  Server at {rate}: {run.samples_per_s:.0f}/s, p99 {run.p99_ns / 1e6:.2f} ms, {verdict}", flush=True)
        if not holds:
            break
        kept = rate
    return kept or RATES[0]


def turns(bench: Bench, scenario: str, conf: Mapping[str, float], runs: int) -> list[tuple[Run, Run]]:
    """Pairs of a run without progress and one with it; which is first takes turns too."""
    pairs = []
    for turn in range(runs):
        order = (False, True) if turn % 2 else (True, False)
        by_progress = {progress: bench.run(scenario, conf, progress=progress) for progress in order}
        pairs.append((by_progress[False], by_progress[True]))
        for name, run in zip(("without", "with"), pairs[-1], strict=True):
            print(
                f"  {scenario:8}{name:8}{run.samples:9d} samples  {run.samples_per_s:9.0f}/s  CPU {run.cpu_s:7.3f} s, "
                f"telling {1000 * run.telling_s:7.1f} ms  others {run.others:.2f} cores",
                flush=True,
            )
    return pairs


def judge(case: str, pairs: list[tuple[Run, Run]]) -> bool:
    """Prints the ratio of the medians of CPU time a sample, and whether it is what it has to be."""
    quiet = [pair for pair in pairs if max(run.others for run in pair) <= QUIET_CORES]
    enough = 2 * len(quiet) > len(pairs)
    counted = quiet if enough else pairs

    def median(place: int, figure: Callable[[Run], float]) -> float:
        return statistics.median(figure(pair[place]) for pair in counted)

    ratio = median(1, lambda run: run.cpu_s / run.samples) / median(0, lambda run: run.cpu_s / run.samples)
    more_s = median(1, lambda run: run.telling_s) - median(0, lambda run: run.telling_s)
    own = 1 + more_s / median(0, lambda run: run.cpu_s)
    verdict = "met" if max(ratio, own) < GOAL else "MISSED" if enough else "the machine was too busy to judge"
    if own >= GOAL:
        verdict = "MISSED"  # the thread's own time is what it is, however busy the others are
    print(f"{case}: with / without {ratio:.4f} (the telling thread alone: {own:.4f}; below {GOAL}): {verdict}")
    return verdict != "MISSED"


# -- one run ----------------------------------------------------------------------------------------------------------


class Bench:
    """Runs of the worker over one engine."""

    def __init__(self, folder: Path, engine: EngineProcess) -> None:
        self._folder = folder
        self._engine = engine
        self._runs = 0

    def run(self, scenario: str, conf: Mapping[str, float], *, progress: bool) -> Run:
        """One run in a process of its own, whose progress is read as the harness reads it."""
        self._runs += 1
        folder = self._folder / str(self._runs)
        (folder / LOGS).mkdir(parents=True)
        dataset = benchmarks.get(BENCHMARK, rules.load(rules.LATEST)).dataset(env.data_dir(), "performance")
        rows = min(dataset.rows, round(conf["target_qps"] * conf["min_duration"] / 4000))  # whole passes are asked
        values = {**conf, "performance_sample_count_override": rows}
        (folder / USER_CONF).write_text(user_conf.write(BENCHMARK, scenario, values))
        job = self._job(folder, scenario, dataset, rows, progress=progress)
        (folder / "job.json").write_text(job.model_dump_json())
        busy, began, engine = busy_s(), time.monotonic(), cpu_of(self._engine.pid)
        command = [sys.executable, __file__, "--worker", str(folder / "job.json")]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as worker:
            lines = list(worker.stdout or ())
        if worker.returncode:
            raise RuntimeError(f"the worker ended with {worker.returncode}; see {folder}")
        told = json.loads(lines[-1])
        used = told.pop("process_s") + cpu_of(self._engine.pid) - engine
        others = (busy_s() - busy - used) / (time.monotonic() - began)
        if progress and told["wall_s"] > 2 and len(lines) < 2:
            raise RuntimeError("no progress was told")
        del told["wall_s"]
        return Run(**told, others=max(0.0, others))

    def _job(self, folder: Path, scenario: str, dataset: Dataset, rows: int, *, progress: bool) -> LegJob:
        return LegJob(
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
            scenario=scenario,
            mode="PerformanceOnly",
            audit="",
            engine=EngineAddress((str(self._engine.socket),), (str(self._engine.log),), lanes_each(1)),
            sampling=Sampling(1.0, 1.0, 0, 32, (), 0),
            min_answer_tokens=2,
            watchdog_s=60,
            progress=progress,
        )


class MeasuredWorker(Worker):
    """The worker, which notes what its test took."""

    cpu_s = telling_s = wall_s = 0.0

    def _test(self) -> None:
        cpu, began = time.process_time(), time.monotonic()
        super()._test()
        self.cpu_s, self.wall_s = time.process_time() - cpu, time.monotonic() - began

    def _watch(self) -> None:
        began = time.thread_time()
        super()._watch()
        self.telling_s = time.thread_time() - began


def work(path: Path) -> None:
    """What the worker's own ``main`` does, and a last line with the figures. Ends the process."""
    make_interpreter_quick()
    job = LegJob.model_validate_json(path.read_bytes())
    out = os.dup(1)
    os.dup2(2, 1)
    worker = MeasuredWorker(job, ProgressPipe(os.dup(out)) if job.progress else None)
    outcome = worker.run()
    if outcome.error or outcome.counts.failed or outcome.counts.outstanding:
        sys.stderr.write(f"the run broke: {outcome}\n")
        os._exit(1)
    log = DetailLog.read(Path(job.folder) / LOGS / DETAIL)
    told = {
        "samples": outcome.counts.answered,
        "cpu_s": worker.cpu_s,
        "telling_s": worker.telling_s,
        "samples_per_s": log.number(RATE_KEYS[job.scenario]),
        "p99_ns": log.number("result_99.00_percentile_latency_ns") or 0,
        "wall_s": worker.wall_s,
        "process_s": time.process_time(),
    }
    os.set_blocking(out, True)
    os.write(out, json.dumps(told).encode() + b"\n")
    os._exit(0)  # LoadGen's threads do not all end with the interpreter


if __name__ == "__main__":
    sys.exit(main())
