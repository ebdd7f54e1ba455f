from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from harness.errors import MissingError
from harness.gate import Severity, Verdict, check_tree
from harness.gate.official import CHECKER, LOG, TABLE, OfficialVerdict, run_official
from harness.gate.row import ACCURACY_FOLDER, RUN
from harness.rules import load
from tests.gate import test_run
from tests.gate.made_tree import DETAIL, change_json, row, write
from tests.gate.test_tree import BREACHES, box, server
from tests.logs.loadgen_runs import edit

VARIABLE = "MLPERF_INFERENCE_DIR"
CLONE = os.environ.get(VARIABLE)
needs_clone = pytest.mark.skipif(not CLONE, reason=f"{VARIABLE} names no clone of mlcommons/inference")

HEAD = "Organization,Division,Platform,Model,Scenario,Result,Units,Accuracy,inferred"
ROW = '"Acme","open","Box","gpt-oss-120b","Server","42.5","Tokens/s","exact_match: 83.1","0"'
FAKE = """
import os, pathlib, sys
args = dict(zip(sys.argv[1::2], sys.argv[2::2]))
pathlib.Path("where").write_text(os.getcwd())
{body}
"""
WRITES = f"pathlib.Path(args['--csv']).write_text({HEAD!r} + chr(10) + {ROW!r} + chr(10))"
LOOKS_OK = "print('[x main.py:1 INFO] SUMMARY: submission looks OK', file=sys.stderr)"
HAS_ERRORS = (
    "print('[x a.py:1 ERROR] t/a has no src', file=sys.stderr);"
    "print('[x main.py:1 ERROR] SUMMARY: submission has errors', file=sys.stderr); sys.exit(1)"
)


@pytest.fixture
def fake_clone(tmp_path, monkeypatch):
    """Makes a clone whose checker does ``body``."""

    def make(body: str) -> Path:
        write(tmp_path / "clone" / CHECKER, FAKE.format(body=body))
        monkeypatch.setenv(VARIABLE, str(tmp_path / "clone"))
        return tmp_path / "clone"

    return make


def test_without_a_clone_it_did_not_run(tmp_path, monkeypatch):
    monkeypatch.delenv(VARIABLE, raising=False)
    report = run_official(tmp_path, "v6.1")
    assert (report.verdict, report.ran, report.findings()) == (OfficialVerdict.NOT_RUN, False, [])
    assert VARIABLE in report.detail


def test_a_folder_that_is_no_clone(tmp_path, monkeypatch):
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    with pytest.raises(MissingError, match="no submission checker"):
        run_official(tmp_path, "v6.1")


def test_acceptance_with_its_rows_log_and_table(fake_clone, tmp_path):
    fake_clone(f"{WRITES}\n{LOOKS_OK}\nprint(args['--version'], args['--input'], args['--submitter'])")
    report = run_official(tmp_path / "tree", "v6.1", "Acme", report_dir=tmp_path / "kept")
    assert (report.verdict, report.exit_code, report.findings()) == (OfficialVerdict.OK, 0, [])
    (row,) = report.rows
    assert (row.scenario, row.result, row.accuracy, row.inferred) == ("Server", "42.5", "exact_match: 83.1", "0")
    assert f"v6.1 {tmp_path / 'tree'} Acme" in (tmp_path / "kept" / LOG).read_text()
    assert report.table == tmp_path / "kept" / TABLE
    assert report.commit is None  # no git in a made-up clone
    assert not (tmp_path / "clone" / "where").exists()


@pytest.mark.parametrize(
    ("body", "verdict", "said"),
    [
        (f"{WRITES}\n{HAS_ERRORS}", OfficialVerdict.ERRORS, "t/a has no src"),
        (f"{LOOKS_OK}\nraise KeyError('misc')", OfficialVerdict.CRASHED, "KeyError: 'misc'"),
        ("sys.exit(0)", OfficialVerdict.CRASHED, "no output"),
        (f"{LOOKS_OK}\nsys.exit(1)", OfficialVerdict.CRASHED, "exit code 1"),
        (LOOKS_OK, OfficialVerdict.NO_ROWS, "no result"),
        (f"{LOOKS_OK}\npathlib.Path(args['--csv']).write_text({HEAD!r})", OfficialVerdict.NO_ROWS, "no result"),
        ("import time; time.sleep(60)", OfficialVerdict.CRASHED, "did not end within 1 s"),
    ],
)
def test_how_it_can_end(fake_clone, tmp_path, body, verdict, said):
    fake_clone(body)
    report = run_official(tmp_path, "v6.1", timeout_s=1)
    assert report.verdict is verdict
    (finding,) = report.findings()
    assert (finding.rule, finding.severity) == ("OFFICIAL-CHECKER", Severity.REJECT)
    assert said in finding.found


def test_a_table_of_an_earlier_run_is_never_taken_for_this_one(fake_clone, tmp_path):
    fake_clone(f"{WRITES}\n{LOOKS_OK}")
    assert run_official(tmp_path, "v6.1", report_dir=tmp_path / "kept").rows
    fake_clone("raise KeyError('misc')")
    report = run_official(tmp_path, "v6.1", report_dir=tmp_path / "kept")
    assert (report.rows, report.table) == ((), None)
    assert not (tmp_path / "kept" / TABLE).exists()


def test_a_report_folder_that_cannot_be_made(fake_clone, tmp_path):
    fake_clone(f"{WRITES}\n{LOOKS_OK}")
    write(tmp_path / "file", "x")
    with pytest.raises(MissingError, match="cannot write"):
        run_official(tmp_path, "v6.1", report_dir=tmp_path / "file" / "kept")


@needs_clone
@pytest.mark.parametrize("division", ["open", "closed"])
def test_the_real_checker_accepts_what_the_gate_accepts(tree, division, monkeypatch):
    monkeypatch.setenv(VARIABLE, str(CLONE))
    root = tree(division).parent.parent
    report, official = check_tree(root, load("v6.1")), run_official(root, "v6.1")
    assert (report.verdict, official.verdict) == (Verdict.PASS, OfficialVerdict.OK)
    assert [official.accepts(row.place) for row in report.rows] == [True, True]
    for ours, theirs in zip(report.rows, official.rows, strict=True):
        assert float(theirs.result) == pytest.approx(ours.metric.value)
        assert (theirs.units, theirs.inferred) == (ours.metric.units, "0")
        assert theirs.accuracy == f"exact_match: {ours.accuracy:.3f}"
    assert len(official.commit.removesuffix("-dirty")) == 40


@needs_clone
def test_the_real_checker_s_errors_and_crashes(tree, monkeypatch):
    monkeypatch.setenv(VARIABLE, str(CLONE))
    home = tree("open")
    (server(home) / "README.md").unlink()
    assert run_official(home.parent.parent, "v6.1").verdict is OfficialVerdict.ERRORS
    change_json(box(home), number_of_nodes="two")
    assert run_official(home.parent.parent, "v6.1").verdict is OfficialVerdict.CRASHED
    assert run_official(home.parent.parent, "v6.1", "Acne").verdict is OfficialVerdict.NO_ROWS


def in_tree(scenario, leg, changes):
    """A change of a run's detail log as a change of a tree."""
    folder = RUN if leg == "performance" else ACCURACY_FOLDER
    return lambda home: edit(row(home, scenario) / folder / DETAIL, **changes)


CHANGES = [(name, change) for name, _, change, _, _ in BREACHES] + [
    (f"{rule} {number}", in_tree(scenario, leg, changes))
    for number, (scenario, leg, changes, rule) in enumerate(test_run.BREACHES)
]


@needs_clone
@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
@pytest.mark.parametrize("division", ["open", "closed"])
def test_the_gate_is_never_milder_than_the_real_checker(whole_trees, tmp_path, monkeypatch, division, part):
    """Every change that the gate's tests make, in both divisions: what the checker refuses, the gate rejects."""
    monkeypatch.setenv(VARIABLE, str(CLONE))
    milder, refused = [], 0
    for name, change in CHANGES[part::4]:
        root = tmp_path / name
        home = root / division / "Acme"
        shutil.copytree(whole_trees[division], root)
        try:
            change(home)
        except OSError:  # a change of what only the other division has
            continue
        (home / "MANIFEST.json").unlink(missing_ok=True)  # it would tell of any change
        official = run_official(root, "v6.1")
        refused += official.verdict is not OfficialVerdict.OK
        if official.verdict is not OfficialVerdict.OK and check_tree(root, load("v6.1")).verdict is not Verdict.REJECT:
            milder.append(f"{name}: {official.verdict.value}: {official.detail}: {official.errors}")
    assert milder == []
    assert refused > 5
