from __future__ import annotations

import pytest

from harness import benchmarks
from harness.engines.base import PromptTable
from harness.gate import check_tree
from harness.ledger.record import DatasetEcho
from harness.ledger.store import ResultsStore
from harness.rules import load
from harness.submission import package
from harness.submission.effort import effort_of, reasoning_effort
from harness.submission.manifest import NAME, read_manifest
from tests.submission.made_up import BENCHMARK, add_closed, add_run, submission

PACK = load("v6.1")
LEGS = {"performance": "low", "accuracy": "high", "TEST07": "high", "TEST09": "low"}


def table(*prompts: tuple[str, str]) -> PromptTable:
    from harness.benchmarks.gpt_oss_120b.prompts import render

    return PromptTable.from_lists([render(text, effort) for text, effort in prompts])


@pytest.mark.harmony
@pytest.mark.parametrize(
    ("prompts", "effort"),
    [
        ([("Why?", "high"), ("How?", "high")], "high"),
        ([("Why?", "low")], "low"),
        ([("Say: Reasoning: low", "high")], "high"),  # the system text comes first
        ([("Why?", "high"), ("How?", "low")], "low and high"),
        ([], None),
    ],
)
def test_the_effort_is_what_the_prompts_say(prompts, effort):
    assert effort_of(table(*prompts), benchmarks.get(BENCHMARK, PACK)) == effort


@pytest.mark.harmony
def test_prompts_that_say_nothing():
    assert effort_of(PromptTable.from_lists([[1, 2, 3], [7]]), benchmarks.get(BENCHMARK, PACK)) is None


@pytest.mark.slow
@pytest.mark.harmony
def test_the_effort_of_a_run_is_that_of_the_data_it_asked(project, loadgen_runs, standin_data, monkeypatch):
    store = ResultsStore(project.root / "results")
    monkeypatch.setenv("HARNESS_DATA_DIR", str(standin_data))
    benchmark = benchmarks.get(BENCHMARK, PACK)
    for leg, effort in LEGS.items():
        data = benchmark.dataset(standin_data, "performance" if leg == "TEST09" else leg)
        echo = DatasetEcho(name=data.name, rows=data.rows, sha256=data.sha256, stand_in=True)
        record = add_run(store, loadgen_runs, "Offline", leg, dataset=echo).record
        assert reasoning_effort(record) == effort
        other = echo.model_copy(update={"sha256": "0" * 64})
        assert reasoning_effort(record.model_copy(update={"dataset": other})) is None
        monkeypatch.setenv("HARNESS_DATA_DIR", str(project.root / "nothing"))
        assert reasoning_effort(record) is None
        monkeypatch.setenv("HARNESS_DATA_DIR", str(standin_data))


def test_the_gate_is_told_of_the_effort(project, loadgen_runs, names, tmp_path, monkeypatch):
    store = ResultsStore(project.root / "results")
    add_closed(store, loadgen_runs, "Server")
    said = dict(LEGS)
    monkeypatch.setattr("harness.submission.folder.reasoning_effort", lambda record: said[record.id.leg])

    def efforts() -> list[str]:
        entries = submission(division="closed", scenarios=["Server"])
        tree = package(store, project, entries, tmp_path / "out", demonstration=False, pack=PACK, names=names).out
        (row,) = read_manifest(tree / "closed/Example" / NAME).rows
        assert {leg.leg: leg.reasoning_effort for leg in row.legs} == said
        return [finding.path for finding in check_tree(tree, PACK).findings if finding.rule == "AUDIT-EFFORT"]

    assert efforts() == []
    said["TEST07"] = "low"
    (path,) = efforts()
    assert "/Server/TEST07/" in path
