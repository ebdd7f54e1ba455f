"""One short run of LoadGen with a system under test that answers at once, but for some queries that it keeps back.

Runs in a process of its own: LoadGen keeps its settings and logs for a process's whole life.
"""

from __future__ import annotations

import json
import sys
import threading
from pathlib import Path
from typing import Any

import mlperf_loadgen as lg

LIBRARY = 64


def settings(asked: dict[str, Any]) -> lg.TestSettings:
    made = lg.TestSettings()
    made.mode = lg.TestMode.PerformanceOnly
    made.scenario = getattr(lg.TestScenario, asked["scenario"])
    made.min_duration_ms = 0
    made.min_query_count = made.max_query_count = asked["queries"]
    if asked["scenario"] == "Server":
        made.server_target_qps = 20_000
        made.server_target_latency_ns = asked["limit_ms"] * 1_000_000
        made.server_target_latency_percentile = asked["percentile"]
    else:
        made.single_stream_expected_latency_ns = 1_000
        made.single_stream_target_latency_percentile = asked["percentile"]
    return made


def main(folder: Path, asked: dict[str, Any]) -> None:
    kept: list[Any] = []
    seen = 0

    def complete(samples: list[Any]) -> None:
        lg.QuerySamplesComplete([lg.QuerySampleResponse(sample.id, 0, 0) for sample in samples])

    def issue(samples: list[Any]) -> None:
        nonlocal seen
        seen += 1
        if seen <= asked["kept_back"]:
            kept.extend(samples)
        else:
            complete(samples)

    def flush() -> None:
        # Flush is called when all have been issued: those kept back are let go after their limit is surely over.
        threading.Timer(asked["limit_ms"] / 1000, complete, [kept]).start()

    sut = lg.ConstructSUT(issue, flush)
    qsl = lg.ConstructQSL(LIBRARY, LIBRARY, lambda _: None, lambda _: None)
    output = lg.LogOutputSettings()
    output.outdir = str(folder)
    logs = lg.LogSettings()
    logs.log_output = output
    logs.enable_trace = True
    lg.StartTestWithLogSettings(sut, qsl, settings(asked), logs)
    lg.DestroyQSL(qsl)
    lg.DestroySUT(sut)


if __name__ == "__main__":
    main(Path(sys.argv[1]), json.loads(sys.argv[2]))
