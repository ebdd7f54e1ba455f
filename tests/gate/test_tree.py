from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.errors import ConfigError, UnknownName
from harness.events import StepProgress
from harness.gate import Verdict, check_tree
from harness.rules import load
from tests.gate.made_tree import BENCHMARK, SYSTEM, make_tree, remake_manifest, remove, sha256, write
from tests.gate.tree_changes import PACK, REAL, Breach, box, breaches, breaks, check, rules_of, server


@pytest.mark.parametrize("division", ["open", "closed"])
def test_a_whole_tree_has_nothing_against_it(tree, division):
    report = check(tree(division))
    assert rules_of(report) == set()
    assert report.verdict is Verdict.PASS
    assert [(r.place.scenario, r.verdict, r.accuracy) for r in report.rows] == [
        ("Offline", Verdict.PASS, 83.13),
        ("Server", Verdict.PASS, 83.13),
    ]
    assert report.rows[0].metric.key == "result_tokens_per_second"
    assert str(report.rows[1].place) == f"{division}/Acme/Box/{BENCHMARK}/Server"


# Each breaks a tree in one place: name, division, the change, the rule, its severity.
BREACHES: list[Breach] = [
    ("link", "open", lambda h: (h / "README.md").symlink_to("/etc/hostname"), "TREE-LINK", "reject"),
    ("link to a folder", "open", lambda h: (h / "src" / "more").symlink_to(h), "TREE-LINK", "reject"),
    ("link as submitter", "open", lambda h: (h.parent / "Other").symlink_to(h), "TREE-LINK", "reject"),
    ("link as division", "open", lambda h: (h.parent.parent / "closed").symlink_to(h.parent), "TREE-LINK", "reject"),
    ("fifo", "open", lambda h: os.mkfifo(h / "src" / "pipe"), "TREE-SPECIAL-FILE", "reject"),
    ("dot name", "open", lambda h: write(h / "src" / ".cache", "x"), "TREE-NAME", "review"),
    ("blank in a name", "open", lambda h: write(h / "src" / "a b.py", "x"), "TREE-NAME", "review"),
    ("line end in a name", "open", lambda h: write(h / "src" / "a\nb.py", "x"), "TREE-NAME", "review"),
    ("name of bytes", "open", lambda h: write(h / "src" / os.fsdecode(b"\xff.py"), "x"), "TREE-NAME", "review"),
    ("bytes below a row", "open", lambda h: write(server(h) / os.fsdecode(b"\xff") / "x", "x"), "TREE-NAME", "review"),
    ("pycache", "open", lambda h: write(h / "src" / "__pycache__" / "a.pyc", "x"), "TREE-NAME", "review"),
    ("empty folder", "open", lambda h: (h / "src" / "empty").mkdir(), "TREE-EMPTY-FOLDER", "review"),
    ("other division", "open", lambda h: (h.parent.parent / "Closed").mkdir(), "TREE-STRAY", "reject"),
    ("stray folder", "open", lambda h: (h.parent.parent / "tmp").mkdir(), "TREE-STRAY", "review"),
    ("file in a division", "open", lambda h: write(h.parent / "notes.txt", "x"), "TREE-STRAY", "review"),
    ("no results folder", "open", lambda h: (h.parent / "Other").mkdir(), "TREE-SUBMITTER", "reject"),
    ("results gone", "open", lambda h: remove(h / "results"), "TREE-NO-ROWS", "reject"),
    ("no src", "open", lambda h: remove(h / "src"), "TREE-SRC", "reject"),
    ("empty src", "open", lambda h: remove(h / "src" / BENCHMARK / "main.py"), "TREE-SRC-EMPTY", "review"),
    (
        "no calibration",
        "closed",
        lambda h: remove(h / "documentation" / "calibration.md"),
        "TREE-CALIBRATION",
        "review",
    ),
    (
        "empty bandwidth",
        "closed",
        lambda h: write(h / "documentation" / "bandwidth.md", ""),
        "TREE-BANDWIDTH",
        "review",
    ),
    ("unused system", "open", lambda h: write(h / "systems" / "Other.json", "{}"), "TREE-UNUSED-SYSTEM", "review"),
]


@breaches(BREACHES)
def test_one_change_breaks_a_rule(tree, division, change, rule, severity):
    breaks(tree(division), change, rule, severity)


def test_a_rule_is_broken_alone_once_the_manifest_is_made_again(tree):
    home = tree("open")
    write(server(home) / "user.conf", "")
    remake_manifest(home)
    assert rules_of(check(home)) == {"TREE-FILE-EMPTY"}


def test_how_far_the_check_is_is_told(tree):
    told = []
    report = check_tree(tree("closed").parent.parent, PACK, observer=told.append)
    benchmarks = len({row.place.folder.parent for row in report.rows})
    assert told[0] == StepProgress("checking results", 1, benchmarks, "benchmarks")
    assert told[-1] == StepProgress("checking results", benchmarks, benchmarks, "benchmarks")


def test_a_row_knows_what_concerns_it(tree):
    home = tree("open")
    write(server(home) / "user.conf", "")
    remake_manifest(home)
    assert [r.verdict for r in check(home).rows] == [Verdict.PASS, Verdict.REJECT]
    write(home / "src" / "new.py", "x")
    assert [r.verdict for r in check(home).rows] == [Verdict.REVIEW, Verdict.REJECT]


def test_one_submitter_of_two(tree, loadgen_runs):
    home = tree("open")
    other = make_tree(home.parent.parent, loadgen_runs, "closed")
    remove(other / "src")
    root = home.parent.parent
    assert check_tree(root, PACK, "Acme").verdict is Verdict.REJECT
    other.rename(other.with_name("Bad"))
    assert check_tree(root, PACK, "Acme").verdict is Verdict.PASS
    assert check_tree(root, PACK, "Bad").verdict is Verdict.REJECT


@pytest.mark.parametrize("make", [lambda p: None, lambda p: write(p, "x")])
def test_nothing_to_check(tmp_path, make):
    make(tmp_path / "tree")
    with pytest.raises(ConfigError, match="nothing to check") as caught:
        check_tree(tmp_path / "tree", PACK)
    assert caught.value.exit_code == 2


@pytest.mark.parametrize("folders", ["", "open", "open/Acme", "closed/Acme/results/Box/gpt-oss-120b"])
def test_an_empty_tree_is_a_finding(tmp_path, folders):
    (tmp_path / "tree" / folders).mkdir(parents=True)
    report = check_tree(tmp_path / "tree", PACK)
    assert (report.rows, report.verdict) == ((), Verdict.REJECT)
    assert "TREE-NO-ROWS" in rules_of(report)


@pytest.mark.parametrize("name", ["is_dir", "scandir"])
def test_a_tree_that_cannot_be_read(tree, monkeypatch, name):
    root = tree("open").parents[1]

    def deny(path):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(*((Path, name) if name == "is_dir" else (os, name)), deny)
    with pytest.raises(ConfigError, match="nothing to check") as caught:
        check_tree(root, PACK)
    assert caught.value.exit_code == 2


def test_a_misspelt_submitter(tree):
    with pytest.raises(UnknownName) as caught:
        check_tree(tree("open").parent.parent, PACK, "Acne")
    assert caught.value.exit_code == 2
    assert "Acme" in caught.value.mend


def test_an_unlistable_folder_is_told(tree, monkeypatch):
    home = tree("open")
    scandir = os.scandir

    def deny(path):
        if Path(path).name == BENCHMARK and "src" in Path(path).parts:
            raise PermissionError(13, "Permission denied")
        return scandir(path)

    monkeypatch.setattr(os, "scandir", deny)
    finding = next(f for f in check(home).findings if f.rule == "TREE-UNREADABLE")
    assert finding.path == f"open/Acme/src/{BENCHMARK}"


def test_names_that_are_no_text(tree):
    home = tree("open")
    (Path(os.fsdecode(os.fsencode(home) + b"/src/\xff\x1b[31m"))).write_text("x")
    finding = next(f for f in check(home).findings if f.rule == "MAN-EXTRA")
    assert finding.path.isprintable()


def test_the_tree_is_only_read(tree):
    home = tree("closed")
    before = {p: (p.stat().st_mtime_ns, sha256(p) if p.is_file() else None) for p in sorted(home.parent.rglob("*"))}
    check(home)
    assert before == {
        p: (p.stat().st_mtime_ns, sha256(p) if p.is_file() else None) for p in sorted(home.parent.rglob("*"))
    }


def test_a_system_whose_name_is_no_text(tree):
    """The official checker breaks off when it writes its table of results."""
    home = tree("open")
    name = os.fsdecode(b"B\xe9")
    (home / "results" / SYSTEM).rename(home / "results" / name)
    box(home).rename(home / "systems" / f"{name}.json")
    found = {f.severity.value: f.path for f in check(home).findings if f.rule == "TREE-NAME"}
    assert found == {"reject": r"open/Acme/results/B\udce9", "review": r"open/Acme/systems/B\udce9.json"}


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_any_file_cut_or_changed_gives_findings_and_no_traceback(whole_trees, data):
    division = data.draw(st.sampled_from(sorted(whole_trees)))
    source = whole_trees[division]
    files = sorted(p.relative_to(source) for p in source.rglob("*") if p.is_file())
    victim = data.draw(st.sampled_from(files))
    original = (source / victim).read_bytes()
    cut = data.draw(st.integers(0, len(original)))
    broken = bytearray(original[:cut])
    if broken and data.draw(st.booleans()):
        broken[data.draw(st.integers(0, len(broken) - 1))] = data.draw(st.integers(0, 255))
    (source / victim).write_bytes(bytes(broken))
    try:
        report = check_tree(source, PACK)
    finally:
        (source / victim).write_bytes(original)
    if bytes(broken) != original:
        assert report.findings
        assert report.verdict is Verdict.REJECT  # the manifest at the least has another hash


def nowhere(path: Path, other: Path) -> None:
    remove(path)


def moved(path: Path, other: Path) -> None:
    folder = other if other.is_dir() else other.parent
    if not folder.is_relative_to(path):
        path.rename(folder / f"{path.name}\n")


def doubled(path: Path, other: Path) -> None:
    if path.is_dir():
        shutil.copytree(path, path.with_name(f"{path.name}-2"))
    else:
        shutil.copy(path, path.with_name(f"{path.name}.copy"))


def replaced_by_a_folder(path: Path, other: Path) -> None:
    remove(path)
    path.mkdir()


def replaced_by_a_file(path: Path, other: Path) -> None:
    remove(path)
    path.write_text("?")


def replaced_by_a_link(path: Path, other: Path) -> None:
    remove(path)
    path.symlink_to(other)  # up, down, to itself or to nothing


SHUFFLES = [nowhere, moved, doubled, replaced_by_a_folder, replaced_by_a_file, replaced_by_a_link]


@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_any_shuffle_of_the_tree_gives_findings_and_no_traceback(whole_trees, tmp_path_factory, data):
    division = data.draw(st.sampled_from(sorted(whole_trees)))
    root = tmp_path_factory.mktemp("shuffled") / "tree"
    shutil.copytree(whole_trees[division], root)
    nodes = sorted(root.rglob("*"))
    data.draw(st.sampled_from(SHUFFLES))(data.draw(st.sampled_from(nodes)), data.draw(st.sampled_from(nodes)))
    assert check_tree(root, PACK).findings


@pytest.mark.shared
@pytest.mark.skipif(not REAL.exists(), reason="the shared data folder is not beside the repository")
def test_published_results_by_the_rules_of_their_round():
    """These copies lack READMEs, documents and source; but for what they claim of weights, no more is found."""
    report = check_tree(REAL, load("v6.0"))
    assert rules_of(report) == {"TREE-FILE", "TREE-SRC", "TREE-CALIBRATION", "TREE-BANDWIDTH", "CLAIM-WEIGHTS"}
    assert {f.path.rpartition("/")[2] for f in report.findings if f.rule == "TREE-FILE"} == {"README.md"}
    assert {f.rule for f in report.findings} - rules_of(report) == {"LG-VERSION", "LG-WARNINGS", "MAN-ABSENT"}
    assert [(r.metric.value, r.accuracy) for r in report.rows] == [
        (910468, 83.871),
        (956523, 83.043),
        (42.4736, 0.7879394631035838),
        (35.5625, 0.7874876598480153),
    ]


@pytest.mark.shared
@pytest.mark.skipif(not REAL.exists(), reason="the shared data folder is not beside the repository")
def test_published_results_by_the_rules_of_another_round():
    """Their round had other seeds, and audits that did not cover each row."""
    report = check_tree(REAL, PACK, "CoreWeave")
    missing = {"TREE-FILE", "TREE-SRC", "TREE-CALIBRATION", "TREE-BANDWIDTH"}
    assert rules_of(report) - missing == {"LG-SEEDS", "AUDIT-CONFIG", "AUDIT-COVERAGE"}
