from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.errors import ConfigError, UnknownName
from harness.gate import Severity, TreeReport, Verdict, check_tree
from harness.rules import load
from tests.gate.made_tree import (
    BENCHMARK,
    DETAIL,
    SUMMARY,
    SYSTEM,
    change_json,
    make_tree,
    remake_manifest,
    remove,
    row,
    sha256,
    write,
)
from tests.logs.loadgen_runs import edit

PACK = load("v6.1")
REAL = Path(__file__).parents[3] / "shared" / "data" / "real_v6.0"


def check(home: Path) -> TreeReport:
    return check_tree(home.parent.parent, PACK)


def rules_of(report: TreeReport) -> set[str]:
    return {f.rule for f in report.findings if f.severity is not Severity.NOTE}


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


def server(home: Path) -> Path:
    return row(home, "Server")


def box(home: Path) -> Path:
    return home / "systems" / f"{SYSTEM}.json"


def accuracy_text(home: Path) -> Path:
    return server(home) / "accuracy" / "accuracy.txt"


def manifest(home: Path) -> Path:
    return home / "MANIFEST.json"


def replace(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def in_manifest(home: Path, change: Callable[[dict], None]) -> None:
    data = json.loads(manifest(home).read_text())
    change(data)
    manifest(home).write_text(json.dumps(data))


def append(path: Path, line: bytes) -> None:
    with path.open("ab") as file:
        file.write(line + b"\n")


# Each breaks a tree in one place: division, the change, the rule, its severity.
BREACHES: list[tuple[str, str, Callable[[Path], object], str, str]] = [
    ("link", "open", lambda h: (h / "README.md").symlink_to("/etc/hostname"), "TREE-LINK", "reject"),
    ("link to a folder", "open", lambda h: (h / "src" / "more").symlink_to(h), "TREE-LINK", "reject"),
    ("link as submitter", "open", lambda h: (h.parent / "Other").symlink_to(h), "TREE-LINK", "reject"),
    ("link as division", "open", lambda h: (h.parent.parent / "closed").symlink_to(h.parent), "TREE-LINK", "reject"),
    ("fifo", "open", lambda h: os.mkfifo(h / "src" / "pipe"), "TREE-SPECIAL-FILE", "reject"),
    ("dot name", "open", lambda h: write(h / "src" / ".cache", "x"), "TREE-NAME", "review"),
    ("blank in a name", "open", lambda h: write(h / "src" / "a b.py", "x"), "TREE-NAME", "review"),
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
    (
        "two values of a key",
        "open",
        lambda h: append(
            server(h) / "performance" / "run_1" / DETAIL,
            b':::MLLOG {"key": "effective_schedule_rng_seed", "value": 1,'
            b' "metadata": {"is_error": false, "is_warning": false}}',
        ),
        "LG-CONTRADICTION",
        "reject",
    ),
    ("no UTF-8 in a log", "open", lambda h: append(server(h) / "accuracy" / DETAIL, b"\xff"), "LG-LOG", "reject"),
    (
        "power that is not measured",
        "open",
        lambda h: write(server(h) / "performance" / "power" / "x", "x"),
        "TREE-POWER",
        "reject",
    ),
    ("bad power file", "open", lambda h: write(h / "systems" / f"{SYSTEM}_power.yaml", "a: ["), "SYS-POWER", "reject"),
    (
        "half a character",
        "open",
        lambda h: replace(box(h), '"some system_name"', '"\\ud800"'),
        "SYS-JSON",
        "reject",
    ),
    ("notes that are a number", "open", lambda h: change_json(box(h), sw_notes=5), "SYS-VALUE", "reject"),
    (
        "verdict of an audit by another name",
        "closed",
        lambda h: (server(h) / "TEST09" / "verify_output_len.txt").rename(server(h) / "TEST09" / "verify_accuracy.txt"),
        "AUDIT-MISSING",
        "reject",
    ),
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
    ("unused system", "open", lambda h: write(h / "systems" / "Other.json", "{}"), "TREE-UNUSED-SYSTEM", "review"),
    (
        "unknown benchmark",
        "open",
        lambda h: server(h).parent.rename(server(h).parent.parent / "gpt-oss"),
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
    ("no README", "open", lambda h: remove(server(h) / "README.md"), "TREE-FILE", "reject"),
    ("no detail log", "open", lambda h: remove(server(h) / "performance" / "run_1" / DETAIL), "TREE-FILE", "reject"),
    (
        "README a folder",
        "open",
        lambda h: (remove(server(h) / "README.md"), (server(h) / "README.md").mkdir()),
        "TREE-FILE",
        "reject",
    ),
    ("empty user.conf", "open", lambda h: write(server(h) / "user.conf", ""), "TREE-FILE-EMPTY", "reject"),
    (
        "empty accuracy log",
        "open",
        lambda h: write(server(h) / "accuracy" / "mlperf_log_accuracy.json", ""),
        "TREE-FILE-EMPTY",
        "reject",
    ),
    (
        "second run",
        "open",
        lambda h: write(server(h) / "performance" / "run_2" / DETAIL, "x"),
        "TREE-EXTRA-RUN",
        "review",
    ),
    (
        "one detail log of two",
        "open",
        lambda h: remove(server(h) / "accuracy" / DETAIL),
        "ROW-LAYOUT",
        "reject",
    ),
    (
        "no file of a run",
        "open",
        lambda h: [remove(server(h) / name) for name in ("performance", "accuracy")],
        "ROW-LAYOUT",
        "reject",
    ),
    (
        "reports of both clients",
        "open",
        lambda h: write(server(h) / "config.yaml", "type: online\n"),
        "ROW-LAYOUT",
        "review",
    ),
    ("power in a file", "open", lambda h: write(server(h) / "performance" / "power", "x"), "TREE-POWER", "reject"),
    ("no audit", "closed", lambda h: remove(server(h) / "TEST07"), "AUDIT-MISSING", "reject"),
    (
        "audit failed",
        "closed",
        lambda h: write(server(h) / "TEST09" / "verify_output_len.txt", "no TEST PASS today"),
        "AUDIT-VERDICT",
        "reject",
    ),
    ("no system file", "open", lambda h: remove(box(h)), "SYS-JSON", "reject"),
    ("system no JSON", "open", lambda h: write(box(h), "{"), "SYS-JSON", "reject"),
    ("system a list", "open", lambda h: write(box(h), "[]"), "SYS-JSON", "reject"),
    ("system nested without end", "open", lambda h: write(box(h), "[" * 100_000), "SYS-JSON", "reject"),
    ("system not UTF-8", "open", lambda h: box(h).write_bytes(b"\xff\xfe{}"), "SYS-JSON", "reject"),
    ("field absent", "open", lambda h: change_json(box(h), cooling=...), "SYS-FIELD", "reject"),
    ("field empty", "open", lambda h: change_json(box(h), cooling=""), "SYS-EMPTY", "reject"),
    ("number 0", "open", lambda h: change_json(box(h), accelerators_per_node=0), "SYS-EMPTY", "reject"),
    ("field a list", "open", lambda h: change_json(box(h), framework=["a"]), "SYS-VALUE", "reject"),
    ("double quote", "open", lambda h: change_json(box(h), framework='a "b"'), "SYS-QUOTE", "review"),
    ("not a number", "open", lambda h: change_json(box(h), number_of_nodes="two"), "SYS-NUMBER", "reject"),
    ("system_type", "open", lambda h: change_json(box(h), system_type="datacenter, edge"), "SYS-TYPE", "reject"),
    ("edge in closed", "closed", lambda h: change_json(box(h), system_type="edge"), "SYS-CATEGORY", "reject"),
    ("edge in open", "open", lambda h: change_json(box(h), system_type="edge"), "SYS-CATEGORY", "review"),
    ("status", "open", lambda h: change_json(box(h), status="cloud"), "SYS-STATUS", "reject"),
    ("status in capitals", "open", lambda h: change_json(box(h), status="Available"), "SYS-STATUS", "review"),
    ("division", "open", lambda h: change_json(box(h), division="closed"), "SYS-DIVISION", "reject"),
    ("submitter", "open", lambda h: change_json(box(h), submitter="Other"), "SYS-SUBMITTER", "reject"),
    ("submitter a list", "open", lambda h: change_json(box(h), submitter=["Acme"]), "SYS-SUBMITTER", "reject"),
    ("is_network", "open", lambda h: change_json(box(h), is_network=False), "SYS-IS-NETWORK", "reject"),
    ("measurements no JSON", "open", lambda h: write(server(h) / "measurements.json", "no"), "MEAS-JSON", "reject"),
    (
        "measurements empty",
        "open",
        lambda h: change_json(server(h) / "measurements.json", retraining=False),
        "MEAS-FIELD",
        "reject",
    ),
    (
        "measurements absent",
        "open",
        lambda h: change_json(server(h) / "measurements.json", retraining=...),
        "MEAS-FIELD",
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
        "reject",
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
    (
        "accuracy log cut",
        "open",
        lambda h: write(server(h) / "accuracy" / "mlperf_log_accuracy.json", "[\n{ ]"),
        "LG-LOG",
        "reject",
    ),
    (
        "LoadGen versions",
        "open",
        lambda h: edit(server(h) / "accuracy" / DETAIL, loadgen_version="6.0.16 @ d6147c7eb7"),
        "ROW-VERSIONS",
        "review",
    ),
    (
        "INVALID",
        "open",
        lambda h: edit(server(h) / "performance" / "run_1" / DETAIL, result_validity="INVALID"),
        "LG-VALID",
        "reject",
    ),
    (
        "accuracy log of Offline",
        "open",
        lambda h: edit(server(h) / "accuracy" / DETAIL, effective_scenario="Offline"),
        "LG-SCENARIO",
        "reject",
    ),
    (
        "detail log cut",
        "open",
        lambda h: (server(h) / "accuracy" / DETAIL).write_bytes((server(h) / "accuracy" / DETAIL).read_bytes()[:9000]),
        "LG-LOG",
        "reject",
    ),
    ("summary no text", "open", lambda h: write(server(h) / "accuracy" / SUMMARY, "hello\n"), "LG-SUMMARY", "reject"),
    (
        "unlabelled stand-in",
        "open",
        lambda h: write(server(h) / "README.md", "on a stand-in data set\n"),
        "MARK-STAND-IN",
        "reject",
    ),
    ("unlabelled notes", "open", lambda h: change_json(box(h), sw_notes="scripted engine"), "MARK-STAND-IN", "reject"),
    ("label without flag", "open", lambda h: write(h / "DEMONSTRATION", "no result\n"), "MARK-LABEL", "reject"),
    ("manifest no JSON", "open", lambda h: write(manifest(h), "{"), "MAN-JSON", "reject"),
    ("manifest without files", "open", lambda h: change_json(manifest(h), files=7), "MAN-JSON", "reject"),
    ("manifest of strings", "open", lambda h: change_json(manifest(h), rows=["a"]), "MAN-JSON", "reject"),
    (
        "manifest entry",
        "open",
        lambda h: in_manifest(h, lambda m: m["files"].append({"path": 3})),
        "MAN-JSON",
        "reject",
    ),
    ("edited file", "open", lambda h: write(server(h) / "README.md", "edited\n"), "MAN-HASH", "reject"),
    ("listed file gone", "open", lambda h: remove(h / "src" / BENCHMARK / "main.py"), "MAN-FILE", "reject"),
    (
        "listed file outside",
        "open",
        lambda h: in_manifest(h, lambda m: m["files"].append({"path": "../../../x", "sha256": "0"})),
        "MAN-FILE",
        "reject",
    ),
    ("unlisted file", "open", lambda h: write(h / "src" / "new.py", "x"), "MAN-EXTRA", "review"),
    ("manifest of another round", "open", lambda h: change_json(manifest(h), round="v6.0"), "MAN-ROUND", "reject"),
    ("manifest lacks a row", "open", lambda h: in_manifest(h, lambda m: m["rows"].pop()), "MAN-ROW", "review"),
    (
        "manifest has a row too many",
        "open",
        lambda h: in_manifest(h, lambda m: m["rows"].append({"scenario": "x"})),
        "MAN-ROW",
        "review",
    ),
    (
        "legs of two fingerprints",
        "open",
        lambda h: in_manifest(h, lambda m: m["rows"][0]["legs"][0].update(fingerprint="0")),
        "ROW-FINGERPRINT",
        "reject",
    ),
    (
        "rows of two fingerprints",
        "open",
        lambda h: in_manifest(h, lambda m: m["rows"].append({**m["rows"][0], "fingerprint": "0"})),
        "ROW-FINGERPRINT",
        "reject",
    ),
]


@pytest.mark.parametrize(
    ("division", "change", "rule", "severity"),
    [b[1:] for b in BREACHES],
    ids=[b[0].replace(" ", "-") for b in BREACHES],
)
def test_one_change_breaks_a_rule(tree, division, change, rule, severity):
    home = tree(division)
    change(home)
    report = check(home)
    assert {f.severity.value for f in report.findings if f.rule == rule} == {severity}
    assert report.verdict.value == severity or "reject" in {f.severity.value for f in report.findings}


def test_a_rule_is_broken_alone_once_the_manifest_is_made_again(tree):
    home = tree("open")
    write(server(home) / "user.conf", "")
    remake_manifest(home)
    assert rules_of(check(home)) == {"TREE-FILE-EMPTY"}


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


def test_a_tree_without_manifest_is_noted(tree):
    home = tree("open")
    remove(manifest(home))
    report = check(home)
    assert rules_of(report) == set()
    assert "MAN-ABSENT" in {f.rule for f in report.findings}


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


def test_own_names_of_benchmarks_in_open(tree):
    home = tree("open")
    server(home).parent.rename(server(home).parent.parent / "my-model")
    write(home / "model_mapping.json", json.dumps({"my-model": BENCHMARK}))
    assert len(check(home).rows) == 2
    write(home / "model_mapping.json", json.dumps({"my-model": ["x"]}))
    assert "TREE-BENCHMARK" in rules_of(check(home))
    write(home / "model_mapping.json", "[")
    assert "TREE-BENCHMARK" in rules_of(check(home))


def test_the_nearest_name_is_offered(tree):
    home = tree("open")
    server(home).rename(server(home).parent / "server")
    finding = next(f for f in check(home).findings if f.rule == "TREE-SCENARIO")
    assert "did you mean 'Server'?" in finding.mend


def test_a_system_s_findings_are_its_rows(tree):
    home = tree("open")
    change_json(box(home), cooling="")
    remake_manifest(home)
    assert {r.verdict for r in check(home).rows} == {Verdict.REJECT}


def test_a_row_knows_what_concerns_it(tree):
    home = tree("open")
    write(server(home) / "user.conf", "")
    remake_manifest(home)
    assert [r.verdict for r in check(home).rows] == [Verdict.PASS, Verdict.REJECT]
    write(home / "src" / "new.py", "x")
    assert [r.verdict for r in check(home).rows] == [Verdict.REVIEW, Verdict.REJECT]


def test_a_missing_scenario_rejects_the_others(tree):
    home = tree("closed")
    remove(server(home))
    (offline,) = check(home).rows
    assert offline.verdict is Verdict.REJECT


def test_one_submitter_of_two(tree, loadgen_runs):
    home = tree("open")
    other = make_tree(home.parent.parent, loadgen_runs, "closed")
    remove(other / "src")
    root = home.parent.parent
    assert check_tree(root, PACK, "Acme").verdict is Verdict.REJECT
    other.rename(other.with_name("Bad"))
    assert check_tree(root, PACK, "Acme").verdict is Verdict.PASS
    assert check_tree(root, PACK, "Bad").verdict is Verdict.REJECT


@pytest.mark.parametrize(
    "make", [lambda p: None, lambda p: p.mkdir(), lambda p: (p / "open").mkdir(parents=True), lambda p: write(p, "x")]
)
def test_nothing_to_check(tmp_path, make):
    make(tmp_path / "tree")
    with pytest.raises(ConfigError, match="nothing to check") as caught:
        check_tree(tmp_path / "tree", PACK)
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
    try:
        report = check_tree(root, PACK)
    except ConfigError as error:
        assert "nothing to check" in str(error)
    else:
        assert report.findings


@pytest.mark.shared
@pytest.mark.skipif(not REAL.exists(), reason="the shared data folder is not beside the repository")
def test_published_results_of_another_round():
    """These copies lack READMEs, documents and source, and their round had other seeds: no more is found."""
    report = check_tree(REAL, PACK, "CoreWeave")
    assert rules_of(report) == {"LG-SEEDS", "TREE-FILE", "TREE-SRC", "TREE-CALIBRATION", "TREE-BANDWIDTH"}
    assert {f.path.rpartition("/")[2] for f in report.findings if f.rule == "TREE-FILE"} == {"README.md"}
    assert [(r.metric.value, r.accuracy) for r in report.rows] == [(910468, 83.871), (956523, 83.043)]
