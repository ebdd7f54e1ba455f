"""Whole trees of each benchmark in each round, and what breaks them where they differ."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.gate import TreeReport, check_tree
from harness.logs import DetailLog
from harness.rules import load
from tests.gate.fake_checker import needs_clone
from tests.gate.made_benchmarks import ENTRIES, F1, RUNS, with_queries
from tests.gate.made_tree import DETAIL, change_json, make_tree, remove, row, write
from tests.gate.real_checker import compare, refusals
from tests.gate.tree_changes import box, replace, rules_of

Tree = Callable[[str, str], Path]
Change = Callable[[Path, str], object]


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], Path]:
    root = tmp_path_factory.mktemp("benchmark_runs")
    return {key: leg.run(root / "_".join(key)) for key, leg in RUNS.items()}


@pytest.fixture(scope="session")
def entry_trees(runs, loadgen_runs, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, str], Path]:
    """Lays out the tree of an entry in a division, once. Read-only by agreement."""
    base = tmp_path_factory.mktemp("entries")

    def make(name: str, division: str) -> Path:
        root = base / f"{name} {division}".replace(" ", "_")
        entry = ENTRIES[name]
        if not root.exists():
            entry = with_queries(entry, runs["SingleStream", "performance"]) if name == "agentic" else entry
            make_tree(root, loadgen_runs if entry.changes is None else runs, division, entry)
        return root

    return make


@pytest.fixture
def tree(entry_trees, tmp_path: Path) -> Tree:
    def make(name: str, division: str) -> Path:
        root = shutil.copytree(entry_trees(name, division), tmp_path / "tree")
        return root / division / "Acme"

    return make


def check(home: Path, name: str) -> TreeReport:
    return check_tree(home.parents[1], load(ENTRIES[name].round))


def first_row(home: Path, name: str) -> Path:
    return row(home, ENTRIES[name].scenarios[0], ENTRIES[name].benchmark)


TREES = [(name, division) for name in ENTRIES for division in ("open", "closed")]
TREES.remove(("gpt-oss in v6.0", "closed"))  # the audits are v6.1's
BY_RULING = {"vlm": {"RULING-VLM-CLIENT"}}


@pytest.mark.parametrize(("name", "division"), TREES)
def test_a_whole_tree_has_nothing_against_it_but_what_nobody_agrees_on(tree, name, division):
    report = check(tree(name, division), name)
    assert rules_of(report) == BY_RULING.get(name, set())
    assert tuple(r.place.scenario for r in report.rows) == tuple(sorted(ENTRIES[name].scenarios))
    assert {r.layout for r in report.rows} == {"loadgen"}
    assert all(r.metric is not None and r.accuracy for r in report.rows)


@pytest.mark.parametrize("name", ["vlm", "agentic"])
def test_the_metric_and_the_accuracy(tree, name):
    report = check(tree(name, "closed"), name)
    units = {"vlm": {"Samples/s", "Queries/s"}, "agentic": {"Latency (ms)"}}
    assert {r.metric.units for r in report.rows} == units[name]
    assert {r.accuracy for r in report.rows} == {json.loads(F1)["f1"] if name == "vlm" else 85.9}
    if name == "agentic":
        detail = DetailLog.read(first_row(report.root / "closed" / "Acme", name) / "performance" / "run_1" / DETAIL)
        assert report.rows[0].metric.value == detail.value("early_stopping_latency_ss") / 1e6


def says(old: str, new: str) -> Change:
    """A change of the accuracy.txt of an entry's first row."""
    return lambda home, name: replace(first_row(home, name) / "accuracy" / "accuracy.txt", old, new)


def renamed(new: str) -> Change:
    return lambda home, name: first_row(home, name).rename(first_row(home, name).with_name(new))


def doubled(new: str) -> Change:
    return lambda home, name: shutil.copytree(first_row(home, name), first_row(home, name).with_name(new))


def typed(kind: str) -> Change:
    return lambda home, name: change_json(box(home), system_type=kind)


def without(scenario: str) -> Change:
    return lambda home, name: remove(row(home, scenario, ENTRIES[name].benchmark))


def client_s(home: Path, name: str) -> None:
    """The reports of the endpoints client in place of LoadGen's logs."""
    remove(first_row(home, name) / "performance")
    remove(first_row(home, name) / "accuracy")
    write(first_row(home, name) / "config.yaml", "type: offline\n")


# Each breaks an entry's tree in one place: the entry, the change, the rule, its severity in closed and in open.
BREAKING = [
    ("vlm", says("0.7879394631035838", "0.782396"), "ACC-TARGET", "reject", "note"),
    ("vlm", says("0.7879394631035838", "78.79394631035838"), "ACC-METRIC", "reject", "reject"),
    ("vlm", says("0.7879394631035838", "0.7879.4631035838"), "ACC-METRIC", "reject", "reject"),
    ("vlm", says('{"f1"', ' {"f1"'), "ACC-METRIC", "reject", "review"),
    ("vlm", says("0.7879394631035838", "0.7879394631035837"), "ACC-HASH", "review", "review"),
    ("vlm", renamed("offline"), "TREE-SCENARIO", "reject", "reject"),
    ("vlm", doubled("SingleStream"), "TREE-SCENARIO", "reject", "reject"),
    ("vlm", typed("edge"), "SYS-CATEGORY", "reject", "review"),
    ("vlm", without("Offline"), "TREE-SCENARIO-SET", "reject", None),
    ("vlm in v6.0", says("0.7879394631035838", "0.782396"), "ACC-TARGET", "reject", "note"),
    ("vlm in v6.0", without("Server"), "TREE-SCENARIO-SET", "reject", None),
    ("vlm in v6.0", doubled("Interactive"), "TREE-SCENARIO-SET", "reject", None),
    ("vlm in v6.0", client_s, "ROW-LAYOUT", "reject", "reject"),
    ("agentic", says("85.900", "85.36"), "ACC-TARGET", "reject", "note"),
    ("agentic", says("mAP=", "mAP "), "ACC-METRIC", "reject", "review"),
    ("agentic", says("mAP=85.900", "mAP=85.900\nmAP=86.000"), "ACC-METRIC", "review", "review"),
    ("agentic", says("85.900", "859.00"), "ACC-METRIC", "reject", "reject"),
    ("agentic", renamed("singlestream"), "TREE-SCENARIO", "review", "review"),
    ("agentic", doubled("Offline"), "TREE-SCENARIO", "reject", "reject"),
    ("agentic", doubled("Server"), "TREE-SCENARIO", "reject", "review"),
    ("agentic", typed("datacenter"), "SYS-CATEGORY", "reject", "review"),
]


@pytest.mark.parametrize("division", ["open", "closed"])
@pytest.mark.parametrize(("name", "change", "rule", "closed", "open_"), BREAKING)
def test_one_change_breaks_a_rule(tree, name, change, rule, closed, open_, division):
    home = tree(name, division)
    change(home, name)
    severity = open_ if division == "open" else closed
    found = {f.severity.value for f in check(home, name).findings if f.rule == rule}
    assert found == (set() if severity is None else {severity})


def test_a_scenario_has_a_target_of_its_own(tree):
    home = tree("vlm", "closed")
    for scenario in ("Interactive", "Server"):
        replace(row(home, scenario, ENTRIES["vlm"].benchmark) / "accuracy" / "accuracy.txt", "0.78793946", "0.77993946")
    (finding,) = (f for f in check(home, "vlm").findings if f.rule == "ACC-TARGET")
    assert "/Server/" in finding.path


@pytest.mark.parametrize(
    ("kind", "refused"), [("datacenter", True), ("datacenter,edge", False), ("edge,datacenter", False)]
)
def test_the_scenarios_that_a_system_must_have_are_those_of_its_type(tree, kind, refused):
    home = tree("vlm in v6.0", "closed")
    change_json(box(home), system_type=kind)
    row(home, "Server", ENTRIES["vlm"].benchmark).rename(row(home, "Interactive", ENTRIES["vlm"].benchmark))
    report = check(home, "vlm in v6.0")
    assert ("TREE-SCENARIO-SET" in rules_of(report)) is refused


def test_the_metric_of_a_scenario_without_rules_is_loadgen_s_own(tree, entry_trees):
    home, other = tree("agentic", "open"), entry_trees("vlm", "open") / "open" / "Acme"
    server = first_row(home, "agentic").with_name("Server")
    shutil.copytree(row(other, "Server", ENTRIES["vlm"].benchmark), server)
    metric = next(r.metric for r in check(home, "agentic").rows if r.place.folder.name == "Server")
    assert (metric.key, metric.units) == ("result_completed_samples_per_sec", "Queries/s")


def test_a_round_that_reads_no_power_files(tree):
    home = tree("gpt-oss in v6.0", "open")
    write(home / "systems" / "Box_power.yaml", "a: [")
    assert "SYS-POWER" not in rules_of(check(home, "gpt-oss in v6.0"))


@needs_clone
@pytest.mark.slow
@pytest.mark.parametrize("division", ["open", "closed"])
@pytest.mark.parametrize("round_name", ["v6.0", "v6.1"])
def test_the_gate_is_never_milder_than_the_real_checker(entry_trees, tmp_path, round_name, division):
    whole = [name for name, kind in TREES if kind == division and ENTRIES[name].round == round_name]
    changes = [(name, "none", lambda home, name: None) for name in whole]
    changes += [(n, f"{rule} {i}", change) for i, (n, change, rule, *_) in enumerate(BREAKING) if n in whole]
    trees = {}
    for name, what, change in changes:
        root = trees[f"{name}: {what}"] = shutil.copytree(entry_trees(name, division), tmp_path / name / what)
        home = root / division / "Acme"
        change(home, name)
        (home / "MANIFEST.json").unlink()  # it would tell of any change
    milder, refused = compare(trees, round_name)
    assert milder == []
    assert refused > 1
    assert not any(refusals([trees[f"{name}: none"] for name in whole], round_name))
