"""Books that never were and that have something of everything: what a page may be given to show."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from harness.ledger.record import TurnCounts
from harness.ledger.turn_report import (
    AtPlace,
    Inline,
    InlineDomain,
    Lengths,
    MeanOutput,
    Spread,
    TrajectoryStates,
    TurnReport,
)
from harness.report.book.content import Book, Limit, Margin, Missing, RowView, RunView, Said, Subset
from harness.report.book.limits import Limits
from harness.report.book.sample_figures import sample_figures
from tests.report.book.made import made_columns

LIMITS = Limits(
    ttft=Limit(99, 300.0, False, "a rule of the round"),
    tpot=Limit(99, 15.0, False, "a rule of the round"),
    latency=Limit(99, 60_000.0, True, "a rule of the round"),
)
NASTY = '<script>alert("x")</script> & <b>bold</b>'
"""What a name must not become: part of the page."""

MARGINS = (
    Margin("p99 TTFT", "ms", 257.125, 300.0, "below", True, "inference_policies: gpt-oss-120b, Interactive"),
    Margin("p99 TPOT", "ms", 14.25, 15.0, "below", True, "inference_policies: gpt-oss-120b, Interactive"),
    Margin("duration", "s", 612.4, 600.0, "at least", True, "mlperf.conf"),
)


def spread(*values: float) -> Spread:
    found = Spread.of(np.array(values, dtype=np.float64) * 1e6)
    assert found is not None
    return found


def turn_report() -> TurnReport:
    """Eight turns at most of 40 trajectories; later ones are longer, and a few were lost."""
    rng = np.random.default_rng(4)
    places = []
    for turn in range(8):
        answered, failed = 40 - 3 * turn, int(turn == 5)
        ttft = rng.lognormal(0, 0.3, answered) * 90 * (1 + 0.4 * turn)
        tpot = rng.normal(11, 1, answered)
        places.append(
            AtPlace(
                turn=turn,
                answered=answered,
                failed=failed,
                skipped=2 * failed,
                ttft_ns=spread(*ttft),
                tpot_ns=spread(*tpot),
                latency_ns=spread(*(ttft + tpot * 150)),
            )
        )
    answered = sum(place.answered for place in places)
    tokens = Spread.of(rng.integers(20, 400, answered))
    lengths = Lengths(by_server=answered, by_tokenizer=0, unknown=0, tokenizer=None, total=40_000, tokens=tokens)
    return TurnReport(
        turns=TurnCounts(issued=answered + 1, answered=answered, failed=1, skipped=2, outstanding=0),
        trajectories=TrajectoryStates(issued=40, completed=39, failed=1, outstanding=0),
        window_s=612.5,
        turns_per_s=answered / 612.5,
        trajectories_per_s=39 / 612.5,
        output_tokens_per_s=65.3,
        e2e_interactivity=71.25,
        ttft_ns=spread(90, 120, 400),
        tpot_ns=spread(10, 11, 14),
        latency_ns=spread(1500, 1800, 4000),
        trajectory_latency_ns=spread(15_000, 22_000, 61_000),
        trajectory_turns_ns=spread(14_000, 20_000, 60_000),
        by_turn=tuple(places),
        input_tokens=lengths,
        output_tokens=lengths,
        cached_tokens=lengths,
        cached_share=0.81,
        mean_output=MeanOutput(
            performance_window=180.5, performance_window_turns=200, performance_window_s=500.0, all_turns=181.25
        ),
        finish_reasons={"stop": answered - 5, "tool_calls": 5},
        issued_times={f"t{at}": 1 for at in range(40)},
        inline=Inline(
            score=0.91,
            recorded=answered + 3,
            scored=answered + 3,
            missing=3,
            skipped=2,
            domains={"web": InlineDomain(score=0.93, scored=100), "files": InlineDomain(score=0.9, scored=101)},
        ),
    )


def performance_run(key: str = "server-performance-1", *, samples: int = 20_000, **changed: Any) -> RunView:
    """A run with all figures, some failures, and everything of a ledger."""
    columns = made_columns(samples, rate=33.0, failed=3)
    fields: dict[str, Any] = {
        "key": key,
        "title": "GB300-NVL4_GB300-288GB_aarch64x4_TRT/gpt-oss-120b/Server/performance#1",
        "leg": "performance",
        "word": "VALID",
        "headline": "12,345.68 Tokens/s",
        "place": "results/GB300-NVL4_GB300-288GB_aarch64x4_TRT/gpt-oss-120b/Server/performance/attempt_01",
        "started_at": "2026-02-03T04:05:06.789012+00:00",
        "seconds": 612.4,
        "deviations": ("target_qps was raised after the first attempt",),
        "margins": MARGINS,
        "figures": sample_figures(columns, LIMITS),
        "counts": (
            ("issued", samples),
            ("answered", samples - 3),
            ("failed", 3),
            ("outstanding", 0),
            ("output tokens", 7_654_321),
        ),
        "failure_kinds": (("timeout", 2), ("http_503", 1)),
        "failures": ("row 17: timeout: no answer within 120 s", f"row 18: http_503: {NASTY}"),
        "comparisons": (("p99 TTFT, ms", 257.125, 256.994, 0.99949), ("tokens/s", 12345.678, 12345.9, 1.00002)),
        "facts": (
            ("versions", (("harness", "0.1.0"), ("LoadGen", "6.0.17"), ("engine", "TensorRT-LLM 1.2"))),
            ("machine", (("accelerator", "NVIDIA GB300 x 4"), ("host", "2 x Grace, 72 cores"), ("memory", "960 GB"))),
            ("settings", (("target_qps", "33"), ("min_duration_ms", "600000"))),
            ("fingerprint", (("dataset.sha256", "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"),)),
        ),
        "findings": (finding(rule="HN-COMPARISON", severity="note"),),
    }
    return RunView(**fields | changed)


def accuracy_run(key: str = "server-accuracy-1", **changed: Any) -> RunView:
    fields: dict[str, Any] = {
        "key": key,
        "title": "GB300-NVL4_GB300-288GB_aarch64x4_TRT/gpt-oss-120b/Server/accuracy#1",
        "leg": "accuracy",
        "word": "VALID",
        "headline": "exact_match 83.45",
        "place": "results/GB300-NVL4_GB300-288GB_aarch64x4_TRT/gpt-oss-120b/Server/accuracy/attempt_01",
        "seconds": 3725.0,
        "subsets": (
            Subset("aime25", 240, 196, 40, 0, 4, 9876.5),
            Subset("gpqa", 990, 712, 278, 0, 0, 4321.0),
            Subset("livecodebench", 3165, 2666, 490, 9, 0, None),
        ),
        "scores": (("exact_match", 83.45), ("tokens_per_sample", 1298.7)),
        "figures": (Missing("latency", "Latency", "an accuracy leg is not timed"),),
        "facts": (("versions", (("harness", "0.1.0"),)),),
    }
    return RunView(**fields | changed)


def agentic_run(key: str = "agentic-performance-1") -> RunView:
    return RunView(
        key=key,
        title="CPU-torch/qwen3.6-27b/SingleStream/performance#2",
        leg="performance",
        word="INVALID",
        headline="RUN-TURNS-FAILED: 1 turn failed",
        place="results/CPU-torch/qwen3.6-27b/SingleStream/performance/attempt_02",
        not_submittable=("short run", "stand-in checkpoint"),
        margins=(Margin("duration", "s", None, 600.0, "at least", False, "mlperf.conf"),),
        turns=turn_report(),
    )


def broken_run(key: str = "broken-1", why: str = "run.json ends in the middle of a line") -> RunView:
    return RunView(
        key=key,
        title="CPU-torch/gpt-oss-120b/Offline/performance#3",
        leg="performance",
        word="unread",
        headline=why,
        place=f"results/{NASTY}",
        figures=(Missing("latency", "Latency", NASTY), Missing("ttft", "Time to first token", "there are no samples")),
        notes=(f"samples.arrow: {NASTY}",),
        probe=True,
    )


def finding(**changed: Any) -> Said:
    fields: dict[str, Any] = {
        "rule": "LG-TTFT",
        "severity": "reject",
        "place": "closed/Acme/results/GB300/gpt-oss-120b/Interactive/performance/run_1/mlperf_log_detail.txt:4",
        "found": f"the 99th percentile of the first token is 612 ms {NASTY}",
        "expected": "below 300 ms",
        "mend": "lower target_qps",
        "source": "inference_policies",
    }
    return Said(**fields | changed)


def row(**changed: Any) -> RowView:
    fields: dict[str, Any] = {
        "key": "gb300-gpt-oss-server",
        "system": "GB300-NVL4_GB300-288GB_aarch64x4_TRT",
        "benchmark": "gpt-oss-120b",
        "scenario": "Server",
        "division": "closed",
        "category": "datacenter",
        "submitter": "Acme",
        "word": "VALID",
        "metric": "result_completed_tokens_per_second",
        "value": 12345.678,
        "unit": "Tokens/s",
        "higher_is_better": True,
        "accuracy": "exact_match 83.45 (at least 82.30)",
        "audits": (("TEST07", "PASS"), ("TEST09", "PASS")),
        "margins": MARGINS,
        "reasons": (),
        "boundary": (("benchmark", "gpt-oss-120b"), ("accelerator", "NVIDIA GB300"), ("nodes", "1")),
        "runs": ("server-performance-1", "server-accuracy-1"),
    }
    return RowView(**fields | changed)


def open_row(**changed: Any) -> RowView:
    fields: dict[str, Any] = {
        "key": "b200-kimi-singlestream",
        "system": "B200-SXM-180GBx8_TRT",
        "scenario": "SingleStream",
        "division": "open",
        "word": "INVALID",
        "value": 71.25,
        "unit": "tokens/s",
        "accuracy": "",
        "audits": (("TEST07", "FAIL"),),
        "reasons": ("the performance leg is INVALID", "TEST09 is missing"),
        "margins": (Margin("p99 TTFT", "ms", 612.0, 300.0, "below", False, "inference_policies"),),
        "runs": ("agentic-performance-1",),
    }
    return row(**fields | changed)


def lacking_row(**changed: Any) -> RowView:
    fields: dict[str, Any] = {
        "key": "cpu-offline",
        "system": "CPU-torch",
        "scenario": "Offline",
        "division": None,
        "category": None,
        "submitter": None,
        "word": "missing",
        "metric": None,
        "value": None,
        "unit": "",
        "accuracy": "",
        "audits": (),
        "margins": (),
        "reasons": ("there is no finished run",),
        "runs": (),
        "boundary": (),
    }
    return row(**fields | changed)


def book(**changed: Any) -> Book:
    """Rows of both divisions and of none, a run of each kind, findings of each severity."""
    fields: dict[str, Any] = {
        "title": "Acme, winter round",
        "source": "results",
        "place": "results",
        "round": "v6.1",
        "made_at": "2026-02-03T04:05:06+00:00",
        "made_by": "0.1.0",
        "rows": (row(), open_row(), lacking_row()),
        "runs": (performance_run(), accuracy_run(), agentic_run(), broken_run()),
        "findings": (
            finding(severity="note", rule="SYS-MEMORY"),
            finding(),
            finding(severity="review", rule="LG-CLOCK"),
        ),
        "notes": ("results/CPU-torch: a folder that holds no run", NASTY),
    }
    return Book(**fields | changed)


def demonstration() -> Book:
    """The same as a demonstration."""
    made = book()
    return dataclasses.replace(made, rows=tuple(dataclasses.replace(each, demonstration=True) for each in made.rows))


def earlier(made: Book) -> Book:
    """A book of the round before: one row was slower, one is of another machine, one is gone."""
    first, second, third = made.rows
    runs = (performance_run(samples=5_000), *made.runs[1:])
    rows = (
        dataclasses.replace(first, value=11_000.0),
        dataclasses.replace(second, boundary=(("benchmark", "gpt-oss-120b"), ("accelerator", "NVIDIA B200"))),
        dataclasses.replace(third, key="gone", benchmark="llama", value=3.0, unit="samples/s"),
    )
    return dataclasses.replace(made, title="Acme, autumn round", round="v6.0", rows=rows, runs=runs)
