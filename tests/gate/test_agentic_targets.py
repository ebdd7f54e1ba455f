"""Both accuracy targets of the agentic benchmark, at their bounds, in each layout."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.gate import check_tree
from tests.gate.made_benchmarks import ENTRIES, RUNS, with_queries
from tests.gate.made_endpoints import AGENT, ROUND, change_data, endpoints_row, make_endpoints_tree
from tests.gate.made_tree import make_tree, row, write

SCENARIO = "SingleStream"
RULING = "RULING-AGENTIC-GATE"
Found = set[tuple[str, str]]


@pytest.fixture(scope="session")
def loadgen_trees(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("agentic_targets")
    runs = {(SCENARIO, leg): RUNS[SCENARIO, leg].run(root / leg) for leg in ("performance", "accuracy")}
    entry = with_queries(ENTRIES["agentic"], runs[SCENARIO, "performance"])
    for division in ("closed", "open"):
        make_tree(root / division, runs, division, entry)
    return {division: root / division for division in ("closed", "open")}


@pytest.fixture
def with_text(loadgen_trees: dict[str, Path], tmp_path: Path) -> Callable[[str, str], Found]:
    """What is said of a LoadGen row's accuracy whose accuracy.txt has these lines."""

    def check(division: str, lines: str) -> Found:
        tree = shutil.copytree(loadgen_trees[division], tmp_path / "tree")
        path = row(tree / division / "Acme", SCENARIO, AGENT) / "accuracy" / "accuracy.txt"
        write(path, lines + path.read_text().splitlines()[-1] + "\n")
        return {(f.rule, f.severity.value) for f in check_tree(tree, ROUND).findings if f.rule.startswith("ACC-")}

    return check


@pytest.mark.parametrize(
    ("overall", "normalised", "closed", "opened"),
    [
        ("85.3677", "85.32", set(), set()),
        ("85.3676", "85.32", {("ACC-TARGET", "reject")}, {("ACC-TARGET", "note")}),
        ("85.3677", "85.31", {("ACC-TARGET", "reject")}, {("ACC-TARGET", "note")}),
        ("83.64", "85.32", {("ACC-TARGET", "reject")}, {("ACC-TARGET", "note")}),
        ("86.83", None, {("ACC-METRIC", "review")}, {("ACC-METRIC", "note")}),
        ("86.83", "0.8727", {("ACC-TARGET", "reject")}, {("ACC-TARGET", "note")}),
        ("86.83", "none", {("ACC-METRIC", "review")}, {("ACC-METRIC", "note")}),
    ],
)
@pytest.mark.parametrize("division", ["closed", "open"])
def test_loadgens_layout_is_held_to_the_checkers_first_and_the_rules_second(
    with_text: Callable[[str, str], Found],
    division: str,
    overall: str,
    normalised: str | None,
    closed: Found,
    opened: Found,
) -> None:
    second = (
        "" if normalised is None else f"normalized_single_turn_score: {normalised} %, of closed 85.32 % are asked\n"
    )
    found = with_text(division, f"{second}overall_accuracy, 'Total': {overall}\n")
    assert found == (closed if division == "closed" else opened)


def test_of_several_lines_the_least_counts(with_text: Callable[[str, str], Found]) -> None:
    lines = "normalized_single_turn_score: 87.00\nnormalized_single_turn_score: 85.00\nmAP=86.0\n"
    assert with_text("closed", lines) == {("ACC-TARGET", "reject")}


@pytest.mark.parametrize(
    ("overall", "normalised", "closed"),
    [
        (85.37, 85.32, set()),
        (85.36, 85.32, {(RULING, "review")}),
        (83.64, 85.32, {(RULING, "review")}),
        (83.63, 85.32, {("EP-GATE", "reject")}),
        (86.83, 85.31, {("EP-GATE", "reject")}),
    ],
)
@pytest.mark.parametrize("division", ["closed", "open"])
def test_the_clients_layout_is_held_to_the_rules(
    tmp_path: Path, division: str, overall: float, normalised: float, closed: Found
) -> None:
    home = make_endpoints_tree(tmp_path, AGENT, division)
    results = endpoints_row(home, AGENT, SCENARIO) / "accuracy" / "accuracy_results.json"
    change_data(results, "accuracy_scores/0/score", overall / 100)
    change_data(results, "accuracy_scores/0/breakdown/overall_accuracy", overall)
    change_data(results, "accuracy_scores/0/breakdown/normalized_single_turn_score", normalised)
    found = {(f.rule, f.severity.value) for f in check_tree(tmp_path, ROUND).findings}
    about = {one for one in found if one[0] in ("EP-GATE", RULING)}
    opened = {("EP-GATE", "note")} if ("EP-GATE", "reject") in closed else set()
    assert about == (closed if division == "closed" else opened)
