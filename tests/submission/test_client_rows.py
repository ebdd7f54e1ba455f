"""Rows that the endpoints client measured, laid out and read back by the gate, and by the real checker where it is."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from harness.clients.endpoints.config import LEG, REPORT
from harness.clients.endpoints.importer import hash_report
from harness.config.files import Project
from harness.config.models import SubmissionFile
from harness.errors import MissingError, Refused
from harness.gate import Severity, check_tree
from harness.gate.official import OfficialVerdict, run_official
from harness.gate.row_endpoints import check_endpoints_run
from harness.ledger.record import (
    AccuracyEcho,
    Counts,
    DatasetEcho,
    EngineEcho,
    Fingerprint,
    ProbeEcho,
    Result,
    RunRecord,
    State,
    Verdict,
    VerdictFinding,
)
from harness.ledger.store import ResultsStore, StoredRun, write_record
from harness.submission import PackageReport, package
from harness.submission.legs import Attempts
from harness.submission.secrets import Names
from tests.gate import made_endpoints as made
from tests.gate.test_endpoints import place_of
from tests.submission.made_up import REPOSITORY, SAID, machine

VARIABLE = "MLPERF_INFERENCE_DIR"
CLONE = os.environ.get(VARIABLE)
PACK = made.ROUND
SCENARIOS = ("Offline", "Server")
ENGINE = {
    "kind": "http",
    "server": "vllm",
    "version": "0.11",
    "checkpoint": {
        "name": "Qwen/Qwen3-VL-235B-A22B-Instruct",
        "path": "/m",
        "revision": "ab" * 20,
        "weight_data_type": "bf16",
    },
    "options": {"enable_prefix_caching": False, "mm_processor_cache_gb": 0},
    "endpoints": ["http://127.0.0.1:9"],
}


@pytest.fixture
def client_project(tmp_path: Path) -> Project:
    root = tmp_path / "work"
    system = root / "systems" / "box"
    system.mkdir(parents=True)
    (system / "system.yaml").write_text(yaml.safe_dump(SAID), encoding="utf-8")
    content = {"engine": ENGINE, "scenarios": {name: {"target_qps": 70} for name in SCENARIOS}}
    (system / f"{made.QWEN}.yaml").write_text(yaml.safe_dump(content), encoding="utf-8")
    (root / "measurements").symlink_to(REPOSITORY / "measurements")
    (root / "Makefile").write_text("help:\n\t@echo help\n", encoding="utf-8")
    (root / "submission.yaml").write_text(yaml.safe_dump(entries("closed").model_dump()), encoding="utf-8")
    return Project(root)


def entries(division: str, benchmark: str = made.QWEN) -> SubmissionFile:
    entry = {
        "division": division, "category": "datacenter", "availability": "available", "system": "box",
        "benchmark": benchmark, "scenarios": list(SCENARIOS),
    }  # fmt: skip
    return SubmissionFile.model_validate({"round": "v6.1", "submitter": "Example", "entries": [entry]})


def add_client_run(store: ResultsStore, scenario: str, benchmark: str = made.QWEN, **changed: Any) -> StoredRun:
    """A finished run of the client, with a report that has nothing against it."""
    id_, folder = store.new_attempt("box", benchmark, scenario, LEG)
    report = folder / REPORT
    made.make_row(report, benchmark, scenario)
    for name in ("README.md", "measurements.json"):
        (report / name).unlink()
    (report / "report.txt").write_text("Summary\n", encoding="utf-8")
    (report / "events.jsonl").write_text('{"data": "every answer"}\n', encoding="utf-8")
    row = check_endpoints_run(report, place_of(benchmark, scenario), PACK)
    assert row.metric is not None
    count = made.rows(benchmark, scenario)
    fields = {
        "id": id_,
        "round": "v6.1",
        "state": State.FINISHED,
        "test_run": False,
        "started_at": "2026-01-01T00:00:00Z",
        "command": ["python", "-m", "harness", "run_harness", "--client=endpoints", "--systems=box"],
        "config": {"engine": ENGINE, "scenarios": {scenario: {"target_qps": 70}}},
        "fingerprint": Fingerprint.of({"system": "box", "scenario": scenario, "client.endpoints": "0.1.0"}),
        "machine": machine(),
        "engine": EngineEcho(
            kind="http",
            versions={"vllm": "0.11"},
            settings={},
            checkpoint={
                "name": ENGINE["checkpoint"]["name"],
                "sha256": "ab" * 32,
                "stand_in": False,
                "weight_data_type": "bf16",
            },
            slots=1024,
            max_total_tokens=32768,
        ),
        "dataset": DatasetEcho(name=f"{benchmark}/catalogue", rows=count, sha256="cd" * 32, stand_in=False),
        "versions": {"harness": "0.1.0", "endpoints": "0.1.0", "endpoints_commit": "ea33275"},
        "loadgen_settings": {},
        "rate": None,
        "not_submittable": [],
        "deviations": [],
        "hashes": hash_report(folder),
        "counts": Counts(issued=count, answered=count, failed=0, outstanding=0, output_tokens=0),
        "verdict": Verdict(valid=True, loadgen=None, findings=[]),
        "result": Result(key=row.metric.key, value=row.metric.value, units=row.metric.units),
        "accuracy": AccuracyEcho(key="f1", value=row.accuracy, subsets={}, evaluator="inference-endpoint 0.1.0"),
        **changed,
    }
    record = RunRecord.model_validate(fields)
    write_record(folder, record)
    return StoredRun(folder, record)


@pytest.fixture
def client_store(client_project: Project) -> ResultsStore:
    store = ResultsStore(client_project.root / "results")
    for scenario in SCENARIOS:
        add_client_run(store, scenario)
    return store


@pytest.fixture
def lay_out(
    client_project: Project, client_store: ResultsStore, names: Names, tmp_path: Path
) -> Callable[..., PackageReport]:
    def run(division: str = "closed", *, demonstration: bool = False, attempts: tuple[str, ...] = ()) -> PackageReport:
        return package(
            client_store, client_project, entries(division), tmp_path / "out",
            demonstration=demonstration, pack=PACK, names=names, attempts=attempts,
        )  # fmt: skip

    return run


def files(root: Path) -> set[str]:
    return {path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()}


def test_the_layout_is_the_clients_and_its_files_are_unchanged(
    lay_out: Callable[..., PackageReport], client_store: ResultsStore
) -> None:
    report = lay_out()
    folder = report.out / "closed" / "Example" / "results" / "box" / made.QWEN
    for run in client_store.runs():
        row = folder / run.record.id.scenario
        assert files(row) == {
            "config.yaml", "performance/result_summary.json", "accuracy/accuracy_results.json",
            "measurements.json", "README.md", "report.txt",
        }  # fmt: skip
        for name in ("config.yaml", "performance/result_summary.json", "accuracy/accuracy_results.json"):
            assert (row / name).read_bytes() == (run.folder / REPORT / name).read_bytes()
        readme = (row / "README.md").read_text(encoding="utf-8")
        assert "inference-endpoint 0.1.0 (commit ea33275)" in readme
        assert "--client=endpoints" in readme
        assert "LoadGen" not in readme
    manifest = json.loads((report.out / "closed" / "Example" / "MANIFEST.json").read_text(encoding="utf-8"))
    assert [[leg["leg"] for leg in row["legs"]] for row in manifest["rows"]] == [[LEG], [LEG]]
    assert {row.accuracy for row in report.rows} == {"f1 0.788, by inference-endpoint 0.1.0"}


@pytest.mark.parametrize("division", ["closed", "open"])
def test_the_gate_has_nothing_to_reject(lay_out: Callable[..., PackageReport], division: str) -> None:
    tree = check_tree(lay_out(division).out, PACK)
    assert [f for f in tree.findings if f.severity is Severity.REJECT] == []
    assert len(tree.rows) == len(SCENARIOS)


def test_a_demonstration_says_so(lay_out: Callable[..., PackageReport], client_store: ResultsStore) -> None:
    add_client_run(client_store, "Offline", not_submittable=["stand-in data set"], test_run=True)
    report = lay_out(demonstration=True)
    assert (report.out / "closed" / "Demonstration" / "DEMONSTRATION").is_file()
    (offline,) = (row for row in report.rows if row.scenario == "Offline")
    assert offline.marks == ("stand-in data set",)


@pytest.mark.skipif(not CLONE, reason=f"{VARIABLE} names no clone of mlcommons/inference")
@pytest.mark.slow
@pytest.mark.parametrize("demonstration", [False, True])
def test_the_real_checker_accepts_it(
    lay_out: Callable[..., PackageReport], demonstration: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = lay_out(demonstration=demonstration).out
    monkeypatch.setenv(VARIABLE, str(CLONE))
    official = run_official(out, "v6.1")
    assert official.verdict is OfficialVerdict.OK
    assert len(official.rows) == len(SCENARIOS)


def invalid() -> Verdict:
    finding = VerdictFinding(
        rule="EP-DURATION", severity="reject", path="x", found="475.5 s", expected="600 s", mend="again", source="x"
    )
    return Verdict(valid=False, loadgen=None, findings=[finding])


@pytest.mark.parametrize(
    ("changed", "what"),
    [
        ({"verdict": invalid()}, "EP-DURATION 475.5 s"),
        ({"not_submittable": ["short run (--test_run)"]}, "short run"),
        ({"deviations": ["output cap of the performance leg 16 tokens"]}, "closed allows no deviation"),
        ({"result": Result(key="qps", value=1.0, units="Queries/s")}, "tells the result"),
        ({"hashes": {}}, "has no config.yaml"),
    ],
)
def test_what_may_not_be_filed(
    lay_out: Callable[..., PackageReport], client_store: ResultsStore, changed: dict[str, Any], what: str
) -> None:
    add_client_run(client_store, "Server", **changed)
    with pytest.raises(Refused, match=what):
        lay_out()


def test_a_short_run_of_the_client_does_not_stand_in_the_way_of_full_legs(
    client_store: ResultsStore,
) -> None:
    entry, row = entries("closed").entries[0], ("box", made.QWEN, "Server")
    (run,) = (run for run in client_store.runs() if run.record.id.row == row)
    short = StoredRun(run.folder, run.record.model_copy(update={"test_run": True}))
    full = StoredRun(
        run.folder, run.record.model_copy(update={"id": run.record.id.model_copy(update={"leg": "performance"})})
    )
    layouts = PACK.benchmark(made.QWEN).layouts.value

    def chosen(*runs: StoredRun, demonstration: bool = False) -> tuple[str, bool]:
        return Attempts(runs, (), "v6.1", short=demonstration).layout(entry, "Server", layouts)

    assert chosen(short, full) == ("loadgen", True)
    assert chosen(run, full) == ("endpoints", True)
    assert chosen(short, full, demonstration=True) == ("endpoints", True)
    assert chosen(short) == ("endpoints", False)
    echo = ProbeEcho(search="01", number=1, rate=4.0, purpose="first guess")
    probe = StoredRun(full.folder, full.record.model_copy(update={"probe": echo}))
    assert chosen(short, probe) == ("endpoints", False)  # a probe is no run that could be filed


def test_an_optional_file_that_is_gone_is_told(
    lay_out: Callable[..., PackageReport], client_store: ResultsStore
) -> None:
    (client_store.runs()[0].folder / REPORT / "report.txt").unlink()
    with pytest.raises(MissingError, match="a file of the run is gone"):
        lay_out()


def test_a_report_that_was_edited_is_refused(lay_out: Callable[..., PackageReport], client_store: ResultsStore) -> None:
    (run,) = (run for run in client_store.runs() if run.record.id.scenario == "Server")
    with (run.folder / REPORT / "config.yaml").open("a", encoding="utf-8") as file:
        file.write("# nothing\n")
    with pytest.raises(Refused, match="not what the run wrote"):
        lay_out()


def test_what_was_not_run_is_said_with_its_command(client_project: Project, names: Names, tmp_path: Path) -> None:
    store = ResultsStore(client_project.root / "none")
    with pytest.raises(MissingError, match="--client=endpoints"):
        package(store, client_project, entries("closed"), tmp_path / "out", demonstration=False, pack=PACK, names=names)


def test_an_older_attempt_by_its_name(lay_out: Callable[..., PackageReport], client_store: ResultsStore) -> None:
    add_client_run(client_store, "Server", verdict=invalid())
    report = lay_out(attempts=(f"box/{made.QWEN}/Server/{LEG}#1",))
    (server,) = (row for row in report.rows if row.scenario == "Server")
    assert [(leg.attempt, leg.attempts_total) for leg in server.legs] == [(1, 2)]
