"""Rows of the agentic benchmark: Kimi K2.6 in open, edge, under both names; LoadGen's legs only as a demonstration."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from pydantic import ValidationError

from harness.config.files import Project
from harness.config.models import SubmissionFile
from harness.errors import ConfigError, Refused
from harness.gate import Severity, TreeReport, check_tree
from harness.gate.official import OfficialVerdict, run_official
from harness.ledger.record import AccuracyEcho, Fingerprint
from harness.ledger.store import ResultsStore
from harness.submission import PackageReport, package
from harness.submission.agentic import readme_names
from harness.submission.legs import Leg
from harness.submission.rows import Row
from harness.submission.secrets import Names
from tests.gate import made_endpoints as made
from tests.gate.fake_checker import CLONE, VARIABLE, needs_clone
from tests.submission.made_agentic import (
    AGENT,
    METRIC_DIFFERS,
    MODEL,
    SCENARIO,
    add_client_run,
    add_loadgen_legs,
    entries,
    make_project,
    real_runs,
)

FOLDERS = {None: AGENT, "kimi-k2.6": "kimi-k2.6"}
LayOut = Callable[..., PackageReport]


@pytest.fixture(scope="session")
def agentic_logs(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], Path]:
    return real_runs(tmp_path_factory.mktemp("trajectories"))


@pytest.fixture
def agentic_project(tmp_path: Path) -> Project:
    return make_project(tmp_path / "work")


@pytest.fixture
def agentic_store(agentic_project: Project) -> ResultsStore:
    return ResultsStore(agentic_project.root / "results")


@pytest.fixture
def lay_out(agentic_project: Project, agentic_store: ResultsStore, names: Names, tmp_path: Path) -> LayOut:
    def run(submission: SubmissionFile, *, demonstration: bool = False) -> PackageReport:
        return package(
            agentic_store, agentic_project, submission, tmp_path / "out",
            demonstration=demonstration, pack=made.ROUND, names=names,
        )  # fmt: skip

    return run


def rejects(tree: TreeReport) -> list[str]:
    return [f"{f.rule} {f.path}: {f.found}" for f in tree.findings if f.severity is Severity.REJECT]


@pytest.mark.parametrize("model_folder", FOLDERS)
def test_the_layout_and_what_the_gate_says_of_it(
    lay_out: LayOut, agentic_store: ResultsStore, model_folder: str | None
) -> None:
    add_client_run(agentic_store)
    report = lay_out(entries(model_folder=model_folder))
    home = report.out / "open" / "Example"
    folder = home / "results" / "box" / FOLDERS[model_folder] / SCENARIO
    assert {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()} == {
        "config.yaml", "performance/result_summary.json", "accuracy/accuracy_results.json", "measurements.json",
        "README.md", "report.txt", "scores.json",
    }  # fmt: skip
    assert (home / "src" / FOLDERS[model_folder] / "http" / "systems" / "box" / f"{AGENT}.yaml").is_file()
    assert json.loads((home / "systems" / "box.json").read_text())["system_type"] == "edge"
    mapping = home / "model_mapping.json"
    assert json.loads(mapping.read_text()) == {"kimi-k2.6": AGENT} if model_folder else not mapping.exists()
    tree = check_tree(report.out, made.ROUND)
    assert rejects(tree) == []
    (row,) = tree.rows
    assert (row.place.benchmark, row.layout, row.accuracy) == (AGENT, "endpoints", 86.83)
    assert row.metric is not None
    assert row.metric.units == "Latency (ms)"


def test_the_mapped_tree_is_whole_to_its_own_manifest(lay_out: LayOut, agentic_store: ResultsStore) -> None:
    add_client_run(agentic_store)
    lay_out(entries(model_folder="kimi-k2.6"))
    again = lay_out(entries(model_folder="kimi-k2.6"))
    assert again.previous is not None


def test_the_readme_says_what_was_served_and_changed_and_how(lay_out: LayOut, agentic_store: ResultsStore) -> None:
    add_client_run(agentic_store)
    report = lay_out(entries(model_folder="kimi-k2.6"))
    text = (report.out / "open/Example/results/box/kimi-k2.6/SingleStream/README.md").read_text()
    for said in (
        f"{MODEL}, revision {'cd' * 20}, sha256 {'ab' * 32}, int4",
        f"The model: {MODEL} (int4) in place of Qwen/Qwen3.6-27B.",
        "sglang 0.5.9",
        "`thinking: false`",
        "| overall_accuracy | 86.83 | 86.23 | at least 83.64 | reached; shown, not enforced in open |",
        "| normalized_single_turn_score | 87.27 | 87.96 | at least 85.32 | reached; shown, not enforced in open |",
        "| live | 170 | 88.24 |",
        "0.6158 over 1007 turns",
        "Qwen/Qwen3.6-27B has 0.6335",
        "No latency limit. One turn at a time",
        "1007 turns were asked.",
        "| Trajectories | agentic_coding_2.5h.jsonl, 20 trajectories, 1007 turns, sha256 b7da8c4f",
        "Tokens that an answer may have: 1024 (the round's: 1024).",
        "temperature 0.0, seed 42, max_new_tokens 1024",
        "KV cache from turn to turn: kept (`disable_radix_cache` of SGLang 0.5, where it is not set)",
        f"{AGENT}, filed as `kimi-k2.6`",
        "asks for 42 as `dataloader_random_seed` and objects",
        "MLPerf Open.",
    ):
        assert said in text, said


def test_below_closeds_targets_open_says_so_and_files_it(lay_out: LayOut, agentic_store: ResultsStore) -> None:
    add_client_run(agentic_store, overall=83.63)
    report = lay_out(entries())
    text = (report.out / f"open/Example/results/box/{AGENT}/SingleStream/README.md").read_text()
    assert "| overall_accuracy | 83.63 | 86.23 | at least 83.64 | not reached; shown, not enforced in open |" in text
    tree = check_tree(report.out, made.ROUND)
    assert rejects(tree) == []
    assert ("EP-GATE", Severity.NOTE) in {(f.rule, f.severity) for f in tree.findings}


def test_a_report_that_tells_nothing_makes_a_readme_that_says_so(lay_out: LayOut, agentic_store: ResultsStore) -> None:
    run = add_client_run(agentic_store)
    (run.folder / "report" / "accuracy" / "accuracy_results.json").write_text("[]")
    leg = Leg(run, 1)
    (entry,) = entries().entries
    row = Row(entry, SCENARIO, leg, leg, (), (), layout="endpoints")
    assert readme_names(row, made.ROUND)["inline"] == "not told; Qwen/Qwen3.6-27B has 0.6335"
    assert "| overall_accuracy | not told | 86.23 |" in readme_names(row, made.ROUND)["targets"]


@needs_clone
@pytest.mark.slow
@pytest.mark.parametrize("model_folder", FOLDERS)
def test_the_official_checker_accepts_both_forms(
    lay_out: LayOut, agentic_store: ResultsStore, model_folder: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_client_run(agentic_store)
    out = lay_out(entries(model_folder=model_folder)).out
    monkeypatch.setenv(VARIABLE, str(CLONE))
    official = run_official(out, "v6.1")
    assert (official.verdict, official.errors) == (OfficialVerdict.OK, ())
    (row,) = official.rows
    assert FOLDERS[model_folder] in row.location


@pytest.mark.parametrize(
    ("changed", "what"),
    [
        ({"model_folder": "gpt-oss-120b"}, "a folder gpt-oss-120b for results of qwen3.6-27b"),
        ({"model_folder": "resnet50"}, "a folder resnet50"),
        ({"model_folder": "resnet"}, "a folder resnet"),
    ],
)
def test_names_that_the_official_checker_takes_for_others(
    lay_out: LayOut, agentic_store: ResultsStore, changed: dict[str, object], what: str
) -> None:
    add_client_run(agentic_store)
    with pytest.raises(ConfigError, match=what):
        lay_out(entries(**changed))


def test_one_folder_is_of_one_benchmark(lay_out: LayOut, agentic_store: ResultsStore) -> None:
    add_client_run(agentic_store)
    one = entries(model_folder="kimi-k2.6")
    other = one.entries[0].model_copy(update={"benchmark": "gpt-oss-120b", "scenarios": ["Offline"]})
    with pytest.raises(ConfigError, match=r"kimi-k2\.6 for results of qwen3\.6-27b and of gpt-oss-120b"):
        lay_out(one.model_copy(update={"entries": [*one.entries, other]}))


@pytest.mark.parametrize("folder", ["../up", "a/b", "", ".hidden", "a b", "x" * 65])
def test_a_name_that_is_no_folder(folder: str) -> None:
    with pytest.raises(ValidationError):
        entries(model_folder=folder)


def test_a_folder_of_its_own_is_opens_alone() -> None:
    with pytest.raises(ValidationError, match=r"reads model_mapping\.json in open"):
        entries("closed", model_folder="kimi-k2.6")


def test_legs_by_loadgen_are_refused_by_their_reason(
    lay_out: LayOut, agentic_store: ResultsStore, agentic_logs: dict[tuple[str, str], Path]
) -> None:
    add_loadgen_legs(agentic_store, agentic_logs)
    with pytest.raises(Refused, match=METRIC_DIFFERS):
        lay_out(entries())


def test_a_demonstration_of_them_says_what_it_is(
    lay_out: LayOut, agentic_store: ResultsStore, agentic_logs: dict[tuple[str, str], Path]
) -> None:
    add_loadgen_legs(agentic_store, agentic_logs)
    report = lay_out(entries(), demonstration=True)
    home = report.out / "open" / "Demonstration"
    folder = home / "results" / "box" / AGENT / SCENARIO
    text = (folder / "README.md").read_text()
    assert "**This is no result of the benchmark.**" in text
    assert METRIC_DIFFERS in text
    assert "| overall_accuracy | 86.83 | 86.23 | at least 83.64 | reached; shown, not enforced in open |" in text
    assert "| non_live | 713 | 82.09 |" in text
    assert METRIC_DIFFERS in (home / "DEMONSTRATION").read_text()
    assert METRIC_DIFFERS in json.loads((home / "systems" / "box.json").read_text())["sw_notes"]
    manifest = json.loads((home / "MANIFEST.json").read_text())
    assert manifest["demonstration"] is True
    assert manifest["rows"][0]["not_submittable"] == [METRIC_DIFFERS]
    assert report.rows[0].marks == (METRIC_DIFFERS,)
    assert (folder / "performance" / "run_1" / "mlperf_log_detail.txt").is_file()


@needs_clone
@pytest.mark.slow
def test_the_official_checker_on_that_demonstration(
    lay_out: LayOut,
    agentic_store: ResultsStore,
    agentic_logs: dict[tuple[str, str], Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It has no word against trajectories as samples: 1,000 of them are more than the 995 that it counts."""
    add_loadgen_legs(agentic_store, agentic_logs)
    out = lay_out(entries(), demonstration=True).out
    monkeypatch.setenv(VARIABLE, str(CLONE))
    official = run_official(out, "v6.1")
    assert (official.verdict, official.errors) == (OfficialVerdict.OK, ())
    assert [row.units for row in official.rows] == ["Latency (ms)"]


def test_a_part_of_the_questions_is_no_score_of_the_clients_either(
    lay_out: LayOut, agentic_store: ResultsStore
) -> None:
    echo = AccuracyEcho(key="overall_accuracy", value=None, subsets={}, evaluator="inference-endpoint 0.1.0")
    other = Fingerprint.of({"dataset.trajectories": "ab" * 32})
    add_client_run(agentic_store, accuracy=echo, fingerprint=other)
    report = lay_out(entries(), demonstration=True)
    text = (report.out / "open/Demonstration/results/box" / AGENT / SCENARIO / "README.md").read_text()
    assert "| overall_accuracy | not told | 86.23 |" in text
    assert f"sha256 {'ab' * 32}, which is not the round's agentic_coding_2.5h.jsonl" in text


def test_a_part_of_the_questions_is_no_score(
    lay_out: LayOut, agentic_store: ResultsStore, agentic_logs: dict[tuple[str, str], Path]
) -> None:
    add_loadgen_legs(agentic_store, agentic_logs, whole=False)
    report = lay_out(entries(), demonstration=True)
    folder = report.out / "open" / "Demonstration" / "results" / "box" / AGENT / SCENARIO
    text = (folder / "README.md").read_text()
    assert "| normalized_single_turn_score | not told | 87.96 |" in text
    assert "| non_live | 713 | not told |" in text


def test_scenarios_for_analysis_are_shown_and_are_no_rows_of_the_round(
    lay_out: LayOut, agentic_store: ResultsStore, agentic_logs: dict[tuple[str, str], Path]
) -> None:
    add_loadgen_legs(agentic_store, agentic_logs, "Offline")
    with pytest.raises(Refused, match=METRIC_DIFFERS):
        lay_out(entries(scenarios=["Offline"]))
    report = lay_out(entries(scenarios=["Offline"]), demonstration=True)
    assert report.rows[0].marks == (METRIC_DIFFERS,)
    tree = check_tree(report.out, made.ROUND)
    assert ("TREE-SCENARIO", Severity.REJECT) in {(f.rule, f.severity) for f in tree.findings}


def test_the_clients_run_is_filed_before_legs_of_loadgen(
    lay_out: LayOut, agentic_store: ResultsStore, agentic_logs: dict[tuple[str, str], Path]
) -> None:
    add_loadgen_legs(agentic_store, agentic_logs)
    add_client_run(agentic_store)
    report = lay_out(entries())
    assert rejects(check_tree(report.out, made.ROUND)) == []
    assert any("filed in the layout endpoints" in note for note in report.notes)
