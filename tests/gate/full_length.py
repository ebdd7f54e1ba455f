"""Real logs of short runs, with those values changed in which a run of full length would differ."""

from __future__ import annotations

import shutil
from pathlib import Path

from harness.gate import Coverage, Expectation, RunFacts
from harness.logs import AccuracyLog, DetailLog, SummaryLog
from harness.rules import load
from tests.logs.loadgen_runs import edit

BENCHMARK = "gpt-oss-120b"
DETAIL = "mlperf_log_detail.txt"
SUMMARY = "mlperf_log_summary.txt"
ACCURACY_LOG = "mlperf_log_accuracy.json"

LONG = 601_000_000_000  # ns
MEAN = 1300  # tokens an answer
CHANGES = {
    ("Offline", "performance"): {
        "result_validity": "VALID",
        "result_min_duration_met": True,
        "result_invalid_reason": ...,
        "result_max_latency_ns": LONG,
        "result_samples_per_second": 12792 / 601,
        "result_tokens_per_second": MEAN * 12792 / 601,
        "power_begin": "08-20-2026 10:00:00.000",
        "power_end": "08-20-2026 10:10:01.000",
    },
    ("Server", "performance"): {
        "requested_min_duration_ms": 600000,
        "effective_min_duration_ms": 600000,
        "effective_target_duration_ms": 600000,
        "result_scheduled_samples_per_sec": 6395 / 601,
        "result_completed_samples_per_sec": 6396 / 601,
        "result_completed_tokens_per_second": MEAN * 6396 / 601,
        "power_begin": "08-20-2026 10:00:00.000",
        "power_end": "08-20-2026 10:10:01.000",
    },
}
LATENCY = "Max latency (ns)                : "


def copy(source: Path, out: Path, scenario: str, leg: str, changes: dict[str, object] | None = None) -> Path:
    """The logs of a passing run of full length, in ``out``; ``changes`` are those of another benchmark."""
    out.mkdir(parents=True)
    for name in (DETAIL, SUMMARY, ACCURACY_LOG):
        shutil.copy(source / name, out / name)
    edit(out / DETAIL, **(CHANGES.get((scenario, leg), {}) if changes is None else changes))
    summary = (out / SUMMARY).read_text().replace("INVALID", "VALID")
    if (scenario, leg) == ("Offline", "performance"):
        latency = DetailLog.read(source / DETAIL).value("result_max_latency_ns")
        assert f"{LATENCY}{latency}" in summary
        summary = summary.replace(f"{LATENCY}{latency}", f"{LATENCY}{LONG}")
    (out / SUMMARY).write_text(summary)
    return out


def facts(folder: Path, scenario: str, leg: str, **changes: object) -> RunFacts:
    """The facts of the run in ``folder``; ``changes`` replace fields of them."""
    pack, benchmark = changes.get("pack", load("v6.1")), changes.get("benchmark", BENCHMARK)
    expectation = Expectation.of_round(pack, benchmark, scenario, leg)
    given = {
        "leg": leg,
        "scenario": scenario,
        "benchmark": benchmark,
        "pack": pack,
        "expectation": expectation,
        "detail": DetailLog.read(folder / DETAIL),
        "summary": SummaryLog.read(folder / SUMMARY),
    }
    if leg == "accuracy" and "coverage" not in changes:
        given["coverage"] = Coverage.of(AccuracyLog(folder / ACCURACY_LOG), expectation.dataset_rows)
    return RunFacts(**{**given, **changes})
