from __future__ import annotations

from harness.gate import Verdict
from tests.gate.made_tree import change_json, remake_manifest, write
from tests.gate.tree_changes import Breach, box, breaches, breaks, check, in_manifest, rules_of, server

# Each breaks a tree in one place: name, division, the change, the rule, its severity.
BREACHES: list[Breach] = [
    (
        "unlabelled stand-in",
        "open",
        lambda h: write(server(h) / "README.md", "on a stand-in data set\n"),
        "MARK-STAND-IN",
        "reject",
    ),
    ("unlabelled notes", "open", lambda h: change_json(box(h), sw_notes="scripted engine"), "MARK-STAND-IN", "reject"),
    ("label without flag", "open", lambda h: write(h / "DEMONSTRATION", "no result\n"), "MARK-LABEL", "reject"),
]


@breaches(BREACHES)
def test_one_change_breaks_a_rule(tree, division, change, rule, severity):
    breaks(tree(division), change, rule, severity)


def test_a_labelled_demonstration_is_a_review(tree):
    home = tree("open")
    write(home / "DEMONSTRATION", "stand-in data set, scripted engine\n")
    write(server(home) / "README.md", "DEMONSTRATION on a stand-in data set\n")
    remake_manifest(home)
    in_manifest(
        home, lambda m: (m.update(demonstration=True), m["rows"][0].update(not_submittable=["scripted engine"]))
    )
    report = check(home)
    assert rules_of(report) == {"MARK-STAND-IN"}
    assert report.verdict is Verdict.REVIEW
    assert {r.verdict for r in report.rows} == {Verdict.REVIEW}
    assert len([f for f in report.findings if f.rule == "MARK-STAND-IN"]) == 3
