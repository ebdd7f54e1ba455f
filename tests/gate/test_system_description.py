from __future__ import annotations

import pytest

from harness.gate import Verdict
from tests.gate.made_tree import SYSTEM, change_json, remake_manifest, remove, write
from tests.gate.tree_changes import Breach, box, breaches, breaks, check, replace

# Each breaks a tree in one place: name, division, the change, the rule, its severity.
BREACHES: list[Breach] = [
    ("bad power file", "open", lambda h: write(h / "systems" / f"{SYSTEM}_power.yaml", "a: ["), "SYS-POWER", "reject"),
    (
        "half a character",
        "open",
        lambda h: replace(box(h), '"some system_name"', '"\\ud800"'),
        "SYS-JSON",
        "reject",
    ),
    ("notes that are a number", "open", lambda h: change_json(box(h), sw_notes=5), "SYS-VALUE", "reject"),
    ("no system file", "open", lambda h: remove(box(h)), "SYS-JSON", "reject"),
    ("system no JSON", "open", lambda h: write(box(h), "{"), "SYS-JSON", "reject"),
    ("system a list", "open", lambda h: write(box(h), "[]"), "SYS-JSON", "reject"),
    ("system nested without end", "open", lambda h: write(box(h), "[" * 100_000), "SYS-JSON", "reject"),
    ("system not UTF-8", "open", lambda h: box(h).write_bytes(b"\xff\xfe{}"), "SYS-JSON", "reject"),
    ("field absent", "open", lambda h: change_json(box(h), cooling=...), "SYS-FIELD", "reject"),
    ("field empty", "open", lambda h: change_json(box(h), cooling=""), "SYS-EMPTY", "reject"),
    ("number 0", "open", lambda h: change_json(box(h), accelerators_per_node=0), "SYS-EMPTY", "reject"),
    ("field a list", "open", lambda h: change_json(box(h), framework=["a"]), "SYS-VALUE", "review"),
    ("notes a list", "open", lambda h: change_json(box(h), hw_notes=["a"]), "SYS-VALUE", "reject"),
    ("notes an empty list", "open", lambda h: change_json(box(h), sw_notes=[]), "SYS-VALUE", "review"),
    ("double quote", "open", lambda h: change_json(box(h), framework='a "b"'), "SYS-QUOTE", "review"),
    ("not a number", "open", lambda h: change_json(box(h), number_of_nodes="two"), "SYS-NUMBER", "reject"),
    (
        "number that is no number",
        "open",
        lambda h: change_json(box(h), number_of_nodes=float("inf")),
        "SYS-NUMBER",
        "reject",
    ),
    ("number with a fraction", "open", lambda h: change_json(box(h), number_of_nodes=2.0), "SYS-NUMBER", "review"),
    ("number below 0", "open", lambda h: change_json(box(h), accelerators_per_node="-1"), "SYS-NUMBER", "review"),
    ("system_type", "open", lambda h: change_json(box(h), system_type="datacenter, edge"), "SYS-TYPE", "reject"),
    ("status", "open", lambda h: change_json(box(h), status="cloud"), "SYS-STATUS", "reject"),
    ("status in capitals", "open", lambda h: change_json(box(h), status="Available"), "SYS-STATUS", "review"),
    ("division", "open", lambda h: change_json(box(h), division="closed"), "SYS-DIVISION", "reject"),
    ("submitter", "open", lambda h: change_json(box(h), submitter="Other"), "SYS-SUBMITTER", "reject"),
    ("submitter a list", "open", lambda h: change_json(box(h), submitter=["Acme"]), "SYS-SUBMITTER", "reject"),
    ("is_network", "open", lambda h: change_json(box(h), is_network=False), "SYS-IS-NETWORK", "reject"),
]


@breaches(BREACHES)
def test_one_change_breaks_a_rule(tree, division, change, rule, severity):
    breaks(tree(division), change, rule, severity)


def test_a_system_s_findings_are_its_rows(tree):
    home = tree("open")
    change_json(box(home), cooling="")
    remake_manifest(home)
    assert {r.verdict for r in check(home).rows} == {Verdict.REJECT}


@pytest.mark.parametrize(("said", "severity"), [("STRASSE", "reject"), ("STRAßE", "review"), ("Straße", None)])
def test_a_name_in_another_case_is_compared_as_the_official_checker_does(tree, said, severity):
    home = tree("open")
    moved = home.rename(home.with_name("Straße"))
    change_json(box(moved), submitter=said)
    found = {f.severity.value for f in check(moved).findings if f.rule == "SYS-SUBMITTER"}
    assert found == (set() if severity is None else {severity})
