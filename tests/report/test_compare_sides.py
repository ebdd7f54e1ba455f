from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from harness.config import Project
from harness.errors import ConfigError, UnknownName
from harness.ledger import Fingerprint, ResultsStore
from harness.ledger.record import ProbeEcho, Result, Verdict
from harness.report.book.gather import gather, kind_of
from harness.report.book.results import Wanted
from harness.report.compare_sides import Asked, compare_sides, is_attempt
from tests.gate.made_endpoints import GPT, make_endpoints_tree
from tests.gate.made_tree import change_json
from tests.ledger.made_records import add
from tests.report.book.made import made_run

ONE, TWO = "BOX/gpt-oss-120b/Server/performance#1", "BOX/gpt-oss-120b/Server/performance#2"
KEY = "result_completed_tokens_per_second"


@pytest.fixture(autouse=True)
def _no_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")


def measured(root: Path, value: float, *, n: int = 300, **changes: Any) -> None:
    fields = {"not_submittable": [], "result": Result(key=KEY, value=value, units="Tokens/s")}
    made_run(root, n, **fields | changes)


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """Two attempts of one leg, the second faster and with another batch."""
    root = tmp_path / "results"
    for value, batch in ((1000.0, 64), (1100.0, 128)):
        measured(root, value, fingerprint=Fingerprint.of({"engine.max_batch": batch, "system": "BOX"}))
    return root


def test_two_attempts_side_by_side(results: Path) -> None:
    found = compare_sides(ONE, TWO, Asked(results))
    (row,) = found.rows
    assert (row.judgement, row.result.percent) == ("better", 10.0)
    assert [(one.name, one.before, one.after) for one in row.configuration] == [("engine.max_batch", "64", "128")]
    assert {"ttft", "tpot", "latency", "output_tokens"} <= {figure.key for figure in row.figures}
    assert [change.name for change in row.figures[0].changes] == ["p50", "p90", "p99"]
    assert (found.before.title, found.after.title) == (ONE, TWO)
    assert found.before.place.endswith("attempt_01")


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"not_submittable": ["short run (--test_run)"], "test_run": True}, "short run (--test_run)"),
        ({"verdict": Verdict(valid=False, loadgen="INVALID", findings=[])}, "INVALID"),
        ({"probe": ProbeEcho(search="1", number=1, rate=5.0, purpose="bracket")}, "probe of a search"),
    ],
)
def test_an_attempt_that_does_not_count_is_not_judged(results: Path, changes: dict[str, Any], why: str) -> None:
    measured(results, 2000.0, **changes)
    (row,) = compare_sides(ONE, ONE.replace("#1", "#3"), Asked(results)).rows
    assert (row.judgement, row.result.percent) == ("not judged", 100.0)
    assert [mark.why for mark in row.marks] == [why]


def test_legs_that_differ_have_no_percent(results: Path) -> None:
    made_run(results, 100, leg="accuracy", result=None, not_submittable=[])
    (row,) = compare_sides(ONE, "BOX/gpt-oss-120b/Server/accuracy#1", Asked(results)).rows
    assert [(one.name, one.after) for one in row.boundary] == [("leg", "accuracy")]
    assert row.judgement == "not comparable"


def test_runs_of_two_scenarios_are_beside_each_other_all_the_same(results: Path) -> None:
    made_run(results, 100, "Offline", not_submittable=[])
    found = compare_sides(ONE, "BOX/gpt-oss-120b/Offline/performance#1", Asked(results))
    (row,) = found.rows
    assert row.judgement == "not comparable" and row.figures
    assert "scenario" in [one.name for one in row.boundary]
    assert not found.only_before and not found.only_after


def test_an_attempt_of_a_round_without_rules_here(results: Path) -> None:
    measured(results, 1.0, round="v1.0")
    found = compare_sides(ONE, ONE.replace("#1", "#3"), Asked(results))
    (row,) = found.rows
    assert "limits" in [one.name for one in row.boundary]
    assert any("v1.0" in note for note in found.notes)


def test_runs_there_are_not(results: Path, tmp_path: Path) -> None:
    with pytest.raises(UnknownName, match="unknown run") as caught:
        compare_sides(ONE, ONE.replace("#1", "#9"), Asked(results))
    assert "did you mean" in str(caught.value)
    with pytest.raises(ConfigError, match="no runs to compare"):
        compare_sides(ONE, TWO, Asked(tmp_path / "none"))


def test_two_results_folders(results: Path, tmp_path: Path) -> None:
    after = tmp_path / "after"
    measured(after, 900.0)
    found = compare_sides(str(results), str(after), Asked(results))
    (row,) = found.rows
    assert row.result.percent == pytest.approx(-18.18, abs=0.01)
    assert row.judgement == "not judged"  # rows without an accuracy leg are not whole
    assert {mark.why for mark in row.marks} == {"incomplete"}


def test_two_trees_and_a_tree_beside_runs(results: Path, tmp_path: Path) -> None:
    home = make_endpoints_tree(tmp_path / "before", GPT, "closed")
    shutil.copytree(tmp_path / "before", tmp_path / "after")
    change_json(tmp_path / "after" / home.relative_to(tmp_path / "before") / "systems/Box.json", number_of_nodes=2)
    found = compare_sides(str(tmp_path / "before"), str(tmp_path / "after"), Asked(results))
    assert [(row.after.scenario, row.judgement) for row in found.rows] == [
        ("Interactive", "not comparable"),
        ("Offline", "not comparable"),
        ("Server", "not comparable"),
    ]
    assert {one.name for row in found.rows for one in row.boundary} == {"nodes"}
    mixed = compare_sides(str(results), str(tmp_path / "after"), Asked(results))
    assert [row.judgement for row in mixed.rows] == ["not comparable"]
    assert {"client", "division"} <= {one.name for one in mixed.rows[0].boundary}


def test_some_rows_of_two_trees(results: Path, tmp_path: Path) -> None:
    for name in ("before", "after"):
        make_endpoints_tree(tmp_path / name, GPT, "closed")
    sides = str(tmp_path / "before"), str(tmp_path / "after")
    found = compare_sides(*sides, Asked(results, wanted=Wanted(scenarios=["Server"])))
    assert [row.after.scenario for row in found.rows] == ["Server"]
    with pytest.raises(UnknownName, match="unknown scenario 'Servr'"):
        compare_sides(*sides, Asked(results, wanted=Wanted(scenarios=["Servr"])))


def test_what_cannot_be_compared(results: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "empty").mkdir()
    (tmp_path / "link").symlink_to(results)
    for one, other, what in (
        (str(results), str(results), "the two are the same"),
        (str(results), f"{results}/../results", "the two are the same"),
        (str(results), str(tmp_path / "link"), "the two are the same"),
        (ONE, ONE, "the two are the same"),
        (ONE, str(results), "a run cannot be compared with a folder"),
        (str(results), str(tmp_path / "file"), "a file, and not a folder"),
        (str(results), str(tmp_path / "none"), "no such folder"),
        (str(results), "~nobody of this name/results", "no such folder"),
        (str(results), str(tmp_path / "empty"), "neither runs nor a submission tree"),
    ):
        with pytest.raises(ConfigError, match=what):
            compare_sides(one, other, Asked(results))


def test_a_folder_that_holds_a_tree_is_pointed_at(tmp_path: Path) -> None:
    make_endpoints_tree(tmp_path / "build/submission", GPT, "closed")
    with pytest.raises(ConfigError) as caught:
        kind_of(tmp_path / "build")
    assert str(caught.value.mend) == f"did you mean {tmp_path / 'build/submission'}?"
    assert kind_of(tmp_path / "build/submission") == "tree"


def test_a_run_that_was_cut_off_makes_a_results_folder(tmp_path: Path) -> None:
    ResultsStore(tmp_path / "results").new_attempt("BOX", "gpt-oss-120b", "Server", "performance")
    assert kind_of(tmp_path / "results") == "results"
    assert gather(tmp_path / "results").rows == ()


def test_a_folder_of_a_runs_name_is_a_folder(tmp_path: Path) -> None:
    assert is_attempt(ONE)
    assert not is_attempt("results")
    assert not is_attempt(ONE.replace("#1", "#0"))
    assert is_attempt(ONE.replace("#1", "#" + "9" * 5000))
    (tmp_path / "here" / ONE).mkdir(parents=True)
    assert not is_attempt(ONE)


def test_the_entries_beside_the_runs_say_the_division(tmp_path: Path) -> None:
    from tests.submission.made_up import make_project

    project = make_project(tmp_path / "work")
    root = project.root / "results"
    add(ResultsStore(root), "Server")
    assert gather(root).rows[0].division is None  # nobody enters BOX
    assert dict(gather(root).rows[0].boundary)["nodes"] == "not told"
    (project.root / "systems/box").rename(project.root / "systems/BOX")
    submission = (project.root / "submission.yaml").read_text().replace("system: box", "system: BOX")
    (project.root / "submission.yaml").write_text(submission)
    entered = gather(root).rows[0]
    assert (entered.division, entered.category, dict(entered.boundary)["nodes"]) == ("open", "datacenter", "1")
    assert gather(root, project=Project(tmp_path)).rows[0].division is None
    (project.root / "submission.yaml").write_text("round: [")
    assert any("divisions and categories are not known" in note for note in gather(root).notes)


def test_the_round_of_a_tree_can_be_said(tmp_path: Path) -> None:
    make_endpoints_tree(tmp_path / "tree", GPT, "closed")
    assert gather(tmp_path / "tree").round == "v6.1"
    assert gather(tmp_path / "tree", round_="v6.0").round == "v6.0"
    with pytest.raises(UnknownName, match="unknown round"):
        gather(tmp_path / "tree", round_="v9")
