from __future__ import annotations

from tests.gate.made_tree import remake_manifest, remove, write
from tests.gate.tree_changes import Breach, accuracy_text, breaches, check, replace, rules_of, server

# Each breaks a tree in one place: name, division, the change, the rule, its severity.
BREACHES: list[Breach] = [
    (
        "blank behind the hash",
        "closed",
        lambda h: write(accuracy_text(h), accuracy_text(h).read_text().rstrip("\n") + " \n"),
        "ACC-HASH",
        "reject",
    ),
    (
        "metric over two lines",
        "closed",
        lambda h: replace(accuracy_text(h), "'exact_match': ", "'exact_match':\n"),
        "ACC-METRIC",
        "reject",
    ),
    ("accuracy.txt no text", "open", lambda h: accuracy_text(h).write_bytes(b"\xff"), "ACC-TEXT", "reject"),
    (
        "no metric",
        "closed",
        lambda h: replace(accuracy_text(h), "'exact_match': ", "exact_match "),
        "ACC-METRIC",
        "reject",
    ),
    (
        "no metric in open",
        "open",
        lambda h: replace(accuracy_text(h), "'exact_match': ", "exact_match "),
        "ACC-METRIC",
        "review",
    ),
    ("metric of two dots", "closed", lambda h: replace(accuracy_text(h), "83.130", "83.1.30"), "ACC-METRIC", "reject"),
    (
        "two metrics",
        "closed",
        lambda h: replace(accuracy_text(h), "\n\n", "\n'exact_match': 84.0\n\n"),
        "ACC-METRIC",
        "review",
    ),
    ("below target", "closed", lambda h: replace(accuracy_text(h), "83.130", "82.298"), "ACC-TARGET", "reject"),
    (
        "ours in closed",
        "closed",
        lambda h: replace(accuracy_text(h), "Printing", "Scored, not by the reference's evaluator"),
        "ACC-OURS",
        "review",
    ),
    ("no hash", "closed", lambda h: replace(accuracy_text(h), "hash=", "hash "), "ACC-HASH", "reject"),
    (
        "any word for a hash",
        "closed",
        lambda h: write(accuracy_text(h), "'exact_match': 83.1\nhash=x\n"),
        "ACC-HASH",
        "reject",
    ),
    (
        "hash of another log",
        "open",
        lambda h: write(accuracy_text(h), f"'exact_match': 83.1\nhash={'0' * 64}\n"),
        "ACC-HASH",
        "reject",
    ),
    (
        "accuracy log whole",
        "open",
        lambda h: write(server(h) / "accuracy" / "mlperf_log_accuracy.json", "x" * 10_241),
        "ACC-LOG-SIZE",
        "reject",
    ),
    (
        "accuracy log without ends",
        "open",
        lambda h: write(server(h) / "accuracy" / "mlperf_log_accuracy.json", "x" * 4096 + "\n\n...\n\n" + "x"),
        "ACC-LOG",
        "reject",
    ),
    (
        "accuracy log of no rows",
        "open",
        lambda h: write(server(h) / "accuracy" / "mlperf_log_accuracy.json", "[\n]\n"),
        "ACC-COVERAGE",
        "reject",
    ),
]


@breaches(BREACHES)
def test_one_change_breaks_a_rule(tree, division, change, rule, severity):
    home = tree(division)
    change(home)
    report = check(home)
    assert {f.severity.value for f in report.findings if f.rule == rule} == {severity}
    assert severity == "note" or report.verdict.value in (severity, "reject")


def test_what_open_forgives_is_a_note_there(tree):
    home = tree("open")
    write(
        accuracy_text(home),
        "Scored by x, not by the reference's evaluator.\n"
        f"'exact_match': 3.0\n{accuracy_text(home).read_text().splitlines()[-1]}\n",
    )
    remove(home / "documentation")
    remake_manifest(home)
    report = check(home)
    assert rules_of(report) == set()
    notes = {f.rule for f in report.findings}
    assert {"ACC-OURS", "ACC-TARGET", "TREE-CALIBRATION", "TREE-BANDWIDTH"} <= notes
