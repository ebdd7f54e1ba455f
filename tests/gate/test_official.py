from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from harness.gate import Verdict, check_tree
from harness.gate.official import LOG, TABLE, OfficialVerdict, RowVerdict, run_official
from harness.gate.row_layout import ACCURACY_FOLDER, RUN
from harness.rules import load
from tests.gate import test_run
from tests.gate.fake_checker import CLONE, CRASHES, HAS_ERRORS, LOOKS_OK, VARIABLE, make_clone, needs_clone
from tests.gate.made_tree import DETAIL, change_json, row, write
from tests.gate.real_checker import compare
from tests.gate.tree_changes import box, every_breach, server
from tests.logs.loadgen_runs import edit

OFFLINE, SERVER = (f"open/Acme/results/Box/gpt-oss-120b/{scenario}" for scenario in ("Offline", "Server"))


@pytest.fixture
def clone(tmp_path, monkeypatch):
    """Makes a clone whose checker runs a body."""

    def make(*body: str, rounds: tuple[str, ...] = ("v6.0", "v6.1")) -> Path:
        monkeypatch.setenv(VARIABLE, str(tmp_path / "clone"))
        return make_clone(tmp_path / "clone", "\n".join(body), rounds)

    return make


@pytest.fixture
def empty(tmp_path):
    """A tree that fake checkers do not look at."""
    (tmp_path / "trees" / "a tree").mkdir(parents=True)
    return tmp_path / "trees" / "a tree"


def test_without_a_clone_it_did_not_run(empty, monkeypatch):
    monkeypatch.delenv(VARIABLE, raising=False)
    report = run_official(empty, "v6.1")
    assert (report.verdict, report.ran) == (OfficialVerdict.NOT_RUN, False)
    assert VARIABLE in report.detail


@pytest.mark.parametrize("name", ["", "absent", "x" * 300])
def test_a_variable_that_names_no_clone(empty, tmp_path, monkeypatch, name):
    monkeypatch.setenv(VARIABLE, str(tmp_path / name))
    report = run_official(empty, "v6.1")
    assert (report.verdict, report.ran, report.clone) == (OfficialVerdict.UNUSABLE, False, tmp_path / name)
    assert "the clone has no tools/submission/submission_checker/main.py" in report.detail


def test_a_clone_that_does_not_know_the_round(clone, empty):
    clone(LOOKS_OK, rounds=("v5.1", "v6.0"))
    report = run_official(empty, "v6.1")
    assert (report.verdict, report.exit_code) == (OfficialVerdict.UNUSABLE, 2)
    assert "does not know the round: invalid choice: 'v6.1'" in report.detail
    assert run_official(empty, "v6.0").verdict is OfficialVerdict.NO_TABLE


def test_a_usage_error_that_is_not_about_the_round_is_a_crash(clone, empty):
    clone("parser.error('no such flag')")
    report = run_official(empty, "v6.1")
    assert (report.verdict, report.exit_code) == (OfficialVerdict.CRASHED, 2)
    assert "no such flag" in report.detail


def test_acceptance_with_its_rows_log_and_table(clone, empty, tmp_path):
    where = "pathlib.Path('where').write_text(os.getcwd())"
    told = "print(args.version, os.path.realpath(args.input), args.submitter)"
    clone(where, f"accept({SERVER!r})", told, LOOKS_OK)
    report = run_official(empty, "v6.1", "-A cme", report_dir=tmp_path / "kept here")
    assert (report.verdict, report.exit_code, report.errors) == (OfficialVerdict.OK, 0, ())
    (row,) = report.rows
    assert row.location == f"{SERVER}/performance/run_1"
    assert (row.result, row.units, row.accuracy, row.inferred) == ("42.5", "Tokens/s", "exact_match: 83.1", "0")
    assert f"v6.1 {empty} -A cme" in (tmp_path / "kept here" / LOG).read_text()
    assert report.table == tmp_path / "kept here" / TABLE
    assert report.commit is None  # no git in a made-up clone
    assert not [*tmp_path.rglob("where")]
    assert not [*empty.iterdir()]


@pytest.mark.parametrize("name", ["with blanks", "br{ac}es", "quo'te\"s", "per%cent", "ünïcode"])
def test_a_tree_of_any_name_relative_or_not(clone, tmp_path, monkeypatch, name):
    (tmp_path / name / "open").mkdir(parents=True)
    clone("print(os.listdir('{}/'.format(args.input)), os.path.realpath(args.input))", LOOKS_OK)
    monkeypatch.chdir(tmp_path)
    for tree in (Path(name), tmp_path / name, Path(name) / "open" / ".."):
        run_official(tree, "v6.1", report_dir=tmp_path / "kept")
        assert f"['open'] {tmp_path / name}" in (tmp_path / "kept" / LOG).read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("body", "verdict", "said"),
    [
        (["accept()", f"refuse({SERVER!r}, 'is slow')", HAS_ERRORS], OfficialVerdict.ERRORS, "has errors (0 rows"),
        ([HAS_ERRORS], OfficialVerdict.ERRORS, "has errors (0 rows"),
        ([LOOKS_OK, "def look(): raise KeyError('misc')", "look()"], OfficialVerdict.CRASHED, "KeyError: 'misc'"),
        (["sys.exit(0)"], OfficialVerdict.CRASHED, "exit code 0, last line: no output"),
        ([LOOKS_OK, "sys.exit(1)"], OfficialVerdict.CRASHED, "exit code 1"),
        (["say('ERROR', 'SUMMARY: submission has errors')"], OfficialVerdict.CRASHED, "exit code 0"),
        (["os.kill(os.getpid(), 9)"], OfficialVerdict.CRASHED, "killed by SIGKILL"),
        (["import time; time.sleep(60)"], OfficialVerdict.CRASHED, "did not end within 1 s"),
        ([LOOKS_OK], OfficialVerdict.NO_TABLE, "wrote no table"),
        (["accept()", LOOKS_OK], OfficialVerdict.NO_ROWS, "no result"),
        (["pathlib.Path(args.csv).write_text('')", LOOKS_OK], OfficialVerdict.NO_ROWS, "no result"),
    ],
)
def test_how_it_can_end(clone, empty, body, verdict, said):
    clone(*body)
    report = run_official(empty, "v6.1", timeout_s=1 if "sleep" in body[0] else 60)
    assert report.verdict is verdict
    assert said in report.detail


def test_a_crash_tells_the_exception_and_where_it_was_raised(clone, empty):
    clone("say('ERROR', 'before')", "def look():", "    raise KeyError('a' + chr(10) + 'b')", "look()")
    report = run_official(empty, "v6.1")
    place = r"KeyError: 'a\nb', raised in tools/submission/submission_checker/main.py:"
    assert place in report.detail
    assert report.detail.endswith("(look)")
    assert report.errors == ("before",)


def test_its_errors_are_told_by_paths_within_the_tree(clone, empty):
    clone(f"refuse({SERVER!r}, 'is slow, see subtree/x')", "say('ERROR', '[' + args.input + '/open]')", HAS_ERRORS)
    report = run_official(empty, "v6.1")
    assert report.errors == (f"{SERVER}/performance/run_1/mlperf_log_detail.txt is slow, see subtree/x", "[open]")
    assert report.refused == (f"{SERVER}/performance/run_1/mlperf_log_detail.txt",)


def test_it_reads_and_writes_utf_8_whatever_the_locale(clone, empty, monkeypatch):
    settings = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONWARNINGS": "error"}
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    clone("assert open(__file__).encoding.lower().replace('-', '') == 'utf8'", "accept()", LOOKS_OK)
    assert run_official(empty, "v6.1").verdict is OfficialVerdict.NO_ROWS


def test_tables_of_earlier_runs_are_never_taken_for_this_one(clone, empty, tmp_path, monkeypatch):
    clone(f"accept({SERVER!r})", LOOKS_OK)
    assert run_official(empty, "v6.1", report_dir=tmp_path / "kept").rows
    table = (tmp_path / "kept" / TABLE).read_text()
    for folder in (empty, empty.parent, tmp_path):
        write(folder / "summary.csv", table)
        write(folder / TABLE, table)
    monkeypatch.chdir(empty.parent)
    clone("assert not os.path.exists('summary.csv') and not os.path.exists(args.csv)", LOOKS_OK)
    report = run_official(empty, "v6.1", report_dir=tmp_path / "kept")
    assert (report.verdict, report.rows, report.table) == (OfficialVerdict.NO_TABLE, (), None)
    assert not (tmp_path / "kept" / TABLE).exists()
    assert (empty / "summary.csv").read_text() == table
    clone(CRASHES)
    assert run_official(empty, "v6.1", report_dir=tmp_path / "kept").rows == ()


def test_where_it_does_not_run_no_log_of_an_earlier_run_is_left(clone, empty, tmp_path, monkeypatch):
    clone(f"accept({SERVER!r})", LOOKS_OK)
    run_official(empty, "v6.1", report_dir=tmp_path / "kept")
    write(tmp_path / "kept" / "mine.txt", "x")
    monkeypatch.delenv(VARIABLE)
    report = run_official(empty, "v6.1", report_dir=tmp_path / "kept")
    assert (report.verdict, report.log) == (OfficialVerdict.NOT_RUN, None)
    assert [path.name for path in (tmp_path / "kept").iterdir()] == ["mine.txt"]


def test_a_report_folder_that_cannot_be_made_loses_nothing(clone, empty, tmp_path):
    clone(f"accept({SERVER!r})", LOOKS_OK)
    write(tmp_path / "file", "x")
    report = run_official(empty, "v6.1", report_dir=tmp_path / "file" / "kept")
    assert (report.verdict, len(report.rows), report.log) == (OfficialVerdict.OK, 1, None)
    assert report.not_kept == "Not a directory"


def test_scratch_files_never_lie_in_the_tree(clone, empty, monkeypatch):
    clone(LOOKS_OK)
    monkeypatch.setattr("tempfile.tempdir", str(empty))
    report = run_official(empty, "v6.1")
    assert (report.verdict, "TMPDIR" in report.detail) == (OfficialVerdict.UNUSABLE, True)
    assert not [*empty.iterdir()]


def test_no_room_for_scratch_files(clone, empty, tmp_path, monkeypatch):
    clone(LOOKS_OK)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "absent"))
    report = run_official(empty, "v6.1")
    assert (report.verdict, "No such file" in report.detail) == (OfficialVerdict.UNUSABLE, True)


@needs_clone
@pytest.mark.parametrize("division", ["open", "closed"])
def test_the_real_checker_accepts_what_the_gate_accepts(tree, division, monkeypatch):
    monkeypatch.setenv(VARIABLE, str(CLONE))
    root = tree(division).parent.parent
    report, official = check_tree(root, load("v6.1")), run_official(root, "v6.1")
    assert (report.verdict, official.verdict) == (Verdict.PASS, OfficialVerdict.OK)
    assert [official.of(row.place) for row in report.rows] == [RowVerdict.ACCEPTS] * 2
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
    refusal = run_official(home.parent.parent, "v6.1")
    places = [row.place for row in check_tree(home.parent.parent, load("v6.1")).rows]
    assert refusal.verdict is OfficialVerdict.ERRORS
    assert [refusal.of(place) for place in places] == [RowVerdict.ACCEPTS, RowVerdict.REFUSES]
    assert any("README.md" in error for error in refusal.errors_of(places[1]))
    assert refusal.errors_of(places[0]) == ()
    change_json(box(home), number_of_nodes="two")
    crash = run_official(home.parent.parent, "v6.1")
    assert crash.verdict is OfficialVerdict.CRASHED
    assert "raised in tools/submission/submission_checker/" in crash.detail
    assert run_official(home.parent.parent, "v6.1", "Acne").verdict is OfficialVerdict.NO_ROWS
    assert run_official(home.parent.parent, "v9.9").verdict is OfficialVerdict.UNUSABLE


def in_tree(scenario, leg, changes):
    """A change of a run's detail log as a change of a tree."""
    folder = RUN if leg == "performance" else ACCURACY_FOLDER
    return lambda home: edit(row(home, scenario) / folder / DETAIL, **changes)


CHANGES = [(name, change) for name, _, change, _, _ in every_breach()] + [
    (f"{rule} {number}", in_tree(scenario, leg, changes))
    for number, (scenario, leg, changes, rule) in enumerate(test_run.BREACHES)
]


@needs_clone
@pytest.mark.slow
@pytest.mark.parametrize("division", ["open", "closed"])
def test_the_gate_is_never_milder_than_the_real_checker(whole_trees, tmp_path, division):
    """Every change that the gate's tests make, in both divisions: what the checker refuses, the gate rejects."""
    trees = {}
    for number, (name, change) in enumerate(CHANGES):
        root = tmp_path / str(number) / "tree"  # some changes are beside the tree
        home = root / division / "Acme"
        shutil.copytree(whole_trees[division], root)
        try:
            change(home)
        except OSError:  # a change of what only the other division has
            continue
        (home / "MANIFEST.json").unlink(missing_ok=True)  # it would tell of any change
        trees[f"{name} {number}"] = root
    milder, refused = compare(trees, "v6.1")
    assert milder == []
    assert refused > 20
