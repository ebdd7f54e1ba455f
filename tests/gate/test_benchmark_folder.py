from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from harness.gate import Severity, Verdict
from tests.gate.made_tree import BENCHMARK, change_json, remake_manifest, remove, row, write
from tests.gate.tree_changes import Breach, box, breaches, breaks, check, rules_of, server

# Each breaks a tree in one place: name, division, the change, the rule, its severity.
BREACHES: list[Breach] = [
    ("mapping no JSON", "open", lambda h: write(h / "model_mapping.json", "["), "TREE-MAPPING", "reject"),
    ("mapping a folder", "open", lambda h: write(h / "model_mapping.json" / "x", "x"), "TREE-MAPPING", "reject"),
    ("mapping to a list", "open", lambda h: write(h / "model_mapping.json", '{"a": []}'), "TREE-MAPPING", "review"),
    (
        "benchmark without rules",
        "open",
        lambda h: shutil.copytree(server(h).parent, server(h).parent.with_name("resnet")),
        "TREE-UNRULED",
        "note",
    ),
    (
        "scenario in lower case",
        "open",
        lambda h: server(h).rename(server(h).with_name("server")),
        "TREE-SCENARIO",
        "review",
    ),
    (
        "scenario of no benchmark",
        "open",
        lambda h: shutil.copytree(server(h), server(h).with_name("Streaming")),
        "TREE-SCENARIO",
        "reject",
    ),
    (
        "scenario too many",
        "closed",
        lambda h: shutil.copytree(server(h), server(h).with_name("SingleStream")),
        "TREE-SCENARIO-SET",
        "reject",
    ),
    (
        "unknown benchmark",
        "open",
        lambda h: server(h).parent.rename(server(h).parent.parent / "gpt-oss"),
        "TREE-BENCHMARK",
        "reject",
    ),
    (
        "no benchmark",
        "open",
        lambda h: write(server(h).parent.with_name("logs") / "x", "x"),
        "TREE-BENCHMARK",
        "review",
    ),
    (
        "no benchmark in closed",
        "closed",
        lambda h: write(server(h).parent.with_name("logs") / "x", "x"),
        "TREE-BENCHMARK",
        "reject",
    ),
    (
        "scenario in capitals",
        "open",
        lambda h: server(h).rename(server(h).parent / "SERVER"),
        "TREE-SCENARIO",
        "reject",
    ),
    ("no Offline in closed", "closed", lambda h: remove(row(h, "Offline")), "TREE-SCENARIO-SET", "reject"),
    ("no Server in closed", "closed", lambda h: remove(server(h)), "TREE-SCENARIO-SET", "reject"),
    ("edge in closed", "closed", lambda h: change_json(box(h), system_type="edge"), "SYS-CATEGORY", "reject"),
    ("edge in open", "open", lambda h: change_json(box(h), system_type="edge"), "SYS-CATEGORY", "review"),
]


@breaches(BREACHES)
def test_one_change_breaks_a_rule(tree, division, change, rule, severity):
    breaks(tree(division), change, rule, severity)


def test_own_names_of_benchmarks_in_open(tree):
    home = tree("open")
    server(home).parent.rename(server(home).parent.parent / "my-model")
    write(home / "model_mapping.json", json.dumps({"my-model": BENCHMARK}))
    assert len(check(home).rows) == 2


def test_a_missing_scenario_rejects_the_others(tree):
    home = tree("closed")
    remove(server(home))
    (offline,) = check(home).rows
    assert offline.verdict is Verdict.REJECT


def open_names(home: Path) -> Path:
    """The folder of results by another name, for a mapping."""
    return server(home).parent.rename(server(home).parent.with_name("my-model"))


@pytest.mark.parametrize("mapping", [{"my-model": ["x"]}, {"my-model": 7}, ["my-model"], {"my-model": "no-such"}])
def test_a_mapping_that_leads_nowhere(tree, mapping):
    home = tree("open")
    open_names(home)
    write(home / "model_mapping.json", json.dumps(mapping))
    report = check(home)
    assert report.rows == ()
    assert {"TREE-BENCHMARK", "TREE-NO-ROWS"} <= rules_of(report)


def test_an_official_name_is_not_mapped(tree):
    home = tree("open")
    write(home / "model_mapping.json", json.dumps({BENCHMARK: "qwen3.6-27b"}))
    assert {one.place.benchmark for one in check(home).rows} == {BENCHMARK}


@pytest.mark.parametrize("division", ["open", "closed"])
def test_further_names_that_the_round_knows(tree, division):
    home = tree(division)
    shutil.copytree(server(home).parent, server(home).parent.with_name("resnet50"))
    write(home / "model_mapping.json", json.dumps({"resnet50": BENCHMARK}))
    unruled = [f for f in check(home).findings if f.rule == "TREE-UNRULED"]
    assert [f.found for f in unruled] == ["results of resnet"]


def test_no_mapping_in_closed(tree):
    home = tree("closed")
    open_names(home)
    write(home / "model_mapping.json", json.dumps({"my-model": BENCHMARK}))
    assert "TREE-BENCHMARK" in rules_of(check(home))


@pytest.mark.parametrize("division", ["open", "closed"])
def test_a_benchmark_without_rules_is_a_note_and_its_structure_is_checked(tree, division):
    home = tree(division)
    other = server(home).parent.with_name("resnet")
    shutil.copytree(server(home).parent, other)
    remake_manifest(home)
    report = check(home)
    assert {f.path for f in report.findings if f.rule == "TREE-UNRULED"} == {f"{division}/Acme/results/Box/resnet"}
    assert len(report.rows) == 2
    remove(other / "Server" / "user.conf")
    (finding,) = (f for f in check(home).findings if f.rule == "TREE-FILE")
    assert finding.path.endswith("resnet/Server/user.conf")
    remove(server(home).parent)
    (finding,) = (f for f in check(home).findings if f.rule == "TREE-NO-ROWS")
    assert finding.severity is Severity.REVIEW


@pytest.mark.parametrize("division", ["open", "closed"])
def test_a_scenario_in_lower_case_is_checked_as_what_it_is(tree, division):
    home = tree(division)
    server(home).rename(server(home).with_name("server"))
    report = check(home)
    assert {f.severity for f in report.findings if f.rule == "TREE-SCENARIO"} == {Severity.REVIEW}
    assert [one.place.scenario for one in report.rows] == ["Offline", "Server"]
    assert str(report.rows[1].place).endswith("/server")
    assert "TREE-SCENARIO-SET" not in rules_of(report)


def test_the_nearest_name_is_offered(tree):
    home = tree("open")
    server(home).rename(server(home).with_name("SERVER"))
    finding = next(f for f in check(home).findings if f.rule == "TREE-SCENARIO")
    assert "did you mean 'Server'?" in finding.mend


def test_an_unknown_scenario_refuses_its_siblings_in_closed(tree):
    home = tree("closed")
    write(server(home).with_name("Streaming") / "x", "x")
    report = check(home)
    (finding,) = (f for f in report.findings if f.rule == "TREE-SCENARIO-SET")
    assert finding.path.endswith(BENCHMARK) and "refuses" in finding.found
    assert {one.verdict for one in report.rows} == {Verdict.REJECT}


@pytest.mark.parametrize("scenario", ["SingleStream", "MultiStream"])
def test_a_scenario_that_the_round_has_no_rules_for(tree, scenario):
    home = tree("open")
    shutil.copytree(server(home), server(home).with_name(scenario))
    remake_manifest(home)
    report = check(home)
    (finding,) = (f for f in report.findings if f.rule == "TREE-SCENARIO")
    assert finding.severity is Severity.REVIEW
    checked = next(one for one in report.rows if one.place.scenario == scenario)
    assert "LG-SCENARIO" in {f.rule for f in checked.findings}  # the logs are Server's
