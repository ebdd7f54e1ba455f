"""A submitter's folder and finished runs in it: real LoadGen logs, records made up to go with them."""

from __future__ import annotations

import shutil
from pathlib import Path

import yaml

from harness.config.files import Project
from harness.config.models import SubmissionFile
from harness.gate import result_metric
from harness.ledger.hashes import hash_files
from harness.ledger.record import (
    AccuracyEcho,
    AuditEcho,
    DatasetEcho,
    EngineEcho,
    Fingerprint,
    Machine,
    Result,
    RunRecord,
    State,
    SubsetScore,
    Verdict,
    VerdictFinding,
)
from harness.ledger.store import ACCURACY_TXT, LOGS, USER_CONF, ResultsStore, StoredRun, write_record
from harness.logs import DetailLog
from harness.machine.accelerators import KEYS
from harness.rules import load
from tests.gate import full_length
from tests.gate.made_audits import AUDITS, MEAN, TEXTS, lengthen

REPOSITORY = Path(__file__).parents[2]
BENCHMARK = "gpt-oss-120b"
SCENARIOS = ("Offline", "Server")
SAID = {
    "system_name": "Example box",
    "number_of_nodes": 1,
    "cooling": "air",
    "host_networking_topology": "N/A, one machine",
    "host_memory_configuration": "16x 64 GB DDR5",
    "bandwidth": "1x 100 GbE, 12.1 GB/s measured with iperf3",
}
FACTS = {
    "host_processor_model_name": "AMD EPYC",
    "host_processors_per_node": 1,
    "host_processor_core_count": 2,
    "host_processor_caches": "L3 32 MiB",
    "host_memory_capacity": "23.5 GiB",
    "host_memory_configuration": None,
    "host_storage_capacity": "256 GiB",
    "host_storage_type": "virtual disk",
    "host_networking": "Ethernet",
    "host_network_card_count": "1x Ethernet",
    "operating_system": "Debian 12",
    "framework": "torch 2.13.0",
    "other_software_stack": "Python 3.11",
    **dict.fromkeys(KEYS, "N/A"),
    "accelerators_per_node": "0",
}
SUBSETS = {
    "aime25": SubsetScore(samples=240, correct=144, wrong=96, failed=0, unscored=0, mean_output_tokens=4),
    "gpqa_diamond": SubsetScore(samples=990, correct=396, wrong=594, failed=0, unscored=0, mean_output_tokens=4),
    "livecodebench_v6": SubsetScore(samples=3165, correct=0, wrong=0, failed=0, unscored=3165, mean_output_tokens=4),
}
ACCURACY_TEXT = "Scored by the harness, not by the reference's evaluator.\naime25 144 of 240\nunscored: 3165\n"
GRADED = {
    **SUBSETS,
    "livecodebench_v6": SubsetScore(samples=3165, correct=2900, wrong=265, failed=0, unscored=0, mean_output_tokens=4),
}
GRADED_TEXT = "Printing for submission_checker:\n'exact_match': 83.130\n"
ROWS = {"performance": 6396, "accuracy": 4395, **{name: rules.rows.value for name, rules in AUDITS.items()}}
CONF = "*.Offline.target_qps = 10\n*.Offline.min_query_count = 6396\n"


def make_project(root: Path, **said: object) -> Project:
    """Writes systems/box, submission.yaml and the repository's own templates."""
    system = root / "systems" / "box"
    system.mkdir(parents=True)
    (system / "system.yaml").write_text(yaml.safe_dump({**SAID, **said}))
    shutil.copy(REPOSITORY / "systems/CPU-torch/gpt-oss-120b.yaml", system)
    shutil.copytree(REPOSITORY / "systems/_bases", root / "systems/_bases")
    shutil.copytree(REPOSITORY / "measurements", root / "measurements")
    (root / "Makefile").write_text("help:\n\t@echo help\n")
    (root / "submission.yaml").write_text(yaml.safe_dump(submission().model_dump()))
    return Project(root)


def submission(submitter: str | None = "Example", **changed: object) -> SubmissionFile:
    """The one entry, of ``box``."""
    entry = {
        "division": "open",
        "category": "datacenter",
        "availability": "rdi",
        "system": "box",
        "benchmark": BENCHMARK,
        "scenarios": list(SCENARIOS),
        **changed,
    }
    return SubmissionFile.model_validate({"round": "v6.1", "submitter": submitter, "entries": [entry]})


def machine(identity: str = "0" * 64, **changed: object) -> Machine:
    facts = {**FACTS, **changed}
    sources = {key: "lscpu" if value is not None else "not told" for key, value in facts.items()}
    return Machine(identity=identity, facts=facts, sources=sources, accelerators=0, captured_at="2026-01-01T00:00:00Z")


def add_run(
    store: ResultsStore,
    logs: dict[tuple[str, str], Path],
    scenario: str,
    leg: str,
    *,
    text: str = "",
    **changed: object,
) -> StoredRun:
    """One finished run with the logs of a real one. ``changed`` replaces fields of its record; ``text`` goes into its
    detail log."""
    id_, folder = store.new_attempt("box", BENCHMARK, scenario, leg)
    full_length.copy(logs[scenario, leg], folder / LOGS, scenario, leg)
    (folder / USER_CONF).write_text(CONF)
    if text:
        with (folder / LOGS / full_length.DETAIL).open("a") as file:
            file.write(text)
    if leg == "accuracy":
        (folder / ACCURACY_TXT).write_text(changed.pop("accuracy_text", ACCURACY_TEXT))
    if leg in AUDITS:
        lengthen(folder / LOGS / full_length.DETAIL, scenario)
        (folder / AUDITS[leg].verdict_file.value).write_text(changed.pop("verdict_text", TEXTS[leg]))
    accuracy = AccuracyEcho(key="exact_match", value=None, subsets=SUBSETS, evaluator="the harness")
    performance = leg == "performance"
    fields = {
        "id": id_,
        "round": "v6.1",
        "state": State.FINISHED,
        "test_run": False,
        "started_at": "2026-01-01T00:00:00Z",
        "command": ["python", "-m", "harness", "run_harness", "--systems=box"],
        "config": {
            "engine": {"kind": "torch", "checkpoint": "/models/tiny"},
            "scenarios": {scenario: {"target_qps": 10}},
        },
        "fingerprint": Fingerprint.of({"system": "box", "scenario": scenario, "versions.harness": "0.1.0"}),
        "machine": machine(),
        "engine": EngineEcho(
            kind="torch",
            versions={"torch": "2.13.0"},
            settings={},
            checkpoint={"name": "tiny", "sha256": "ab" * 32, "stand_in": False, "weight_data_type": "bf16"},
            slots=32,
            max_total_tokens=512,
        ),
        "dataset": DatasetEcho(name=leg, rows=ROWS[leg], sha256="cd" * 32, stand_in=False),
        "versions": {"harness": "0.1.0", "mlcommons_loadgen": "6.0.17"},
        "loadgen_settings": {},
        "rate": None,
        "not_submittable": [],
        "deviations": [],
        "hashes": hash_files(folder),
        "verdict": Verdict(valid=True, loadgen=None if leg == "accuracy" else "VALID", findings=[]),
        "result": _result(folder / LOGS / full_length.DETAIL, scenario) if performance else None,
        "accuracy": accuracy if leg == "accuracy" else None,
        "audit": audit(leg) if leg in AUDITS else None,
        **changed,
    }
    record = RunRecord.model_validate(fields)
    write_record(folder, record)
    return StoredRun(folder, record)


def add_closed(store: ResultsStore, logs: dict[tuple[str, str], Path], *scenarios: str) -> None:
    """All four legs of each scenario, with nothing against filing them in closed."""
    score = AccuracyEcho(key="exact_match", value=83.13, subsets=GRADED, evaluator="the harness")
    for scenario in scenarios or SCENARIOS:
        add_run(store, logs, scenario, "performance")
        add_run(store, logs, scenario, "accuracy", accuracy=score, accuracy_text=GRADED_TEXT)
        for name in AUDITS:
            add_run(store, logs, scenario, name)


def audit(name: str, *, value: float | None = None) -> AuditEcho:
    """What an audit came to: what its verdict of :data:`TEXTS` says, or another value."""
    rules = AUDITS[name]
    if rules.score is not None:
        key, low, high, found = rules.score.value.key, rules.score.value.at_least, None, 61.616
    else:
        window = rules.mean_output_tokens.value
        key, low, high, found = "mean_output_tokens", window.at_least, window.at_most, float(MEAN)
    found = found if value is None else value
    return AuditEcho(
        key=key,
        value=found,
        at_least=low,
        at_most=high,
        passed=low <= found and (high is None or found <= high),
        verdict_file=rules.verdict_file.value,
        verifier="mlcommons/inference @ " + "b" * 40,
        harness_value=found,
    )


def _result(log: Path, scenario: str) -> Result:
    metric = result_metric(DetailLog.read(log), load("v6.1").benchmark(BENCHMARK).scenario(scenario))
    return Result(key=metric.key, value=metric.value, units=metric.units)


def invalid(rule: str = "LG-VALID", found: str = "INVALID") -> Verdict:
    finding = VerdictFinding(
        rule=rule, severity="reject", path="logs", found=found, expected="VALID", mend="run again", source="LoadGen"
    )
    return Verdict(valid=False, loadgen="INVALID", findings=[finding])
