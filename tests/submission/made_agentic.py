"""A submitter's folder and finished runs of the agentic benchmark: by the endpoints client, and by LoadGen."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml

from harness.clients.endpoints.config import LEG, REPORT
from harness.clients.endpoints.importer import hash_report
from harness.config.files import Project
from harness.config.models import SubmissionFile
from harness.gate import result_metric
from harness.gate.row_endpoints import check_endpoints_run
from harness.ledger.hashes import hash_files
from harness.ledger.record import (
    AccuracyEcho,
    Counts,
    DatasetEcho,
    EngineEcho,
    Fingerprint,
    Result,
    RunRecord,
    State,
    SubsetScore,
    Verdict,
)
from harness.ledger.store import ACCURACY_TXT, LOGS, USER_CONF, ResultsStore, StoredRun, write_record
from harness.logs import DetailLog
from tests.gate import full_length
from tests.gate import made_endpoints as made
from tests.gate.made_benchmarks import ENTRIES, RUNS, with_queries
from tests.gate.test_endpoints import place_of
from tests.logs.loadgen_runs import Leg
from tests.submission.made_up import REPOSITORY, SAID, machine

AGENT = made.AGENT
SCENARIO = "SingleStream"
MODEL = "moonshotai/Kimi-K2.6"
METRIC_DIFFERS = "metric differs: the latency of whole trajectories, not of turns"
RULES = made.ROUND.benchmark(AGENT)
ENGINE: dict[str, Any] = {
    "kind": "http",
    "server": "sglang",
    "version": "0.5",
    "checkpoint": {"name": MODEL, "path": "/m", "revision": "cd" * 20, "weight_data_type": "int4"},
    "options": {"tp_size": 8, "tool_call_parser": "kimi_k2"},
    "endpoints": ["http://127.0.0.1:9"],
}
CONFIG = {
    "engine": ENGINE,
    "scenarios": {SCENARIO: {"target_qps": 0.05}, "Offline": {"target_qps": 0.2}},
    "agentic": {"chat_template_kwargs": {"thinking": False}},
}
BFCL = {"overall_accuracy": 86.83, "normalized_single_turn_score": 87.27}


def make_project(root: Path) -> Project:
    """``systems/box`` with the agentic benchmark, and the repository's own templates."""
    system = root / "systems" / "box"
    system.mkdir(parents=True)
    (system / "system.yaml").write_text(yaml.safe_dump(SAID), encoding="utf-8")
    (system / f"{AGENT}.yaml").write_text(yaml.safe_dump(CONFIG), encoding="utf-8")
    (root / "measurements").symlink_to(REPOSITORY / "measurements")
    (root / "Makefile").write_text("help:\n\t@echo help\n", encoding="utf-8")
    (root / "submission.yaml").write_text(yaml.safe_dump(entries().model_dump()), encoding="utf-8")
    return Project(root)


def entries(division: str = "open", **changed: object) -> SubmissionFile:
    """One entry of ``box``."""
    entry = {
        "division": division, "category": "edge", "availability": "available", "system": "box", "benchmark": AGENT,
        "scenarios": [SCENARIO], **changed,
    }  # fmt: skip
    return SubmissionFile.model_validate({"round": "v6.1", "submitter": "Example", "entries": [entry]})


def engine() -> EngineEcho:
    checkpoint = {"name": MODEL, "sha256": "ab" * 32, "stand_in": False, "weight_data_type": "int4"}
    return EngineEcho(
        kind="http", versions={"sglang": "0.5.9"}, settings={}, checkpoint=checkpoint, slots=1, max_total_tokens=32768
    )


def _fields(id_: object, **changed: object) -> dict[str, Any]:
    return {
        "id": id_,
        "round": "v6.1",
        "state": State.FINISHED,
        "test_run": False,
        "started_at": "2026-01-01T00:00:00Z",
        "command": ["python", "-m", "harness", "run_harness", "--client=endpoints", "--systems=box"],
        "config": CONFIG,
        "fingerprint": Fingerprint.of({"system": "box", "dataset.trajectories": RULES.performance_data.value.sha256}),
        "machine": machine(framework="SGLang 0.5.9"),
        "engine": engine(),
        "versions": {"harness": "0.1.0"},
        "loadgen_settings": {},
        "rate": None,
        "not_submittable": [],
        "deviations": [],
        "verdict": Verdict(valid=True, loadgen=None, findings=[]),
        **changed,
    }


def add_client_run(store: ResultsStore, *, overall: float = BFCL["overall_accuracy"], **changed: object) -> StoredRun:
    """A finished run of the client with Kimi K2.6, its report with nothing against it in open."""
    id_, folder = store.new_attempt("box", AGENT, SCENARIO, LEG)
    report = folder / REPORT
    made.make_row(report, AGENT, SCENARIO)
    for name in ("README.md", "measurements.json"):
        (report / name).unlink()
    made.change_data(report / "config.yaml", "model_params/name", "Kimi-K2.6")
    made.change_data(report / "config.yaml", "model_params/chat_template_kwargs", {"thinking": False})
    made.change_data(report / "config.yaml", "model_params/tokenizer_name", ...)
    results = report / "accuracy" / "accuracy_results.json"
    made.change_data(results, "accuracy_scores/0/score", overall / 100)
    made.change_data(results, "accuracy_scores/0/breakdown/overall_accuracy", overall)
    (report / "report.txt").write_text("Summary\n", encoding="utf-8")
    (report / "scores.json").write_text(json.dumps(turns()), encoding="utf-8")
    row = check_endpoints_run(report, place_of(AGENT, SCENARIO, "open"), made.ROUND)
    assert row.metric is not None
    fields = _fields(
        id_,
        dataset=DatasetEcho(name=f"{AGENT}/bfcl", rows=995, sha256="cd" * 32, stand_in=False),
        versions={"harness": "0.1.0", "endpoints": "0.1.0", "endpoints_commit": "ea33275"},
        hashes=hash_report(folder),
        counts=Counts(issued=1007, answered=1007, failed=0, outstanding=0, output_tokens=0),
        result=Result(key=row.metric.key, value=row.metric.value, units=row.metric.units),
        accuracy=AccuracyEcho(key="overall_accuracy", value=overall, subsets={}, evaluator="inference-endpoint 0.1.0"),
    )
    record = RunRecord.model_validate({**fields, **changed})
    write_record(folder, record)
    return StoredRun(folder, record)


def turns() -> dict[str, Any]:
    """``scores.json`` of a run whose turns were all observed."""
    data = RULES.performance_data.value
    counts = {"issued": data.turns, "expected": data.scorable_turns, "observed": data.scorable_turns, "missing": 0}
    return {"score": 0.6158, "turns": {**counts, "scored": data.scorable_turns}, "per_turn": [], "excluded_turns": []}


def add_loadgen_legs(
    store: ResultsStore, logs: dict[tuple[str, str], Path], scenario: str = SCENARIO, *, whole: bool = True
) -> None:
    """Both legs of trajectories through LoadGen: for analysis, and no result of the benchmark.

    In SingleStream as long as they must be, in other scenarios as short as they were. ``whole`` is whether all
    questions were asked.
    """
    for leg in ("performance", "accuracy"):
        id_, folder = store.new_attempt("box", AGENT, scenario, leg)
        full_length.copy(logs[scenario, leg], folder / LOGS, scenario, leg, _of_full_length(logs, scenario, leg))
        (folder / USER_CONF).write_text(f"*.{scenario}.min_query_count = 1000\n", encoding="utf-8")
        accuracy = leg == "accuracy"
        if accuracy:
            (folder / ACCURACY_TXT).write_text(
                "Scored by the harness.\nnormalized_single_turn_score: 87.27 %\nmAP=86.830\n", encoding="utf-8"
            )
        subsets = {
            name: SubsetScore(samples=n.samples, correct=n.samples, wrong=0, failed=0, unscored=0, mean_output_tokens=9)
            for name, n in RULES.accuracy_subsets.value.items()
        }
        more = {key: value for key, value in BFCL.items() if key != "overall_accuracy"} | {"non_live": 82.09}
        value = 86.83 if whole else None
        echo = AccuracyEcho(key="overall_accuracy", value=value, subsets=subsets, evaluator="the harness", also=more)
        fields = _fields(
            id_,
            command=["python", "-m", "harness", "run_harness", "--systems=box"],
            dataset=DatasetEcho(name=leg, rows=995 if accuracy else 1000, sha256="cd" * 32, stand_in=False),
            versions={"harness": "0.1.0", "mlcommons_loadgen": "6.0.17"},
            hashes=hash_files(folder),
            verdict=Verdict(valid=True, loadgen=None if accuracy else "VALID", findings=[]),
            result=None if accuracy else measured(folder, scenario),
            accuracy=echo if accuracy else None,
            not_submittable=[] if accuracy else [METRIC_DIFFERS],
        )
        write_record(folder, RunRecord.model_validate(fields))


def _of_full_length(logs: dict[tuple[str, str], Path], scenario: str, leg: str) -> dict[str, object]:
    if scenario != SCENARIO:
        return {}
    return with_queries(ENTRIES["agentic"], logs[scenario, "performance"]).of_full_length(scenario, leg) or {}


def measured(folder: Path, scenario: str) -> Result:
    """What LoadGen logged."""
    metric = result_metric(DetailLog.read(folder / LOGS / full_length.DETAIL), RULES.scenario(scenario))
    return Result(key=metric.key, value=metric.value, units=metric.units)


def real_runs(root: Path) -> dict[tuple[str, str], Path]:
    """Short runs of LoadGen in SingleStream, and in a scenario that is for analysis alone."""
    legs = {(SCENARIO, leg): RUNS[SCENARIO, leg] for leg in ("performance", "accuracy")}
    legs["Offline", "performance"] = Leg("Offline", "PerformanceOnly", 1000, {"*.Offline.target_qps": "1"}, model=AGENT)
    legs["Offline", "accuracy"] = Leg("Offline", "AccuracyOnly", 995, model=AGENT)
    return {key: leg.run(root / "_".join(key)) for key, leg in legs.items()}
