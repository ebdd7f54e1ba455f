"""What legs tell while real LoadGen measures: figures of a scripted engine whose times are known."""

from __future__ import annotations

import io
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.clients.loadgen import launch
from harness.clients.loadgen.launch import Beside, run_job
from harness.events import Event, LegProgress, Occupancy, Running
from tests.clients.loadgen.trajectory_legs import job, scripted, store_of

FIRST_S, TOKEN_S = 0.05, 0.01
SERVICE = {"length": 11, "first_token": {"mean_s": FIRST_S}, "per_token": {"mean_s": TOKEN_S}, "slots": 4}
SOON = 20.0
"""A shared machine may be so much later than the script."""


def test_a_line_of_the_worker_is_progress_with_what_stands_beside() -> None:
    names = {"TTFT": (1.0, 2.0), "latency": (3.0, 4.0)}
    each = [{"name": name, "p50_ns": p50, "p99_ns": p99} for name, (p50, p99) in names.items()]
    figures = {"issued": 4, "completed": 3, "failed": 1, "samples_per_s": 2.0, "tokens_per_s": None}
    line = json.dumps(figures | {"running": each}) + "\n"
    told: list[Event] = []
    process: Any = SimpleNamespace(stdout=io.StringIO(line))
    launch._follow(process, "leg", told.append, Beside({"TTFT": 9.0}))
    (progress,) = told
    assert isinstance(progress, LegProgress)
    running = (Running("TTFT", 1.0, 2.0, 9.0), Running("latency", 3.0, 4.0))
    assert progress == LegProgress("leg", progress.elapsed_s, 4, 3, 1, None, 2.0, None, running)


@pytest.mark.e2e
def test_a_leg_of_trajectories_tells_what_the_script_takes(tmp_path: Path) -> None:
    store = store_of(tmp_path / "chats", [3, 2, 4, 2])
    told: list[Event] = []
    with scripted(tmp_path, **SERVICE) as group:
        conf = {"target_qps": 20, "min_duration": 4000, "min_query_count": 8}
        asked = job(tmp_path / "run", group, store, "Server", 4, conf=conf)
        outcome = run_job(asked, "leg", told.append, Beside({"latency": 1e9}, group.occupancy))
    assert outcome.error is None
    seen = [event for event in told if isinstance(event, LegProgress)]
    last = seen[-1]
    running = {each.name: each for each in last.running}
    bounds = {
        "TTFT": FIRST_S,
        "turn TTFT": FIRST_S,
        "turn TPOT": TOKEN_S,
        "turn latency": FIRST_S + 10 * TOKEN_S,
        "latency": 2 * (FIRST_S + 10 * TOKEN_S),
    }
    for name, least_s in bounds.items():
        assert 0.98 * least_s < running[name].p50_ns / 1e9 < SOON, name
        assert running[name].p50_ns <= running[name].p99_ns
    assert running["latency"].limit_ns == 1e9 and running["TTFT"].limit_ns is None
    assert last.turns and last.samples_per_s and last.tokens_per_s
    assert last.tokens_per_s == pytest.approx(11 * last.samples_per_s, rel=0.01)
    occupancies = [event.occupancy for event in seen if event.occupancy is not None]
    assert occupancies and all(isinstance(each, Occupancy) and each.running is not None for each in occupancies)
    assert any(each.running and each.kv_cache is None for each in occupancies)
