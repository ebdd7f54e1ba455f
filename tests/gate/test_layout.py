"""Links, sizes, lists of files, documents: what lies in a tree, whatever is in it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.gate import Finding, Severity, check_tree
from harness.rules import load
from tests.gate.made_tree import SYSTEM, change_json, remake_manifest, remove, write
from tests.gate.tree_changes import box, server

PACK = load("v6.1")
LIMIT = PACK.tree.file_max_bytes.value


def sparse(path: Path, size: int) -> None:
    path.touch()
    os.truncate(path, size)


def link(path: Path, target: Path) -> None:
    """A relative link."""
    path.symlink_to(os.path.relpath(target, path.parent))


def run_1(home: Path) -> Path:
    return server(home) / "performance" / "run_1"


# Each breaks a tree in one place: division, the change, the rule, its severity.
BREACHES: list[tuple[str, str, Callable[[Path], object], str, str]] = [
    ("a byte above the limit", "closed", lambda h: sparse(h / "src" / "weights", LIMIT + 1), "TREE-SIZE", "review"),
    ("third log", "closed", lambda h: write(run_1(h) / "engine.log", "x"), "TREE-FILE-LIST", "review"),
    ("folder in a run", "open", lambda h: write(run_1(h) / "plots" / "a.png", "x"), "TREE-FILE-LIST", "review"),
    (
        "fifth accuracy file",
        "open",
        lambda h: write(server(h) / "accuracy" / "accuracy.json", "{}"),
        "TREE-FILE-LIST",
        "review",
    ),
    ("trace", "open", lambda h: write(run_1(h) / "mlperf_log_trace.json", "[]"), "TREE-FILE-LIST", "note"),
    ("old table at the root", "open", lambda h: write(h.parents[1] / "summary.csv", "x"), "TREE-SUMMARY", "note"),
    ("old table beside the tree", "open", lambda h: write(h.parents[2] / "summary.csv", "x"), "TREE-SUMMARY", "note"),
    ("old table in a row", "open", lambda h: write(server(h) / "summary.csv", "x"), "TREE-SUMMARY", "note"),
    ("unknown field", "closed", lambda h: change_json(box(h), acelerator_count=8), "SYS-UNKNOWN", "note"),
    ("broken link", "open", lambda h: (h / "README.md").symlink_to("gone"), "TREE-LINK", "reject"),
    ("link to itself", "open", lambda h: (h / "README.md").symlink_to("README.md"), "TREE-LINK", "reject"),
    ("link out", "open", lambda h: link(h / "README.md", write(h.parents[2] / "x", "x")), "TREE-LINK", "reject"),
    ("absolute link", "open", lambda h: (h / "README.md").symlink_to(box(h)), "TREE-LINK", "reject"),
    ("link to a folder above", "open", lambda h: link(h / "src" / "up", h), "TREE-LINK", "reject"),
    ("link to a fifo", "open", lambda h: (os.mkfifo(h / "p"), link(h / "README.md", h / "p")), "TREE-LINK", "reject"),
    ("link among results", "open", lambda h: link(h / "results" / "B", h / "results" / SYSTEM), "TREE-LINK", "reject"),
    ("relative link as submitter", "open", lambda h: link(h.parent / "Other", h), "TREE-LINK", "reject"),
    ("link to a file", "open", lambda h: link(h / "README.md", box(h)), "TREE-LINK", "review"),
    ("link in src", "open", lambda h: link(h / "src" / "docs", h / "documentation"), "TREE-LINK", "review"),
    ("code and no src", "closed", lambda h: (h / "src").rename(h / "code"), "TREE-SRC", "reject"),
]


def findings(home: Path, rule: str) -> list[Finding]:
    return [f for f in check_tree(home.parents[1], PACK).findings if f.rule == rule]


@pytest.mark.parametrize(
    ("division", "change", "rule", "severity"),
    [b[1:] for b in BREACHES],
    ids=[b[0].replace(" ", "-") for b in BREACHES],
)
def test_one_change_breaks_a_rule(tree, division, change, rule, severity):
    home = tree(division)
    assert not findings(home, rule)
    change(home)
    assert {f.severity.value for f in findings(home, rule)} == {severity}


def test_the_limit_itself_is_no_breach(tree):
    home = tree("closed")
    sparse(home / "src" / "weights", LIMIT)
    assert not findings(home, "TREE-SIZE")


def test_what_a_run_may_have_beside_its_logs(tree):
    home = tree("closed")
    write(run_1(home) / "mlperf_log_accuracy.json", "")
    write(server(home) / "mlperf.conf", "x")
    assert not findings(home, "TREE-FILE-LIST")


def test_an_old_table_is_said_once(tree):
    home = tree("open")
    write(home.parents[1] / "summary.csv", "x")
    assert not findings(home, "TREE-STRAY")
    assert [f.path for f in findings(home, "TREE-SUMMARY")] == ["summary.csv"]


def test_what_hangs_on_a_link_counts_as_absent(tree):
    home = tree("open")
    readme = server(home) / "README.md"
    remove(readme)
    link(readme, write(home / "src" / "README.md", "make run_harness\n"))
    remake_manifest(home)
    report = check_tree(home.parents[1], PACK)
    assert {f.rule for f in report.findings if f.path.endswith("Server/README.md")} >= {"TREE-LINK", "TREE-FILE"}


def test_the_folders_of_a_repository_are_not_strays(tree):
    home = tree("open")
    for name in (".git", ".github", "assets"):
        write(home.parents[1] / name / "a b", "x")
    assert {f.rule for f in check_tree(home.parents[1], PACK).findings if f.severity is not Severity.NOTE} == set()
    write(home.parents[1] / "images" / "a", "x")
    assert findings(home, "TREE-STRAY")


def test_bandwidth_is_asked_of_the_datacenter_alone(tree):
    home = tree("closed")
    remove(home / "documentation" / "bandwidth.md")
    for category in ("datacenter", "edge,datacenter", None):
        change_json(box(home), system_type=category)
        assert [f.severity for f in findings(home, "TREE-BANDWIDTH")] == [Severity.REVIEW]
    change_json(box(home), system_type="edge")
    assert not findings(home, "TREE-BANDWIDTH")
    remove(box(home))
    assert findings(home, "TREE-BANDWIDTH")
    write(home / "documentation" / "bandwidth.adoc", "One network card.")
    assert not findings(home, "TREE-BANDWIDTH")


def test_a_calibration_document_by_its_other_name(tree):
    home = tree("closed")
    document = home / "documentation" / "calibration.md"
    document.rename(document.with_suffix(".adoc"))
    assert not findings(home, "TREE-CALIBRATION")
    (found,) = findings(home, "RULING-CALIBRATION-NAME")
    assert (found.severity, found.path) == (Severity.NOTE, "closed/Acme/documentation/calibration.adoc")
    write(home / "calibration.md", "No quantisation.")
    assert not findings(home, "RULING-CALIBRATION-NAME")
    write(home / "calibration.md", "")
    write(document.with_suffix(".adoc"), "")
    assert [f.severity for f in findings(home, "TREE-CALIBRATION")] == [Severity.REVIEW]


def test_code_is_to_be_renamed(tree):
    home = tree("closed")
    (home / "src").rename(home / "code")
    (found,) = findings(home, "TREE-SRC")
    assert found.mend.startswith("rename code to src")


def test_a_count_that_the_checker_takes_as_it_is(tree):
    home = tree("closed")
    change_json(box(home), host_processors_per_node="2 sockets")
    assert [f.severity for f in findings(home, "SYS-NUMBER")] == [Severity.REVIEW]
    change_json(box(home), accelerators_per_node="8 GPUs")
    assert {f.severity for f in findings(home, "SYS-NUMBER")} == {Severity.REVIEW, Severity.REJECT}


def test_unknown_fields_are_named_and_known_ones_not(tree):
    home = tree("open")
    data = json.loads(box(home).read_text())
    change_json(box(home), **dict.fromkeys(PACK.system_fields.network_required.value, "x"))
    assert not findings(home, "SYS-UNKNOWN")
    write(box(home), json.dumps({**data, "b": 1, "a": 2}))
    assert [f.found for f in findings(home, "SYS-UNKNOWN")] == ["a, b"]
