"""Records of runs that never were, for tests of what is done with records."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from harness.ledger import Fingerprint, ResultsStore, RunId, RunRecord, State, write_record
from harness.ledger.record import Counts, DatasetEcho, EngineEcho, Machine, Rate, Result, Verdict, Warmup

VALID = Verdict(valid=True, loadgen="VALID", findings=[])


def record(run_id: RunId, **changes: Any) -> RunRecord:
    """A record of a run that is running; ``changes`` replace its fields."""
    fields: dict[str, Any] = {
        "id": run_id,
        "round": "v6.1",
        "state": State.RUNNING,
        "test_run": False,
        "started_at": "2026-01-01T00:00:00+00:00",
        "command": ["python", "-m", "harness", "run_harness"],
        "config": {"seed": 0},
        "fingerprint": Fingerprint.of({"system": run_id.system, "scenario": run_id.scenario}),
        "machine": Machine(
            identity="0" * 64, facts={"cores": 2}, sources={"cores": "lscpu"}, accelerators=0, captured_at="now"
        ),
        "engine": EngineEcho(
            kind="scripted", versions={"harness": "0"}, settings={}, checkpoint=None, slots=1, max_total_tokens=512
        ),
        "dataset": DatasetEcho(name="performance", rows=4, sha256="ab" * 32, stand_in=True),
        "versions": {"harness": "0"},
        "loadgen_settings": {"gpt-oss-120b.Offline.target_qps": "5"},
        "rate": Rate(target_qps=5.0, origin="configured"),
        "warmup": Warmup(requests=2, answers=2, output_tokens=8, seconds=0.5, samples_per_s=4.0),
        "not_submittable": ["stand-in data set"],
        "deviations": [],
        **changes,
    }
    return RunRecord(**fields)


def finished(run_id: RunId, **changes: Any) -> RunRecord:
    """A record of a run that ended VALID."""
    ended = {
        "state": State.FINISHED,
        "ended_at": "2026-01-01T00:10:00+00:00",
        "verdict": VALID,
        "counts": Counts(issued=4, answered=4, failed=0, outstanding=0, output_tokens=16),
        "result": Result(key="result_tokens_per_second", value=12.5, units="Tokens/s"),
    }
    return record(run_id, **{**ended, **changes})


def add(store: ResultsStore, scenario: str = "Offline", leg: str = "performance", **changes: Any) -> Path:
    """Keeps one finished run of BOX and returns its folder."""
    run_id, folder = store.new_attempt("BOX", "gpt-oss-120b", scenario, leg)
    write_record(folder, finished(run_id, **changes))
    return folder
