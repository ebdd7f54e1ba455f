"""Our client below LoadGen, Server scenario: ``python -m sse.latency LOAD RATE SECONDS``.

Prints LoadGen's own figures: how long it waited for first tokens and for whole answers, from when each query was due.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import threading
import traceback
from pathlib import Path

import mlperf_loadgen as loadgen
import psutil

from harness.clients.loadgen.interpreter import make_interpreter_quick
from harness.clients.loadgen.sut import LoadGenSut
from harness.engines.base import TokenEvents
from sse.load import Load, cpu_s
from sse.ours import clients, prompts, workload

PROCESSES = 2
ROWS = 64
NO_BOUND_NS = 10**11
FIGURES = {
    "first_p50_ms": "result_first_token_50.00_percentile_latency_ns",
    "first_p99_ms": "result_first_token_99.00_percentile_latency_ns",
    "whole_p50_ms": "result_50.00_percentile_latency_ns",
    "whole_p99_ms": "result_99.00_percentile_latency_ns",
    "completed_per_s": "result_completed_samples_per_sec",
}


def main(load: Load, rate: float, seconds: float) -> None:
    """One LoadGen run; ends the process, for LoadGen's threads do not."""
    make_interpreter_quick()
    with (
        tempfile.TemporaryDirectory(prefix="latency-") as folder,
        clients([load.port], PROCESSES, load.streams) as (group, engine),
    ):
        table = prompts(ROWS, load.prompt)
        asked = workload(load.tokens, TokenEvents.FIRST)
        sut = LoadGenSut(engine, table, asked, min_answer_tokens=2, token_latencies=True, on_broken=give_up)
        sut.start()
        pids = [process.pid for process in group.processes]
        theirs, own = sum(map(cpu_s, pids)), cpu_s(os.getpid())
        test(sut, folder, rate, seconds)
        spent = {"client_s": sum(map(cpu_s, pids)) - theirs, "driver_s": cpu_s(os.getpid()) - own}
        sut.close()
        counted = {"answers": sut.completed, "failures": engine.counters(10.0)["failures"]}
        told = figures(Path(folder) / "mlperf_log_detail.txt") | spent | counted
    print(json.dumps(told), flush=True)
    os._exit(0)


def test(sut: LoadGenSut, folder: str, rate: float, seconds: float) -> None:
    """Runs LoadGen on a thread of its own, as the harness does."""
    logs = loadgen.LogSettings()
    logs.log_output.outdir = folder
    logs.enable_trace = False
    settings = loadgen.TestSettings()
    settings.scenario = loadgen.TestScenario.Server
    settings.mode = loadgen.TestMode.PerformanceOnly
    settings.min_query_count = 1
    settings.use_token_latencies = True
    settings.ttft_latency = settings.tpot_latency = NO_BOUND_NS
    settings.server_target_qps = rate
    settings.min_duration_ms = int(seconds * 1e3)
    library = loadgen.ConstructQSL(ROWS, ROWS, lambda rows: None, lambda rows: None)
    under_test = loadgen.ConstructFastSUT(sut.issue, sut.flush)
    arguments = (under_test, library, settings, logs, "no-audit.config")
    thread = threading.Thread(target=loadgen.StartTestWithLogSettings, args=arguments)
    thread.start()
    thread.join()


def figures(log: Path) -> dict[str, float]:
    """What LoadGen says of a run."""
    found = {}
    for entry in log.read_text(encoding="utf-8").splitlines():
        said = json.loads(entry.removeprefix(":::MLLOG "))
        if said["metadata"].get("is_error"):
            raise RuntimeError(f"LoadGen reports an error: {said['value']}")
        found[said["key"]] = said["value"]
    return {name: found[key] / (1e6 if key.endswith("_ns") else 1) for name, key in FIGURES.items()}


def give_up(error: BaseException) -> None:
    """LoadGen would wait for ever."""
    traceback.print_exception(error)
    sys.stderr.flush()
    for child in psutil.Process().children():
        child.terminate()
    os._exit(1)


if __name__ == "__main__":
    main(Load.parse(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3]))
