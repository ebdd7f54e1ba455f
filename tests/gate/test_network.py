"""The network division, and what other divisions may say of a network."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from harness.gate import Finding, Severity, check_tree, run_official
from harness.gate.index import TreeIndex
from harness.gate.network import check_sut_name
from harness.rules import load
from tests.gate.made_tree import DETAIL, SCENARIOS, change_json, remake_manifest, row
from tests.gate.tree_changes import box
from tests.logs.loadgen_runs import edit

PACK = load("v6.1")
FIELDS = {name: f"some {name}" for name in PACK.system_fields.network_required.value}
NAME = f"{PACK.network_sut_name_holds.value} of Acme"


def described(home: Path, **values: object) -> None:
    change_json(box(home), **values)


def named(home: Path, name: str) -> None:
    for scenario in SCENARIOS:
        edit(row(home, scenario) / "performance" / "run_1" / DETAIL, sut_name=name)


def as_network(home: Path) -> Path:
    """A tree of closed as one of the network division."""
    moved = home.parents[1] / "network" / home.name
    home.parent.rename(home.parents[1] / "network")
    described(moved, **FIELDS | {"is_network": "true", "division": "network"})
    named(moved, NAME)
    remake_manifest(moved)
    return moved


def network_findings(home: Path) -> list[tuple[str, str]]:
    every = check_tree(home.parents[1], PACK).findings
    return sorted(
        {(f.rule, f.severity.value) for f in every if f.rule.startswith("NET-") or f.rule == "SYS-IS-NETWORK"}
    )


def test_a_whole_tree_of_the_network_division(tree):
    home = as_network(tree("closed"))
    assert [f for f in check_tree(home.parents[1], PACK).findings if f.severity is not Severity.NOTE] == []


# Each: the division, the fields that are set, the rule that then is broken, its severity.
BREACHES = [
    ("not said", "network", {"is_network": ...}, "NET-MODE", "reject"),
    ("said to be none", "network", {"is_network": "false"}, "NET-MODE", "reject"),
    ("a truth value", "network", {"is_network": True}, "SYS-IS-NETWORK", "reject"),
    ("a field of it lacks", "network", {"nic_sut": ...}, "NET-FIELD", "reject"),
    ("true in closed", "closed", FIELDS | {"is_network": "True"}, "NET-MODE", "reject"),
    ("false in closed, alone", "closed", {"is_network": "false"}, "NET-FIELD", "reject"),
    ("false in closed with all fields", "closed", FIELDS | {"is_network": "false"}, "SYS-IS-NETWORK", "review"),
    ("a number in closed", "closed", FIELDS | {"is_network": 0}, "SYS-IS-NETWORK", "reject"),
    ("true in open", "open", FIELDS | {"is_network": "true"}, "SYS-IS-NETWORK", "review"),
    ("true in open, alone", "open", {"is_network": "true"}, "NET-FIELD", "reject"),
    ("true in open, name", "open", FIELDS | {"is_network": "true"}, "NET-SUT", "reject"),
]


@pytest.mark.parametrize(
    ("division", "values", "rule", "severity"), [b[1:] for b in BREACHES], ids=[b[0] for b in BREACHES]
)
def test_one_field_breaks_a_rule(tree, division, values, rule, severity):
    home = as_network(tree("closed")) if division == "network" else tree(division)
    assert not network_findings(home)
    described(home, **values)
    assert (rule, severity) in network_findings(home)


def test_null_is_not_said(tree):
    home = tree("closed")
    described(home, is_network=None)
    assert not network_findings(home)


def test_the_name_of_the_sut(tree):
    home = as_network(tree("closed"))
    named(home, "PySUT")
    assert network_findings(home) == [("NET-SUT", "reject")]


def test_fields_may_be_empty_there(tree):
    home = as_network(tree("closed"))
    described(home, nic_sut="")
    assert not network_findings(home)


def test_a_report_without_a_name(tree):
    home = as_network(tree("closed"))
    index, place = TreeIndex(home.parents[1]), check_tree(home.parents[1], PACK).rows[0].place
    (found,) = check_sut_name(index, place, place.folder / "result_summary.json", None, PACK)
    assert isinstance(found, Finding) and found.found == "no name of the SUT"


@pytest.mark.skipif(not os.environ.get("MLPERF_INFERENCE_DIR"), reason="MLPERF_INFERENCE_DIR names no clone")
@pytest.mark.slow
@pytest.mark.parametrize(
    ("division", "values"),
    [("network", {}), *[b[1:3] for b in BREACHES], ("closed", {"is_network": None}), ("open", {"is_network": ""})],
)
@pytest.mark.parametrize("name", [NAME, "PySUT"])
def test_the_official_checker_says_the_same(tree, division, values, name):
    home = as_network(tree("closed")) if division == "network" else tree(division)
    named(home, name)
    described(home, **values)
    remake_manifest(home)
    ours = "reject" not in {severity for _, severity in network_findings(home)}
    rows = run_official(home.parents[1], "v6.1").rows
    assert ours == (len(rows) == len(SCENARIOS))
