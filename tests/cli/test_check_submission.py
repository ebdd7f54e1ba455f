from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from harness import __version__
from harness.cli import check_submission
from harness.cli.check_submission import FINDINGS_JSON, FINDINGS_TXT, run
from harness.errors import ConfigError, MissingError, UnknownName
from harness.gate.official import CHECKER, LOG, TABLE
from harness.rules import load
from tests.gate.conftest import whole_trees
from tests.gate.fake_checker import CRASHES, HAS_ERRORS, LOOKS_OK, VARIABLE, make_clone
from tests.gate.made_tree import BENCHMARK, write
from tests.logs.loadgen_runs import loadgen_runs

__all__ = ["loadgen_runs", "whole_trees"]

ROOT = Path(__file__).parents[2]
OFFLINE, SERVER = (f"open/Acme/results/Box/{BENCHMARK}/{scenario}" for scenario in ("Offline", "Server"))


@pytest.fixture
def root(whole_trees, tmp_path, monkeypatch):
    monkeypatch.delenv(VARIABLE, raising=False)
    return shutil.copytree(whole_trees["open"], tmp_path / "a tree")


@pytest.fixture
def clone(tmp_path, monkeypatch):
    """Makes a clone whose checker runs a body."""

    def make(*body, **options):
        monkeypatch.setenv(VARIABLE, str(make_clone(tmp_path / "clone", "\n".join(body), **options)))

    return make


def readme(root):
    return root / SERVER / "README.md"


def content(root):
    """Everything in a tree, with the time of its last change."""
    return {path: path.lstat().st_mtime_ns for path in sorted(root.rglob("*"))} | {root: root.stat().st_mtime_ns}


def report_in(path):
    return json.loads(path.read_text())


def test_a_clean_tree(root, capsys):
    before = content(root)
    assert run(["--input", str(root)]) == 0
    out = capsys.readouterr().out.splitlines()
    assert out[0] == "open/Acme/Box"
    assert [line.split()[:4] for line in out[2:4]] == [
        [BENCHMARK, scenario, "loadgen", "pass"] for scenario in ("Offline", "Server")
    ]
    assert any(line.startswith("gate v6.1: pass (0 reject, 0 review, ") for line in out)
    assert f"official checker: not run: {VARIABLE} is not set" in out
    assert content(root) == before


def test_a_tree_that_is_rejected(root, capsys):
    readme(root).unlink()
    assert run(["--input", str(root), "--submitter", "Acme"]) == 1
    out = capsys.readouterr().out
    assert out.index("open/Acme/Box") < out.index("gate v6.1: reject") < out.index("TREE-FILE")
    assert "Server/README.md: no such file" in out
    assert "mend:" in out


def test_many_places_of_one_rule_are_counted(root, tmp_path, capsys):
    for i in range(25):
        write(root / "open" / "Acme" / "src" / f"{i}.py", "x")
    assert run(["--input", str(root), "--report-dir", str(tmp_path / "kept")]) == 0  # reviews alone
    assert "and 5 more" in capsys.readouterr().out
    text = (tmp_path / "kept" / FINDINGS_TXT).read_text()
    assert "more" not in text
    assert all(f"/src/{i}.py: " in text for i in range(25))


def test_json_has_it_all(root, tmp_path):
    readme(root).unlink()
    assert run(["--input", str(root), "--json", str(tmp_path / "out" / "report.json")]) == 1
    report = report_in(tmp_path / "out" / "report.json")
    assert (report["schema_version"], report["harness_version"]) == (2, __version__)
    assert (report["verdict"], report["exit_code"], report["round"]) == ("reject", 1, "v6.1")
    assert report["official"]["verdict"] == "not run"
    assert [row["verdict"] for row in report["rows"]] == ["pass", "reject"]
    assert [row["folder"] for row in report["rows"]] == [OFFLINE, SERVER]
    assert {row["layout"] for row in report["rows"]} == {"loadgen"}
    assert report["rows"][0]["metric"]["units"] == "Tokens/s"
    source = report["sources"]["checker"]
    assert source["commit"] == load("v6.1").sources["checker"].commit
    assert source["as_of"] == load("v6.1").sources["checker"].as_of.isoformat()
    first = next(f for f in report["findings"] if f["rule"] == "TREE-FILE")
    assert set(first) == {"rule", "severity", "path", "found", "expected", "mend", "source"}
    assert report["counts"]["reject"] == sum(f["severity"] == "reject" for f in report["findings"]) > 0


@pytest.mark.parametrize("folder", ["", "closed", "results", "open/Acme", "open/Acme/results", "open/Acme/results/Box"])
def test_a_tree_without_a_result_is_a_finding(tmp_path, monkeypatch, capsys, folder):
    monkeypatch.delenv(VARIABLE, raising=False)
    (tmp_path / "tree" / folder).mkdir(parents=True)
    assert run(["--input", str(tmp_path / "tree"), "--json", str(tmp_path / "report.json")]) == 1
    assert "TREE-NO-ROWS" in capsys.readouterr().out
    report = report_in(tmp_path / "report.json")
    assert (report["rows"], report["verdict"], report["exit_code"]) == ([], "reject", 1)


def test_github_s_workflow_commands_and_the_counts_last(root, capsys):
    write(readme(root), "a stand-in data set\n")
    assert run(["--input", str(root), "--format", "github"]) == 1
    *commands, official, counts = capsys.readouterr().out.splitlines()
    assert commands
    assert all(line.startswith(("::error ", "::warning ", "::notice ")) for line in commands)
    assert any(f"file={readme(root)},title=MARK-STAND-IN::it says" in line for line in commands)
    assert any(",line=" in line for line in commands)
    assert official.startswith("official checker: not run")
    assert counts.startswith("gate v6.1: reject (")


@pytest.mark.parametrize("option", ["--json", "--report-dir"])
def test_nothing_is_written_into_the_tree(root, tmp_path, option):
    (tmp_path / "link").symlink_to(root)
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    for target in (root / "open" / "x", tmp_path / "link" / "x", root / ".." / root.name / "x", root):
        with pytest.raises(ConfigError, match="inside the tree"):
            run(["--input", str(root), option, str(target)])
    assert not (root / "open" / "x").exists()
    assert run(["--input", str(root), option, str(tmp_path / "loop" / "x")]) == 2


def test_unusable_input(root, tmp_path):
    for name in ("absent", "x" * 300):
        with pytest.raises(ConfigError, match="nothing to check"):
            run(["--input", str(tmp_path / name)])
    with pytest.raises(ConfigError, match="nothing to check"):
        run(["--input", str(readme(root))])
    with pytest.raises(UnknownName, match="Acne") as raised:
        run(["--input", str(root), "--submitter", "Acne"])
    assert raised.value.mend == "did you mean 'Acme'?"
    with pytest.raises(UnknownName, match="round"):
        run(["--input", str(root), "--round", "v9"])


def test_a_root_that_cannot_be_listed(root, monkeypatch):
    real = os.scandir

    def scandir(path="."):
        if os.fspath(path) == str(root):
            raise PermissionError(13, "Permission denied")
        return real(path)

    monkeypatch.setattr(check_submission.os, "scandir", scandir)
    with pytest.raises(ConfigError, match="cannot be listed: Permission denied"):
        run(["--input", str(root)])


# -- beside the official checker ---------------------------------------------------------------------------------------


def test_both_accept(root, clone, tmp_path, capsys):
    clone(f"accept({OFFLINE!r}, {SERVER!r})", LOOKS_OK)
    kept = tmp_path / "kept here"
    assert run(["--input", str(root), "--report-dir", str(kept), "--json", str(tmp_path / "report.json")]) == 0
    out = capsys.readouterr().out
    assert "official checker: ok: submission looks OK (2 rows accepted) (clone at an unknown commit)" in out
    assert f"official log: {kept / LOG}" in out
    assert {path.name for path in kept.iterdir()} == {FINDINGS_JSON, FINDINGS_TXT, LOG, TABLE}
    report = report_in(kept / FINDINGS_JSON)
    assert report == report_in(tmp_path / "report.json")
    assert [row["official"] for row in report["rows"]] == ["accepts", "accepts"]
    assert report["rows"][0]["official_row"]["result"] == "42.5"
    assert (kept / FINDINGS_TXT).read_text() == out


def test_disagreements_are_named(root, clone, tmp_path, capsys):
    (root / OFFLINE / "README.md").unlink()
    clone(f"accept({OFFLINE!r})", f"refuse({SERVER!r}, 'is slow')", HAS_ERRORS)
    assert run(["--input", str(root), "--json", str(tmp_path / "report.json")]) == 1
    out = capsys.readouterr().out
    theirs, ours = (out.index(head) for head in ("official accepts, gate rejects", "official refuses, gate"))
    assert theirs < out.index(f"open/Acme/Box/{BENCHMARK}/Offline: ") < ours
    report = report_in(tmp_path / "report.json")
    assert [row["official"] for row in report["rows"]] == ["accepts", "refuses"]
    first, second = report["disagreements"]
    assert "TREE-FILE" in first["reasons"]
    assert second == {
        "row": f"open/Acme/Box/{BENCHMARK}/Server",
        "what": "official refuses, gate passes",
        "reasons": [f"{SERVER}/performance/run_1/mlperf_log_detail.txt is slow"],
    }


def test_a_crash_is_told_as_one(root, clone, capsys):
    clone(CRASHES)
    assert run(["--input", str(root)]) == 1
    out = capsys.readouterr().out
    assert out.count("  crashed  ") == 2
    assert "refuses" not in out
    assert "official log: not kept; --report-dir DIR keeps it" in out


# -- what cannot be done loses nothing ---------------------------------------------------------------------------------


@pytest.mark.parametrize("format_", ["text", "github"])
def test_a_clone_without_the_checker(root, clone, tmp_path, monkeypatch, capsys, format_):
    readme(root).unlink()
    monkeypatch.setenv(VARIABLE, str(tmp_path / "nowhere"))
    assert run(["--input", str(root), "--format", format_, "--json", str(tmp_path / "report.json")]) == 2
    shown = capsys.readouterr()
    assert "TREE-FILE" in shown.out
    assert "OFFICIAL-UNUSABLE" in shown.out
    assert f"the official checker did not run: the clone has no {CHECKER}" in shown.err
    report = report_in(tmp_path / "report.json")
    assert (report["exit_code"], report["verdict"]) == (2, "reject")
    assert [row["official"] for row in report["rows"]] == ["not run", "not run"]


def test_a_clone_of_another_time(root, clone, capsys):
    clone(LOOKS_OK, rounds=("v5.1",))
    assert run(["--input", str(root)]) == 2
    shown = capsys.readouterr()
    assert "official checker: unusable: this clone does not know the round" in shown.out
    assert "OFFICIAL-UNUSABLE" in shown.out


@pytest.mark.parametrize("place", ["file/report.json", "folder"])
def test_a_json_that_cannot_be_written(root, tmp_path, capsys, place):
    readme(root).unlink()
    write(tmp_path / "file", "x")
    (tmp_path / "folder").mkdir()
    assert run(["--input", str(root), "--json", str(tmp_path / place)]) == 2
    shown = capsys.readouterr()
    assert "TREE-FILE" in shown.out
    assert "the report cannot be written" in shown.err
    assert "--json" in shown.err


def test_a_report_folder_that_cannot_be_made(root, clone, tmp_path, capsys):
    clone(f"accept({OFFLINE!r}, {SERVER!r})", LOOKS_OK)
    write(tmp_path / "file", "x")
    argv = ["--input", str(root), "--report-dir", str(tmp_path / "file"), "--json", str(tmp_path / "report.json")]
    assert run(argv) == 2
    shown = capsys.readouterr()
    assert "official checker: ok" in shown.out
    assert "log and table are not kept" in shown.err
    assert shown.err.count("the report cannot be written") == 1
    assert report_in(tmp_path / "report.json")["exit_code"] == 2


def test_a_full_disk_is_the_machine_s_no(root, tmp_path, monkeypatch, capsys):
    def full(path, text):
        raise MissingError("cannot write", where=path) from OSError(28, "No space left on device")

    monkeypatch.setattr(check_submission, "write_atomically", full)
    assert run(["--input", str(root), "--json", str(tmp_path / "report.json")]) == 3
    shown = capsys.readouterr()
    assert "gate v6.1: pass" in shown.out
    assert "No space left on device" in shown.err


# -- as it is typed ----------------------------------------------------------------------------------------------------


def test_a_pipe_is_never_wrapped(root):
    names = ["x" * 90, "y" * 90]
    for name in names:
        write(root / "open" / "Acme" / "src" / name / ".hidden", "x")
    done = subprocess.run(
        [sys.executable, "-m", "harness", "check_submission", "--input", str(root)],
        capture_output=True, text=True, check=False, cwd=ROOT, env={**os.environ, "COLUMNS": "40"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    out = done.stdout.splitlines()
    for name in names:
        assert any(f"open/Acme/src/{name}/.hidden: " in line for line in out)
    assert len([line for line in out if line.startswith(f"  {BENCHMARK}  ")]) == 2
    assert "\x1b" not in done.stdout


def test_make_hands_on_blanks_and_the_submitter(tmp_path):
    make = ["make", "-n", "-o", "venv", "check_submission", "PY=python"]
    told = ['INPUT=a tree/it\'s "x"', "ROUND=v6.0", "SUBMITTER=A b", "ARGS=--json 'x y.json'"]
    inherited = {"MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEOVERRIDES", "INPUT", "ROUND", "SUBMITTER", "ARGS"}
    env = {name: value for name, value in os.environ.items() if name not in inherited}

    def words(*more):
        shown = subprocess.run([*make, *more], cwd=ROOT, env=env, capture_output=True, text=True, check=True)
        line = shown.stdout.strip().splitlines()[-1].replace("python -m harness", "printf '%s\\n'", 1)
        return subprocess.run(["sh", "-c", line], capture_output=True, text=True, check=True).stdout.splitlines()

    assert words() == ["check_submission", "--input", "build/submission", "--round", "v6.1"]
    assert words(*told) == [
        "check_submission", "--input", "a tree/it's \"x\"", "--round", "v6.0", "--submitter", "A b",
        "--json", "x y.json",
    ]  # fmt: skip
